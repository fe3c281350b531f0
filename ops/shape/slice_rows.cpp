// rows: a part of the first axis whose first row only the device knows; place_rows and set_rows.
#include "graph/ir/fault_text.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"
#include "ops/shape/slice.h"
#include "ops/shape/slice_places.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

bool is_clipped(const Attributes& a) {
    const Attribute* clipped = a.find("clipped");
    return clipped && std::get<bool>(*clipped);
}

// The first row, the last input of each of the ops.
const NodePtr& start_of(const Node& node) { return node.inputs.back(); }

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
        is_constant(start_of(node)) ? Int(constant_value(start_of(node)).item<std::int64_t>()) : Int(0);
    demand_place(
        r, first + count, extent,
        describe(whole) + " must have at least " + number_found() + " rows, and has " + number_there());
    demand_at_most(r, 0, count, "the number of rows, " + count.text() + ", must not be negative");
    return r;
}

// The first row as an index; appends the Let that reads it unless it can only be one number.
Int first_row(const Node& node, const Int& extent, const Int& count, Nest& nest) {
    const NodePtr& start = start_of(node);
    if (is_constant(start)) return constant_value(start).item<std::int64_t>();
    // A part longer than the whole is refused before anything runs; a clipped start is right by itself, and
    // its bound need not know a count that changes from call to call.
    const Int choices = is_clipped(node.attributes) ? extent + 1 : max(extent - count + 1, 1);
    const IntRange range = make_loop("row", choices).variable.range();
    Int symbol = choices.is(1) ? Int(0) : Int::symbol("row", range);
    if (symbol.symbol_id())
        nest.lets.push_back(
            {symbol,
             scalar_cast(DType::int64,
                         scalar_read(start->type.dtype, static_cast<int>(node.inputs.size()) - 1, {})),
             choices});
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

// ---- set_rows
// ---------------------------------------------------------------------------------------------------

Type infer_set_rows(const Nodes& inputs, const Attributes&, Where where) {
    const Type &x = inputs[0]->type, &part = inputs[1]->type;
    require_start(inputs[2], "set_rows", where);
    BITALE_CHECK(x.rank() > 0 && part.rank() == x.rank() && part.dtype == x.dtype,
                 "set_rows needs a part of the same dtype and rank");
    return x;
}

Nest nest_set_rows(const Node& node) {
    const Int& count = node.inputs[1]->type.shape[0];
    const std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = variables_of(loops);
    Nest nest = view_nest(node, loops, at);
    at[0] = at[0] - first_row(node, node.type.shape[0], count, nest);
    nest.body = scalar_read(node.type.dtype, 1, at, {{at[0], 0, count}}, nest.body);
    return nest;
}

Array evaluate_set_rows(const Node& node, const std::vector<Array>& inputs) {
    Array r = inputs[0];
    const std::int64_t first =
        checked_start(*node.inputs[0], inputs[2], r.shape()[0], inputs[1].shape()[0], node.where);
    const Dims row(r.shape().begin() + 1, r.shape().end());
    for (std::int64_t from = 0; from < inputs[1].size(); ++from)
        copy_element(r, first * count_of(row) + from, inputs[1], from);
    return r;
}

std::vector<Check> row_checks(const Node& node, const Node& whole, const Int& count) {
    const Int& extent = whole.type.shape[0];
    if (is_clipped(node.attributes) || is_constant(start_of(node))) return {};
    const std::int64_t to_last = count.is_constant() ? count.constant() - 1 : 0;
    const bool is_told_by_call = !extent.is_constant() && count.is_constant();
    const std::string sentence = rows_out_of_range(number_found(), number_found(to_last), count, whole,
                                                   is_told_by_call ? number_there(to_last) : extent.text());
    return {{start_of(node), 0, extent - count + 1,
             with_sentence("the first of " + count.text() + " rows of " + describe(whole), sentence),
             node.where}};
}

}  // namespace

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

const Op* set_rows_op() {
    static const Op* op = register_op({
        .name = "set_rows",
        .title = "set_subtensor",
        .kind = OpKind::view,
        .arity = 3,
        .infer = infer_set_rows,
        .equalities =
            [](const Node& node) {
                return rows_equalities(node, *node.inputs[0], node.inputs[1]->type.shape[0]);
            },
        .checks =
            [](const Node& node) { return row_checks(node, *node.inputs[0], node.inputs[1]->type.shape[0]); },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                const NodePtr &part = node->inputs[1], &start = node->inputs[2];
                const NodePtr none = make_zeros(g->type.dtype, part->type.shape, node->where);
                return Nodes{
                    make_node(set_rows_op(), {g, none, start}, node->attributes, node->where),
                    make_node(rows_op(), {g, start},
                              {{"count", part->type.shape[0]}, {"clipped", is_clipped(node->attributes)}},
                              node->where),
                    nullptr};
            },
        .evaluate = evaluate_set_rows,
        .nest = nest_set_rows,
    });
    return op;
}

}  // namespace bitale
