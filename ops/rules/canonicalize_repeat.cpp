// Repeated values: compute first, repeat afterwards; scalars enter maps as they are.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

bool repeats(const Match& m, const NodePtr& node) {
    return node->op == expand_op() && m.may_look_through(node);
}
bool repeats_scalar(const Match& m, const NodePtr& node) {
    return repeats(m, node) && node->inputs[0]->type.rank() == 0;
}

// f(x, expand(scalar)) = f(x, scalar), and expand(f(scalar, scalar)) where every operand is one.
NodePtr with_scalars(const Match& m) {
    const NodePtr& map = m.root();
    if (map->type.rank() == 0) return nullptr;
    Nodes inputs = map->inputs;
    bool changed = false, whole = false;
    for (NodePtr& input : inputs) {
        if (repeats_scalar(m, input)) {
            input = input->inputs[0];
            changed = true;
        }
        whole |= input->type.shape == map->type.shape;
    }
    if (!changed) return nullptr;
    const NodePtr made = make_node(map->op, std::move(inputs), map->attributes, map->where);
    if (whole) return made->type == map->type ? made : nullptr;
    return made->type.rank() == 0 ? make_expand(made, map->type.shape, map->where) : nullptr;
}

// f(expand(x), scalar) = expand(f(x, scalar)): one operand is repeated, the others are scalars.
NodePtr before_repeating(const Match& m) {
    const NodePtr& map = m.root();
    Nodes inputs = map->inputs;
    int repeated = 0;
    for (NodePtr& input : inputs) {
        if (input->type.rank() == 0) continue;
        if (!repeats(m, input) || ++repeated > 1) return nullptr;
        input = input->inputs[0];
    }
    if (repeated == 0) return nullptr;
    return make_expand(make_node(map->op, std::move(inputs), map->attributes, map->where), map->type.shape,
                       map->where);
}

// A view of the same number everywhere is that number everywhere.
NodePtr view_of_repeated_scalar(const Match& m) {
    const NodePtr& view = m.root();
    const bool moves = view->op == reshape_op() || view->op == permute_op() || view->op == flip_op() ||
                       view->op->name == "slice" || view->op->name == "rows" || view->op->name == "gather";
    if (!moves || !repeats_scalar(m, view->inputs[0])) return nullptr;
    return make_expand(view->inputs[0]->inputs[0], view->type.shape, view->where);
}

// Each row so many times, as images are enlarged: x[i / times] for i below times * rows.
NodePtr rows_repeated(const Match& m, const Pattern& x, const Pattern& range, const Pattern& first,
                      const Pattern& times) {
    const NodePtr &rows = m[x], &root = m.root();
    const double number = m.number(times);
    constexpr double most = 1 << 20;
    if (m.number(first) != 0 || !(number >= 2) || number > most || rows->type.rank() == 0) return nullptr;
    const auto count = static_cast<std::int64_t>(number);
    Shape shape = rows->type.shape;
    const Type& index = root->inputs[1]->type;
    if (index.rank() != 1 || !(root->type.shape[0] == shape[0] * count)) return nullptr;
    // Neither the range nor a cast of the places wraps.
    const auto holds = [](DType dtype, const Int& numbers) {
        return bits_of(dtype) == 64 || numbers.range().high <= std::int64_t{1} << (bits_of(dtype) - 1);
    };
    if (!holds(index.dtype, shape[0]) || !holds(m[range]->type.dtype, shape[0] * count)) return nullptr;
    shape.insert(shape.begin() + 1, Int(1));
    const NodePtr apart = make_reshape(rows, shape, root->where);
    shape[1] = count;
    return make_reshape(make_expand(apart, shape, root->where), root->type.shape, root->where);
}

}  // namespace

std::vector<Rule> repeat_rules() {
    const Pattern x = any("x"), first = constant("first"), times = constant("times"),
                  range = Pattern::apply("range", {first}), number = floordiv(range, times);
    const auto repeated = [=](const Match& m) { return rows_repeated(m, x, range, first, times); };
    const Pattern map = Pattern::of_kind(OpKind::map, "map"), view = Pattern::of_kind(OpKind::view, "view");
    return {
        {"map-scalar", map, with_scalars},
        {"map-before-expand", map, before_repeating},
        {"view-of-scalar", view, view_of_repeated_scalar},
        {"gather-repeated", Pattern::apply("gather", {x, number}), repeated},
        {"gather-repeated-of-cast", Pattern::apply("gather", {x, cast(number)}), repeated},
    };
}

}  // namespace bitale
