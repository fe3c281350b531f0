#include "ops/shape/lengths.h"

#include <algorithm>

namespace bitale {

bool never_equal(const Int& a, const Int& b) {
    const IntRange difference = (a - b).range();
    return difference.low > 0 || difference.high < 0;
}

Shape without_ones(Shape shape) {
    std::erase_if(shape, [](const Int& n) { return n.is(1); });
    return shape;
}

bool same_points(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Int& m, const Int& n) { return m.is(1) == n.is(1); });
}

void demand_equal(std::vector<Equality>& into, const Int& a, const Int& b, std::string what) {
    if (!(a == b)) into.push_back({a, b, std::move(what)});
}

void demand_at_most(std::vector<Equality>& into, const Int& a, const Int& b, std::string what) {
    if (const Int larger = max(a, b); !(larger == b)) into.push_back({larger, b, std::move(what), true});
}

void reject_negative(const Shape& shape, const char* op, Where where) {
    for (const Int& length : shape)
        if (length.range().high < 0)
            throw ShapeError(where,
                             std::string(op) + " to " + text_of(shape) + ": a length cannot be negative");
}

std::vector<Loop> loops_over(const Shape& shape, const char* prefix) {
    std::vector<Loop> loops;
    for (const Int& length : shape) loops.push_back(make_loop(prefix + std::to_string(loops.size()), length));
    return loops;
}

std::vector<Int> variables_of(const std::vector<Loop>& loops) {
    std::vector<Int> at;
    for (const Loop& loop : loops) at.push_back(loop.variable);
    return at;
}

Int linear_index(const std::vector<Int>& at, const Shape& shape) {
    Int linear = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) linear = linear * shape[i] + at[i];
    return linear;
}

std::vector<Int> axis_indices(const Int& linear, const Shape& shape) {
    std::vector<Int> at(shape.size());
    Int rest = linear;
    for (std::size_t i = shape.size(); i-- > 0;) {
        // A length of 0 has no elements to index; dividing by it would be the only harm.
        if (i == 0 || shape[i].is(0)) {
            at[i] = i == 0 ? rest : Int(0);
            continue;
        }
        at[i] = mod(rest, shape[i]);
        rest = floordiv(rest, shape[i]);
    }
    return at;
}

Nest view_nest(const Node& node, std::vector<Loop> parallel, std::vector<Int> at, std::vector<Guard> guards,
               Scalar otherwise) {
    Nest nest;
    nest.parallel = std::move(parallel);
    nest.dtype = node.type.dtype;
    nest.body = scalar_read(node.type.dtype, 0, std::move(at), std::move(guards), std::move(otherwise));
    return nest;
}

}  // namespace bitale
