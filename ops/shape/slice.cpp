#include "ops/shape/slice.h"

#include <algorithm>

#include "graph/ir/fault_text.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

using Steps = std::vector<std::int64_t>;

const std::vector<Int>& lengths(const Attributes& a, const char* name) {
    return a.get<std::vector<Int>>(name);
}
const Steps& steps_of(const Attributes& a) { return a.get<Steps>("step"); }
bool is_clipped(const Attributes& a) {
    const Attribute* clipped = a.find("clipped");
    return clipped && std::get<bool>(*clipped);
}

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

// Appends that a place exists: IndexError where it does not.
void demand_place(std::vector<Equality>& into, const Int& needed, const Int& there, std::string sentence) {
    const std::size_t before = into.size();
    demand_at_most(into, needed, there, std::move(sentence));
    if (into.size() > before) into.back().is_index = true;
}

void demand_places(std::vector<Equality>& into, const Node& node, const Node& whole) {
    const Attribute* attribute = node.attributes.find("places");
    if (!attribute) return;
    const auto& places = std::get<Places>(*attribute);
    for (std::size_t i = 0; i + 1 < places.size(); i += 2)
        demand_place(into, places[i], places[i + 1],
                     "the slice of " + describe(whole) + " starts at index " + number_found(-1) +
                         ", but the axis has length " + number_there() + ": one minibatch too many?");
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

// Place j holds element (j - start) / step where that is a whole number within the part.
Nest nest_place_slice(const Node& node) {
    const std::vector<Int>& start = lengths(node.attributes, "start");
    const Steps& step = steps_of(node.attributes);
    const Shape& part = node.inputs[0]->type.shape;
    std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = variables_of(loops);
    std::vector<Guard> guards;
    for (std::size_t i = 0; i < at.size(); ++i) {
        const Int distance = step[i] > 0 ? at[i] - start[i] : start[i] - at[i];
        const std::int64_t stride = step[i] > 0 ? step[i] : -step[i];
        at[i] = floordiv(distance, stride);
        const bool whole = start[i].is(0) && step[i] == 1 && part[i] == node.type.shape[i];
        if (!whole) guards.push_back({at[i], 0, part[i]});
        if (const Int rest = mod(distance, stride); !rest.is(0)) guards.push_back({rest, 0, 1});
    }
    Scalar zero = guards.empty() ? nullptr : scalar_integer(node.type.dtype, 0);
    return view_nest(node, std::move(loops), std::move(at), std::move(guards), std::move(zero));
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

// ---- rows
// -------------------------------------------------------------------------------------------------------

void require_start(const NodePtr& start, const char* op, Where where) {
    if (!is_integer(start->type.dtype) || start->type.rank() != 0)
        throw TypeError(
            where, std::string(op) + ": the first row " + describe(*start) + " must be an integer scalar");
}

std::string rows_out_of_range(const std::string& first, const std::string& last, const Int& count,
                              const Node& of, const std::string& extent) {
    if (count.is(1))
        return "row " + first + " of " + describe(of) + " is out of range: it has " + extent +
               " rows, and a computed index does not count from the end";
    const std::string rows = count.is_constant() && count.constant() > 1
                                 ? "rows " + first + " to " + last
                                 : count.text() + " rows from row " + first + " on";
    return rows + " of " + describe(of) + " are out of range: it has " + extent +
           " rows; minibatches count from 0, and for a shorter last one use Slice, which clips";
}

Type infer_rows(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    require_start(inputs[1], "rows", where);
    if (x.rank() == 0)
        throw ShapeError(where, "rows: " + describe(*inputs[0]) + " is a scalar and has no rows");
    const Int& count = attributes.get<Int>("count");
    if (count.range().high < 0)
        throw ShapeError(where, "rows: the count must not be negative, but is " + count.text());
    const Int first = is_constant(inputs[1]) ? Int(constant_value(inputs[1]).item<std::int64_t>()) : Int(0);
    if (first.range().high < 0 || (x.shape[0] - first - count).range().high < 0)
        throw IndexError(where, rows_out_of_range(first.text(), (first + count - 1).text(), count, *inputs[0],
                                                  x.shape[0].text()));
    Type type = x;
    type.shape[0] = count;
    return type;
}

std::vector<Equality> rows_equalities(const Node& node, const Node& whole, const Int& count) {
    std::vector<Equality> r;
    const Int& extent = whole.type.shape[0];
    demand_places(r, node, whole);
    if (is_clipped(node.attributes)) return r;
    const Int first =
        is_constant(node.inputs[1]) ? Int(constant_value(node.inputs[1]).item<std::int64_t>()) : Int(0);
    demand_place(
        r, first + count, extent,
        describe(whole) + " must have at least " + number_found() + " rows, and has " + number_there());
    demand_at_most(r, 0, count, "the number of rows, " + count.text() + ", must not be negative");
    return r;
}

// The first row as an index; appends the Let that reads it unless it can only be one number.
Int first_row(const Node& node, const Int& extent, const Int& count, Nest& nest) {
    const NodePtr& start = node.inputs[1];
    if (is_constant(start)) return constant_value(start).item<std::int64_t>();
    // A part longer than the whole is refused before anything runs; a clipped start is right by itself, and
    // its bound need not know a count that changes from call to call.
    const Int choices = is_clipped(node.attributes) ? extent + 1 : max(extent - count + 1, 1);
    const IntRange range = make_loop("row", choices).variable.range();
    const Int symbol = choices.is(1) ? Int(0) : Int::symbol("row", range);
    if (symbol.symbol_id())
        nest.lets.push_back(
            {symbol, scalar_cast(DType::int64, scalar_read(start->type.dtype, 1, {})), choices});
    return symbol;
}

Nest nest_rows(const Node& node) {
    Nest nest = view_nest(node, loops_over(node.type.shape), {});
    std::vector<Int> at = variables_of(nest.parallel);
    at[0] = at[0] + first_row(node, node.inputs[0]->type.shape[0], node.type.shape[0], nest);
    nest.body = scalar_read(node.type.dtype, 0, std::move(at));
    return nest;
}

std::int64_t checked_start(const Node& whole, const Array& start, std::int64_t extent, std::int64_t count,
                           Where where) {
    const std::int64_t first = start.to_vector<std::int64_t>().at(0);
    if (first < 0 || count < 0 || first > extent - count)
        throw IndexError(
            where, rows_out_of_range(std::to_string(first), completed(number_found(count - 1), first, 0),
                                     count, whole, std::to_string(extent)));
    return first;
}

Array evaluate_rows(const Node& node, const std::vector<Array>& inputs) {
    const Dims shape = static_dims(node.type.shape);
    const std::int64_t first =
        checked_start(*node.inputs[0], inputs[1], inputs[0].shape()[0], shape[0], node.where);
    return inputs[0].rows(first, first + shape[0]);
}

// ---- place_rows
// -------------------------------------------------------------------------------------------------

Type infer_place_rows(const Nodes& inputs, const Attributes& attributes, Where where) {
    require_start(inputs[1], "place_rows", where);
    BITALE_CHECK(inputs[0]->type.rank() > 0, "place_rows of a scalar");
    Type type = inputs[0]->type;
    type.shape[0] = attributes.get<Int>("extent");
    return type;
}

Nest nest_place_rows(const Node& node) {
    const Int& count = node.inputs[0]->type.shape[0];
    Nest nest = view_nest(node, loops_over(node.type.shape), {});
    std::vector<Int> at = variables_of(nest.parallel);
    at[0] = at[0] - first_row(node, node.type.shape[0], count, nest);
    nest.body = scalar_read(node.type.dtype, 0, at, {{at[0], 0, count}}, scalar_integer(node.type.dtype, 0));
    return nest;
}

Array evaluate_place_rows(const Node& node, const std::vector<Array>& inputs) {
    const Dims shape = static_dims(node.type.shape), part = inputs[0].shape();
    const std::int64_t first = checked_start(node, inputs[1], shape[0], part[0], node.where);
    return copied(inputs[0], shape, [&](Dims at) {
        at[0] -= first;
        return at[0] >= 0 && at[0] < part[0] ? linear_of(at, part) : -1;
    });
}

// A gradient by itself demands the places that the slice does.
Attributes with_places(Attributes attributes, const Node& slice) {
    if (const Attribute* places = slice.attributes.find("places")) attributes.set("places", *places);
    return attributes;
}

std::vector<Check> row_checks(const Node& node, const Node& whole, const Int& count) {
    const Int& extent = whole.type.shape[0];
    if (is_clipped(node.attributes) || is_constant(node.inputs[1])) return {};
    const std::int64_t to_last = count.is_constant() ? count.constant() - 1 : 0;
    const bool is_told_by_call = !extent.is_constant() && count.is_constant();
    const std::string sentence = rows_out_of_range(number_found(), number_found(to_last), count, whole,
                                                   is_told_by_call ? number_there(to_last) : extent.text());
    return {{node.inputs[1], 0, extent - count + 1,
             with_sentence("the first of " + count.text() + " rows of " + describe(whole), sentence),
             node.where}};
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

const Op* rows_op() {
    static const Op* op = register_op({
        .name = "rows",
        .title = "slice",
        .kind = OpKind::view,
        .arity = 2,
        .takes_rows = true,
        .infer = infer_rows,
        .equalities =
            [](const Node& node) { return rows_equalities(node, *node.inputs[0], node.type.shape[0]); },
        .checks = [](const Node& node) { return row_checks(node, *node.inputs[0], node.type.shape[0]); },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                const Attributes attributes{{"extent", node->inputs[0]->type.shape[0]},
                                            {"clipped", is_clipped(node->attributes)}};
                return Nodes{make_node(place_rows_op(), {g, node->inputs[1]}, with_places(attributes, *node),
                                       node->where),
                             nullptr};
            },
        .evaluate = evaluate_rows,
        .nest = nest_rows,
    });
    return op;
}

const Op* place_rows_op() {
    static const Op* op = register_op({
        .name = "place_rows",
        .title = "gradient of slice",
        .kind = OpKind::view,
        .arity = 2,
        .infer = infer_place_rows,
        .equalities =
            [](const Node& node) { return rows_equalities(node, node, node.inputs[0]->type.shape[0]); },
        .checks = [](const Node& node) { return row_checks(node, node, node.inputs[0]->type.shape[0]); },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_node(rows_op(), {g, node->inputs[1]},
                                       {{"count", node->inputs[0]->type.shape[0]},
                                        {"clipped", is_clipped(node->attributes)}},
                                       node->where),
                             nullptr};
            },
        .evaluate = evaluate_place_rows,
        .nest = nest_place_rows,
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
