// What is the same along axes: reductions beside the elements that they came from, in the forms people write.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

bool contains(const std::vector<std::int64_t>& axes, std::size_t axis);

// A reduction over "axes" that a node repeats over the shape of its operand.
struct Kept {
    NodePtr reduction;
    bool inverted = false;  // the node repeats its reciprocal
};
using LookThrough = std::function<bool(const NodePtr&)>;

// With keepdims, by expand_dims or by broadcasting from the right; nothing where the repetition runs along
// other axes than the reduction did.
std::optional<Kept> kept_reduction(const NodePtr& node, const Shape& full, const LookThrough& may = nullptr);

// Whether x is u - max(u), with the maximum over some or all of the axes: none of exp(x) overflows, and in
// each sum over the axes some element is 1.
bool is_below_maximum(const NodePtr& x, const std::vector<std::int64_t>& axes);

}  // namespace bitale
