#include "ops/shape/slice.h"

#include <algorithm>

#include "graph/ir/fault_text.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"
#include "ops/shape/slice_places.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using Steps = std::vector<std::int64_t>;

const std::vector<Int>& lengths(const Attributes& a, const char* name) {
    return a.get<std::vector<Int>>(name);
}
const Steps& steps_of(const Attributes& a) { return a.get<Steps>("step"); }

// ---- slice
// ------------------------------------------------------------------------------------------------------

Type infer_slice(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    const std::vector<Int>&start = lengths(attributes, "start"), &count = lengths(attributes, "count");
    const Steps& step = steps_of(attributes);
    BITALE_CHECK(
        start.size() == x.shape.size() && count.size() == x.shape.size() && step.size() == x.shape.size(),
        "slice needs start, count and step for each axis");
    reject_negative(count, "slice", where);
    for (std::size_t i = 0; i < start.size(); ++i) {
        if (!count[i].is_constant() || count[i].is(0)) continue;
        const Int last = start[i] + (count[i] - 1) * step[i];
        const Int &low = step[i] > 0 ? start[i] : last, &high = step[i] > 0 ? last : start[i];
        if (low.range().high < 0 || (x.shape[i] - high).range().high <= 0)
            throw IndexError(where, "index " + (low.range().high < 0 ? low : high).text() +
                                        " is out of range for axis " + std::to_string(i) + " of " +
                                        describe(*inputs[0]) + ", whose length is " + x.shape[i].text());
    }
    return {x.dtype, count};
}

// A number as index, or a part of fixed size, needs a long enough axis; what was clipped fits whatever it
// meets.
// `whole` is the input of a slice, and the result of its gradient, which can be all that is computed.
std::vector<Equality> slice_equalities(const Node& node, const Node& whole, const Shape& count) {
    std::vector<Equality> r;
    const std::vector<Int>& start = lengths(node.attributes, "start");
    const Steps& step = steps_of(node.attributes);
    for (std::size_t i = 0; i < count.size(); ++i) {
        if (!count[i].is_constant() || count[i].is(0)) continue;
        const Int last = start[i] + (count[i] - 1) * step[i];
        const Int &low = step[i] > 0 ? start[i] : last, &high = step[i] > 0 ? last : start[i];
        const Int& extent = whole.type.shape[i];
        const auto out_of_range = [&](const std::string& index) {
            return "index " + index + " is out of range for axis " + std::to_string(i) + " of " +
                   describe(whole) + ", whose length is " + number_there();
        };
        demand_place(r, high + 1, extent, out_of_range(number_found(-1)));
        demand_place(r, extent - low, extent, out_of_range((low - extent).text()));
    }
    demand_places(r, node, whole);
    return r;
}

Nest nest_slice(const Node& node) {
    const std::vector<Int>& start = lengths(node.attributes, "start");
    const Steps& step = steps_of(node.attributes);
    std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = variables_of(loops);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = start[i] + at[i] * step[i];
    return view_nest(node, std::move(loops), std::move(at));
}

Array evaluate_slice(const Node& node, const std::vector<Array>& inputs) {
    const Dims start = static_dims(lengths(node.attributes, "start"));
    const Steps& step = steps_of(node.attributes);
    return copied(inputs[0], static_dims(node.type.shape), [&](Dims at) {
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = start[i] + at[i] * step[i];
        return linear_of(at, inputs[0].shape());
    });
}

// ---- place_slice
// ------------------------------------------------------------------------------------------------

Type infer_place_slice(const Nodes& inputs, const Attributes& attributes, Where) {
    const std::vector<Int>& shape = lengths(attributes, "shape");
    BITALE_CHECK(shape.size() == inputs[0]->type.shape.size() &&
                     steps_of(attributes).size() == shape.size() &&
                     lengths(attributes, "start").size() == shape.size(),
                 "place_slice needs start, step and a length for each axis");
    return {inputs[0]->type.dtype, shape};
}

// Where the elements of a part come from, by their indices in the whole.
struct PlacedIndex {
    std::vector<Int> at;
    std::vector<Guard> guards;  // of the elements that the part has
};

// Element j of the whole is element (j - start) / step of the part where that is a whole number within it.
PlacedIndex placed_index(const Attributes& attributes, const Shape& part, const Shape& whole,
                         std::vector<Int> at) {
    const std::vector<Int>& start = lengths(attributes, "start");
    const Steps& step = steps_of(attributes);
    std::vector<Guard> guards;
    for (std::size_t i = 0; i < at.size(); ++i) {
        const Int distance = step[i] > 0 ? at[i] - start[i] : start[i] - at[i];
        const std::int64_t stride = step[i] > 0 ? step[i] : -step[i];
        at[i] = floordiv(distance, stride);
        if (!(start[i].is(0) && step[i] == 1 && part[i] == whole[i])) guards.push_back({at[i], 0, part[i]});
        if (const Int rest = mod(distance, stride); !rest.is(0)) guards.push_back({rest, 0, 1});
    }
    return {std::move(at), std::move(guards)};
}

Nest nest_place_slice(const Node& node) {
    std::vector<Loop> loops = loops_over(node.type.shape);
    PlacedIndex from =
        placed_index(node.attributes, node.inputs[0]->type.shape, node.type.shape, variables_of(loops));
    Scalar zero = from.guards.empty() ? nullptr : scalar_integer(node.type.dtype, 0);
    return view_nest(node, std::move(loops), std::move(from.at), std::move(from.guards), std::move(zero));
}

Array evaluate_place_slice(const Node& node, const std::vector<Array>& inputs) {
    const Dims start = static_dims(lengths(node.attributes, "start"));
    const Steps& step = steps_of(node.attributes);
    Array r(inputs[0].dtype(), static_dims(node.type.shape));
    std::int64_t from = 0;
    for_each_index(inputs[0].shape(), [&](Dims at) {
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = start[i] + at[i] * step[i];
        copy_element(r, linear_of(at, r.shape()), inputs[0], from++);
    });
    return r;
}

// ---- set_slice
// --------------------------------------------------------------------------------------------------

Type infer_set_slice(const Nodes& inputs, const Attributes& attributes, Where) {
    const Type &x = inputs[0]->type, &part = inputs[1]->type;
    BITALE_CHECK(lengths(attributes, "start").size() == x.shape.size() &&
                     steps_of(attributes).size() == x.shape.size() && part.shape.size() == x.shape.size() &&
                     part.dtype == x.dtype,
                 "set_slice needs start and step for each axis, and a part of the same dtype and rank");
    return x;
}

Nest nest_set_slice(const Node& node) {
    std::vector<Loop> loops = loops_over(node.type.shape);
    PlacedIndex from =
        placed_index(node.attributes, node.inputs[1]->type.shape, node.type.shape, variables_of(loops));
    Nest nest = view_nest(node, loops, variables_of(loops));
    const Scalar old = from.guards.empty() ? nullptr : nest.body;
    nest.body = scalar_read(node.type.dtype, 1, std::move(from.at), std::move(from.guards), old);
    return nest;
}

Array evaluate_set_slice(const Node& node, const std::vector<Array>& inputs) {
    const Dims start = static_dims(lengths(node.attributes, "start"));
    const Steps& step = steps_of(node.attributes);
    Array r = inputs[0];
    std::int64_t from = 0;
    for_each_index(inputs[1].shape(), [&](Dims at) {
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = start[i] + at[i] * step[i];
        copy_element(r, linear_of(at, r.shape()), inputs[1], from++);
    });
    return r;
}

}  // namespace

const Op* slice_op() {
    static const Op* op = register_op({
        .name = "slice",
        .kind = OpKind::view,
        .arity = 1,
        .infer = infer_slice,
        .equalities =
            [](const Node& node) { return slice_equalities(node, *node.inputs[0], node.type.shape); },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                const Attributes attributes{{"start", lengths(node->attributes, "start")},
                                            {"step", steps_of(node->attributes)},
                                            {"shape", node->inputs[0]->type.shape}};
                return Nodes{make_node(place_slice_op(), {g}, with_places(attributes, *node), node->where)};
            },
        .evaluate = evaluate_slice,
        .nest = nest_slice,
    });
    return op;
}

const Op* place_slice_op() {
    static const Op* op = register_op({
        .name = "place_slice",
        .title = "gradient of slice",
        .kind = OpKind::view,
        .arity = 1,
        .infer = infer_place_slice,
        .equalities =
            [](const Node& node) { return slice_equalities(node, node, node.inputs[0]->type.shape); },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_node(slice_op(), {g},
                                       {{"start", lengths(node->attributes, "start")},
                                        {"count", node->inputs[0]->type.shape},
                                        {"step", steps_of(node->attributes)}},
                                       node->where)};
            },
        .evaluate = evaluate_place_slice,
        .nest = nest_place_slice,
    });
    return op;
}

const Op* set_slice_op() {
    static const Op* op = register_op({
        .name = "set_slice",
        .title = "set_subtensor",
        .kind = OpKind::view,
        .arity = 2,
        .infer = infer_set_slice,
        .equalities =
            [](const Node& node) {
                return slice_equalities(node, *node.inputs[0], node.inputs[1]->type.shape);
            },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                const Shape& part = node->inputs[1]->type.shape;
                const NodePtr none = make_zeros(g->type.dtype, part, node->where);
                return Nodes{make_node(set_slice_op(), {g, none}, node->attributes, node->where),
                             make_node(slice_op(), {g},
                                       {{"start", lengths(node->attributes, "start")},
                                        {"count", part},
                                        {"step", steps_of(node->attributes)}},
                                       node->where)};
            },
        .evaluate = evaluate_set_slice,
        .nest = nest_set_slice,
    });
    return op;
}

Places joined_places(const Attributes& inner, const Attributes& outer) {
    Places all;
    for (const Attributes* one : {&inner, &outer})
        if (const Attribute* places = one->find("places")) {
            const auto& list = std::get<Places>(*places);
            all.insert(all.end(), list.begin(), list.end());
        }
    return all;
}

std::optional<Cut> cut_of(const Node& node) {
    const std::vector<Int>& start = lengths(node.attributes, "start");
    const Steps& step = steps_of(node.attributes);
    const bool places = node.op == place_slice_op();
    const Shape &part = places ? node.inputs[0]->type.shape : node.type.shape,
                &whole = places ? node.type.shape : node.inputs[0]->type.shape;
    std::optional<Cut> cut;
    for (std::size_t i = 0; i < start.size(); ++i) {
        if (step[i] != 1) return std::nullopt;
        if (start[i].is(0) && part[i] == whole[i]) continue;
        if (cut) return std::nullopt;
        cut = Cut{i, start[i], part[i]};
    }
    return cut;
}

bool takes_all(const Node& node) {
    const std::vector<Int>& start = lengths(node.attributes, "start");
    const Steps& step = steps_of(node.attributes);
    return node.type.shape == node.inputs[0]->type.shape &&
           std::all_of(start.begin(), start.end(), [](const Int& s) { return s.is(0); }) &&
           std::all_of(step.begin(), step.end(), [](std::int64_t s) { return s == 1; });
}

NodePtr make_slice(const NodePtr& x, int axis, const Int& start, const Int& count, std::int64_t step,
                   Where where, const Places& places) {
    const Shape& shape = x->type.shape;
    const auto at = static_cast<std::size_t>(axis);
    if (start.is(0) && step == 1 && count == shape[at]) return x;
    std::vector<Int> starts(shape.size(), 0), counts = shape;
    Steps steps(shape.size(), 1);
    starts[at] = start;
    counts[at] = count;
    steps[at] = step;
    Attributes attributes{{"start", starts}, {"count", counts}, {"step", steps}};
    if (!places.empty()) attributes.set("places", places);
    return make_node(slice_op(), {x}, attributes, where);
}

}  // namespace bitale
