// Logarithms of softmax and of sums of exponentials.
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using Axes = std::vector<std::int64_t>;

// Whether x is already u - max(u), in whatever dress.
bool is_shifted(const NodePtr& x) {
    if (x->op != sub_op()) return false;
    constexpr int most_dress = 8;
    Nodes inside = {x->inputs[1]};
    for (int depth = 0; depth < most_dress && !inside.empty(); ++depth) {
        Nodes next;
        for (const NodePtr& node : inside) {
            if (node->op == max_op()) return node->inputs[0] == x->inputs[0];
            if (node->op->kind != OpKind::reduce)
                next.insert(next.end(), node->inputs.begin(), node->inputs.end());
        }
        inside = std::move(next);
    }
    return false;
}

// log(sum(exp(x))) = log(sum(exp(x - m))) + m with m the maximum. No gradient is lost by holding m fixed: the
// result does not depend on it. An infinite maximum must not be subtracted from itself.
NodePtr shifted(const Match& m, const Pattern& x, const Pattern& total) {
    const NodePtr& operand = m[x];
    const Axes& axes = m[total]->attributes.get<Axes>("axes");
    if (!is_float(operand->type.dtype) || axes.empty() || is_shifted(operand)) return nullptr;
    Shape kept = operand->type.shape;
    for (const std::int64_t axis : axes) {
        Int& length = kept[static_cast<std::size_t>(axis)];
        if (length.range().low < 1) return nullptr;  // nothing has no maximum
        length = 1;
    }
    const Where where = m.root()->where;
    const auto make = [where](const Op* op, Nodes inputs, Attributes attributes = {}) {
        return make_node(op, std::move(inputs), std::move(attributes), where);
    };
    const NodePtr top = make(max_op(), {operand}, {{"axes", axes}});
    const NodePtr zero = scalar_node(top->type.dtype, 0, where);
    const NodePtr finite = make(where_op(), {make(isinf_op(), {top}), zero, top});
    const NodePtr fixed = make(find_op("disconnected_grad"), {finite});
    const NodePtr all = make_expand(make_reshape(fixed, kept, where), operand->type.shape, where);
    const NodePtr sum = make(sum_op(), {make(exp_op(), {make(sub_op(), {operand, all})})}, {{"axes", axes}});
    return make(add_op(), {make(log_op(), {sum}), fixed});
}

// A view that only moves elements commutes with a map.
Rule log_of_moved_softmax(const char* view) {
    const Pattern x = any("x"), inner = softmax(x), moved = Pattern::apply(view, {inner}).again();
    return {std::string("log-softmax-") + view, log(moved), Pattern::apply(view, {log(inner)}).like(moved),
            Tag::stabilizes};
}

}  // namespace

std::vector<Rule> stabilize_softmax_rules() {
    const Pattern x = any("x"), total = sum(exp(x)).again();
    return {
        {"log-softmax", log(softmax(x).again()), log_softmax(x), Tag::stabilizes},
        {"exp-log-softmax", exp(log_softmax(x)), softmax(x), Tag::stabilizes},
        {"log-sum-exp", log(total), [=](const Match& m) { return shifted(m, x, total); }, Tag::stabilizes},
        log_of_moved_softmax("reshape"),
        log_of_moved_softmax("permute"),
        log_of_moved_softmax("slice"),
    };
}

}  // namespace bitale
