#include "codegen/split/exact_totals.h"

#include <algorithm>

#include "graph/base/options.h"
#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"

namespace bitale {

namespace {

// Moves or repeats elements of its first operand, and gives them as they are.
bool moves_elements(const Node& node) {
    return node.op->kind == OpKind::view && !node.inputs.empty() &&
           node.type.dtype == node.inputs[0]->type.dtype &&
           std::none_of(node.inputs.begin() + 1, node.inputs.end(),
                        [](const NodePtr& x) { return is_float(x->type.dtype); });
}

// The integers whose conversion `x` is, or null.
NodePtr integers_behind(const NodePtr& x) {
    constexpr int most_bits = 16;  // so that float32 has each of them
    NodePtr at = x;
    Nodes views;
    for (; moves_elements(*at); at = at->inputs[0]) views.push_back(at);
    if (at->op != cast_op()) return nullptr;
    NodePtr integers = at->inputs[0];
    const DType dtype = integers->type.dtype;
    if (is_float(dtype) || bits_of(dtype) > most_bits) return nullptr;
    for (; !views.empty(); views.pop_back()) {
        Nodes operands = views.back()->inputs;
        operands[0] = integers;
        integers = with_inputs(views.back(), std::move(operands));
    }
    return integers;
}

}  // namespace

ExactTotal exact_total(const NodePtr& sum) {
    if (sum->op != sum_op() || (sum->type.dtype != DType::float32 && sum->type.dtype != DType::float64))
        return {};
    const NodePtr& terms = sum->inputs[0];
    ExactTotal total{integers_behind(terms), nullptr};
    if (!total.integers && terms->op == mul_op() && !options().strict_math)
        for (const std::size_t k : {0U, 1U}) {
            const NodePtr &number = terms->inputs[k], &scale = terms->inputs[1 - k];
            if (total.integers || number->op != cast_op() || number->type.rank() == 0 ||
                scale->type.rank() > 0)
                continue;
            total = {integers_behind(number), scale};
        }
    if (!total.integers) return {};
    const Expr wide = cast(wrap(total.integers), int64, sum->where);
    total.integers = make_node(sum_op(), {wide.node()}, sum->attributes, sum->where);
    return total;
}

}  // namespace bitale
