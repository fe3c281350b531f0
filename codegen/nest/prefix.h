// Prefixes: each result combines the elements before its own place along an axis.
#pragma once

#include <cstddef>
#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

// One of the loops over results is the place: the nest visits the points of its one reduced loop that come
// before, and its body is otherwise the same for all places. A schedule that walks the axis once combines in
// the same order.
struct PrefixForm {
    std::size_t place = 0;   // number of the loop
    bool reverse = false;    // the points are those from the end
    bool inclusive = false;  // the place's own element is one of them
};
std::optional<PrefixForm> prefix_form(const Nest& nest);
bool is_prefix(const Nest& nest);

// Rows of the first axis are no tasks: that is the place itself, or loops behind it run beside each other
// while it is walked.
bool is_prefix_of_columns(const Nest& nest);

}  // namespace bitale
