// Reshapes there and back: x is reshaped, what maps make of it and of other values is reshaped to the form of
// x. Normalisations of groups of channels are written so. The maps are computed in the form of x instead, so
// that what reads their result finds its axes, and not quotients and rests of them.
#include <cstddef>
#include <utility>

#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// x as a value of the shape, by what is below its maps; null where nothing there comes from the shape.
// `depth` bounds what is computed again where other values need x too.
NodePtr in_form(const Match& m, const NodePtr& x, const Shape& shape, int depth) {
    constexpr int expensive = 10;
    if (x != m.root()->inputs[0] && !m.may_look_through(x)) return nullptr;
    if (x->op == reshape_op() && x->inputs[0]->type.shape == shape) return x->inputs[0];
    if (x->op->kind != OpKind::map || depth == 0 || x->op->map->cost >= expensive) return nullptr;
    Nodes inputs = x->inputs;
    bool found = false;
    for (NodePtr& input : inputs) {
        if (input->type.rank() == 0) continue;
        if (NodePtr same = in_form(m, input, shape, depth - 1)) {
            input = std::move(same);
            found = true;
        } else {
            input = make_reshape(input, shape, m.root()->where);
        }
    }
    return found ? make_node(x->op, std::move(inputs), x->attributes, x->where) : nullptr;
}

// Values of other rows are computed by other tasks: the first axis has to stay. Five axes are those of a
// convolution in groups of channels, which a library ends with the bias and relu of the user's four.
NodePtr there_and_back(const Match& m) {
    constexpr int most_maps = 6;
    constexpr std::size_t most_axes = 4;
    const NodePtr& x = m.root()->inputs[0];
    const Shape &to = m.root()->type.shape, &from = x->type.shape;
    if (x->op->kind != OpKind::map || to.size() < 2 || to.size() > most_axes || from.empty() ||
        !(to[0] == from[0]))
        return nullptr;
    return in_form(m, x, to, most_maps);
}

// x as rows where it is a matrix whose rows a reshape put under several axes, or repeats a row for each of
// them.
NodePtr as_rows(const Match& m, const NodePtr& x, const Shape& rows) {
    if (!m.may_look_through(x)) return nullptr;
    const NodePtr& from = x->inputs.empty() ? x : x->inputs[0];
    if (x->op == reshape_op()) return from->type.shape == rows ? from : nullptr;
    if (x->op != expand_op()) return nullptr;
    const Shape& shape = from->type.shape;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i)
        if (!shape[i].is(1)) return nullptr;
    if (shape.empty()) return make_expand(from, rows, x->where);
    if (!shape.back().is(1) && !(shape.back() == rows.back())) return nullptr;
    return make_expand(make_reshape(from, {shape.back()}, x->where), rows, x->where);
}

// Products of more axes than two are products of rows, whose results a reshape puts under these axes. Maps of
// them are computed by rows, which the next product reads.
NodePtr map_by_rows(const Match& m) {
    const NodePtr& map = m.root();
    if (map->type.rank() < 3) return nullptr;
    Shape rows;
    for (const NodePtr& input : map->inputs)
        if (input->op == reshape_op() && input->inputs[0]->type.rank() == 2 && m.may_look_through(input))
            rows = input->inputs[0]->type.shape;
    if (rows.empty() || !(rows.back() == map->type.shape.back())) return nullptr;
    Nodes inputs = map->inputs;
    for (NodePtr& input : inputs)
        if (input->type.rank() > 0 && !(input = as_rows(m, input, rows))) return nullptr;
    return make_reshape(make_node(map->op, std::move(inputs), map->attributes, map->where), map->type.shape,
                        map->where);
}

}  // namespace

std::vector<Rule> round_trip_rules() {
    return {{"reshape-round-trip", Pattern::apply("reshape", {Pattern::any("x").again()}), there_and_back},
            {"map-by-rows", Pattern::of_kind(OpKind::map, "map"), map_by_rows}};
}

}  // namespace bitale
