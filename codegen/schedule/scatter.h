// Sums of products of which one factor is zero at most places, as the gradient of what max-pooling read is: a
// convolution's gradient with respect to its image. Each place lists its channels that are not zero; the
// results that it has a part in, one for each tap, are in vector registers while its list is added to them.
// What is zero is not multiplied: the same bits, as long as the other factor is finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "codegen/group/values.h"
#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// Of a sum over the taps of a filter first, and its channels last, for each place of an image.
struct ScatterForm {
    struct Axis {
        std::size_t result = 0;   // number of the loop over results
        std::size_t at = 0;       // axis of the sparse factor
        std::int64_t places = 0;  // its length
        // A result meets the place: result + step * tap + shift.
        std::int64_t step = 1, shift = 0, taps = 1;
        std::int64_t first() const;  // the first result that any place has a part in
        std::int64_t count() const;  // and how many follow, itself included
    };
    int factor = 0;            // of the product: the sparse one
    std::size_t channels = 0;  // its axis along the channels of the sum
    Axis rows, columns;
    std::size_t lanes = 0;  // number of the loop over results that runs in lanes
};

// Nothing where the sum is of another form. The order of axes in memory does not matter here.
std::optional<ScatterForm> scatter_form(const Nest& nest);
// The members of a group that a CPU sums up so, a row of a task: the factor is zero where something else was
// selected, lies in memory as it has to, and there is room for the lists beside the `used` bytes of scratch,
// which grow by them.
std::set<int> scattered_members(const Group& group, const SegmentContext& context, std::int64_t& used);

// The results of the member's loops, to its destinations.
Stmts schedule_scatter(const Member& member, const Target& target, KernelBuilder& builder);

}  // namespace bitale
