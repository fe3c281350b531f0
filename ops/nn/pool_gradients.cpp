#include "ops/nn/pool_gradients.h"

#include "ops/elementwise/elementwise.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

// Throws unless `pooled` has the shape of windows over an image with these last two lengths.
void require_pooled(const NodePtr& pooled, const NodePtr& winner, const Int& height, const Int& width,
                    const PoolGeometry& geometry, const char* op, Where where) {
    if (!is_integer(winner->type.dtype))
        throw TypeError(where, std::string(op) + ": the winners " + describe(*winner) + " must be integers");
    const Shape &a = pooled->type.shape, &b = winner->type.shape;
    const Int lengths[2] = {height, width};
    bool fits = a.size() >= 2 && a.size() == b.size();
    for (std::size_t i = 0; fits && i < a.size(); ++i) fits = !never_equal(a[i], b[i]);
    for (std::size_t i = 0; fits && i < 2; ++i)
        fits = !never_equal(b[b.size() - 2 + i], geometry.output_length(static_cast<int>(i), lengths[i]));
    if (!fits)
        throw ShapeError(where, std::string(op) + ": " + describe(*pooled) + " and " + describe(*winner) +
                                    " do not fit an image of height " + height.text() + " and width " +
                                    width.text());
}

std::vector<Equality> pooled_equalities(const Shape& a, const Shape& b, const Shape& image,
                                        const Attributes& attributes) {
    const PoolGeometry geometry = PoolGeometry::of(attributes);
    std::vector<Equality> r;
    for (std::size_t i = 0; i < a.size(); ++i)
        demand_equal(r, a[i], b[i], "the lengths of max_pool's operands on axis " + std::to_string(i));
    for (std::size_t i = 0; i < 2; ++i)
        demand_equal(r, b[b.size() - 2 + i],
                     geometry.output_length(static_cast<int>(i), image[image.size() - 2 + i]),
                     "the lengths of max_pool's gradient and of its result");
    return r;
}

// ---- unpool
// -----------------------------------------------------------------------------------------------------

Type infer_unpool(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType t = inputs[0]->type.dtype;
    if (t != float32 && t != float64)
        throw TypeError(where, "unpool takes a float32 or float64 gradient, not " + describe(*inputs[0]));
    const Int &height = attributes.get<Int>("height"), &width = attributes.get<Int>("width");
    require_pooled(inputs[0], inputs[1], height, width, PoolGeometry::of(attributes), "unpool", where);
    Shape shape = inputs[0]->type.shape;
    shape[shape.size() - 2] = height;
    shape.back() = width;
    return {t, shape};
}

Array evaluate_unpool(const Node& node, const std::vector<Array>& inputs) {
    Array r(float64, static_dims(node.type.shape));
    auto* to = static_cast<double*>(r.mutable_data());
    const auto g = inputs[0].view<double>();
    const std::vector<std::int64_t> winner = inputs[1].to_vector<std::int64_t>();
    PoolGeometry::of(node.attributes)
        .for_each_cell(r.shape(), inputs[0].shape(),
                       [&](std::int64_t out, std::int64_t cell, std::int64_t in) {
                           const auto i = static_cast<std::size_t>(out);
                           if (winner[i] == cell) to[in] += g[i];
                       });
    return r;
}

void guard_unless_sure(std::vector<Guard>& guards, const Int& value, const Int& low, const Int& high) {
    if ((value - low).range().low >= 0 && (high - value).range().low > 0) return;
    guards.push_back({value, low, high});
}

// Every place asks the windows that may cover it, in order, whether it is their winner.
Nest nest_unpool(const Node& node) {
    const PoolGeometry geometry = PoolGeometry::of(node.attributes);
    const Type &g = node.inputs[0]->type, &winner = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.dtype = nest.accumulator = g.dtype;
    std::vector<Int> at = variables_of(nest.parallel);
    std::vector<Guard> guards;
    Int cell = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t axis = at.size() - 2 + i;
        const std::int64_t stride = geometry.stride[i], window = geometry.window[i];
        const std::int64_t candidates = (window + stride - 1) / stride;
        const Int place = at[axis] + geometry.pad[i];
        Int out = floordiv(place, stride) - (candidates - 1);
        if (candidates > 1) {
            nest.reduced.push_back(make_loop(i == 0 ? "wy" : "wx", candidates));
            out = out + nest.reduced.back().variable;
        }
        const Int tap = place - out * stride;
        guard_unless_sure(guards, out, 0, g.shape[axis]);
        guard_unless_sure(guards, tap, 0, window);
        at[axis] = out;
        cell = cell * window + tap;
    }
    nest.combine = nest.reduced.empty() ? Combine::none : Combine::sum;
    const Scalar zero = scalar_constant(g.dtype, 0);
    // Windows that there are not have no cell as their winner.
    const Scalar no_cell = guards.empty() ? nullptr : scalar_integer(winner.dtype, geometry.cells());
    const Scalar won = scalar_read(winner.dtype, 1, at, guards, no_cell);
    const Scalar here = scalar_apply(eq_op(), boolean, {scalar_cast(int32, won), scalar_index(int32, cell)});
    const Scalar value = scalar_read(g.dtype, 0, at, guards, guards.empty() ? nullptr : zero);
    nest.body = scalar_apply(where_op(), g.dtype, {here, value, zero});
    return nest;
}

Nodes gradient_unpool(const NodePtr& node, const NodePtr& other) {
    const PoolGeometry geometry = PoolGeometry::of(node->attributes);
    return {make_node(pool_pick_op(), {other, node->inputs[1]}, geometry.attributes(), node->where), nullptr};
}

// ---- pool_pick
// --------------------------------------------------------------------------------------------------

Type infer_pool_pick(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Shape& x = inputs[0]->type.shape;
    const std::size_t rank = x.size();
    if (rank < 2)
        throw ShapeError(where, "pool_pick works on the last two axes, not on " + describe(*inputs[0]));
    const Shape& winner = inputs[1]->type.shape;
    require_pooled(inputs[1], inputs[1], x[rank - 2], x[rank - 1], PoolGeometry::of(attributes), "pool_pick",
                   where);
    for (std::size_t i = 0; i + 2 < rank; ++i)
        if (winner.size() != rank || never_equal(winner[i], x[i]))
            throw ShapeError(where, "pool_pick: " + describe(*inputs[0]) + " and " + describe(*inputs[1]) +
                                        " differ in their leading axes");
    return {inputs[0]->type.dtype, winner};
}

std::vector<Equality> equalities_pool_pick(const Node& node) {
    const Shape &x = node.inputs[0]->type.shape, &winner = node.inputs[1]->type.shape;
    Shape leading = winner;
    for (std::size_t i = 0; i + 2 < x.size(); ++i) leading[i] = x[i];
    return pooled_equalities(leading, winner, x, node.attributes);
}

Array evaluate_pool_pick(const Node& node, const std::vector<Array>& inputs) {
    Array r(inputs[0].dtype(), inputs[1].shape());
    const std::vector<std::int64_t> winner = inputs[1].to_vector<std::int64_t>();
    PoolGeometry::of(node.attributes)
        .for_each_cell(inputs[0].shape(), r.shape(),
                       [&](std::int64_t out, std::int64_t cell, std::int64_t in) {
                           if (winner[static_cast<std::size_t>(out)] == cell)
                               copy_element(r, out, inputs[0], in);
                       });
    return r;
}

Nest nest_pool_pick(const Node& node) {
    const PoolGeometry geometry = PoolGeometry::of(node.attributes);
    const Type &x = node.inputs[0]->type, &winner = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.dtype = x.dtype;
    std::vector<Int> at = variables_of(nest.parallel);
    Int cell = 0;
    if (geometry.cells() > 1) {
        cell = Int::symbol("winner", {0, geometry.cells() - 1});
        nest.lets = {{cell, scalar_cast(int64, scalar_read(winner.dtype, 1, at)), geometry.cells()}};
    }
    const Int taps[2] = {floordiv(cell, geometry.window[1]), mod(cell, geometry.window[1])};
    std::vector<Guard> guards;  // a winner never lies in the padding, but its clamped value might
    for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t axis = at.size() - 2 + i;
        at[axis] = at[axis] * geometry.stride[i] - geometry.pad[i] + taps[i];
        if (geometry.pad[i] > 0) guards.push_back({at[axis], 0, x.shape[axis]});
    }
    nest.body = scalar_read(x.dtype, 0, at, guards, guards.empty() ? nullptr : scalar_constant(x.dtype, 0));
    return nest;
}

Nodes gradient_pool_pick(const NodePtr& node, const NodePtr& g) {
    const Shape& x = node->inputs[0]->type.shape;
    return {make_unpool(g, node->inputs[1], PoolGeometry::of(node->attributes), x[x.size() - 2], x.back(),
                        node->where),
            nullptr};
}

}  // namespace

const Op* unpool_op() {
    static const Op* op = register_op({
        .name = "unpool",
        .kind = OpKind::reduce,
        .arity = 2,
        .infer = infer_unpool,
        .equalities =
            [](const Node& node) {
                return pooled_equalities(node.inputs[0]->type.shape, node.inputs[1]->type.shape,
                                         node.type.shape, node.attributes);
            },
        .gradient = gradient_unpool,
        .evaluate = evaluate_unpool,
        .nest = nest_unpool,
    });
    return op;
}

const Op* pool_pick_op() {
    static const Op* op = register_op({
        .name = "pool_pick",
        .kind = OpKind::view,
        .arity = 2,
        .infer = infer_pool_pick,
        .equalities = equalities_pool_pick,
        .gradient = gradient_pool_pick,
        .evaluate = evaluate_pool_pick,
        .nest = nest_pool_pick,
    });
    return op;
}

NodePtr make_unpool(const NodePtr& g, const NodePtr& winner, const PoolGeometry& geometry, const Int& height,
                    const Int& width, Where where) {
    Attributes attributes = geometry.attributes();
    attributes.set("height", height);
    attributes.set("width", width);
    return make_node(unpool_op(), {g, winner}, std::move(attributes), where);
}

}  // namespace bitale
