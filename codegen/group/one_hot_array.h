// Arrays that are one where the index along an axis is a number that the other axes tell, and zero elsewhere.
#pragma once

#include <cstddef>
#include <optional>

#include "graph/ir/node.h"

namespace bitale {

struct OneHot {
    NodePtr numbers;       // integers [lengths of the other axes, in order]
    std::size_t axis = 0;  // of the array, along which they count
};

// cast(eq(numbers, index along an axis)) in the forms that people write, through views and casts that change
// no number; or the comparison itself.
std::optional<OneHot> one_hot_of(const NodePtr& array, Where where);

}  // namespace bitale
