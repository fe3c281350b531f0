// Sums of which each point belongs to one place that a list tells, as the gradient of what a sort has picked:
// every place of a row looks at all points for its own. A schedule that adds each point where it belongs
// takes work that is linear in both, and adds the terms of a place in the same order. Or the largest of
// integers that are never negative, 0 where a place has none, as the last position of each number in a list
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

struct PutForm {
    std::size_t place = 0;  // number of the loop over results
    Scalar key;             // the place that a point belongs to; it may be none of the row's
    Scalar value;           // what the point adds there
};
// Rows of the first axis are apart: the place is along another one. Where a task has one row, that axis is no
// loop any more.
enum class PutRows : std::uint8_t { all, of_task };
std::optional<PutForm> put_form(const Nest& nest, PutRows rows = PutRows::all);
bool adds_at_places(const Nest& nest);

}  // namespace bitale
