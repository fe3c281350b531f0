#include "ops/reduce/others.h"

#include <cstddef>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

Type infer_rows(const Nodes& inputs, const Attributes&, Where) {
    BITALE_CHECK(inputs[0]->type.rank() == 2 && is_float(inputs[0]->type.dtype),
                 "products along rows of what is no matrix");
    return inputs[0]->type;
}

// from[i] = step(product so far, element) for each row, forward or backward.
template <class Put>
void walk_rows(const Array& x, bool backward, const Put& put) {
    const std::int64_t rows = x.shape()[0], n = x.shape()[1];
    const auto from = x.view<double>();
    for (std::int64_t r = 0; r < rows; ++r) {
        double running = 1;
        for (std::int64_t k = 0; k < n; ++k) {
            const auto at = static_cast<std::size_t>(r * n + (backward ? n - 1 - k : k));
            put(at, running);
            running *= from[at];
        }
    }
}

Array evaluate_others(const Node&, const std::vector<Array>& inputs) {
    Array r(float64, inputs[0].shape());
    auto* to = static_cast<double*>(r.mutable_data());
    walk_rows(inputs[0], false, [&](std::size_t at, double running) { to[at] = running; });
    walk_rows(inputs[0], true, [&](std::size_t at, double running) { to[at] *= running; });
    return r;
}

NodePtr decompose_others(const NodePtr& node) {
    const Where where = node->where;
    const NodePtr& x = node->inputs[0];
    const Scan before{.axis = 1, .exclusive = true};
    return make_node(mul_op(),
                     {make_node(cumprod_op(), {x}, before.attributes(), where),
                      make_node(cumprod_op(), {x}, before.backwards().attributes(), where)},
                     {}, where);
}

// Through the products of all pairs: [rows, element, other].
Nodes gradient_others(const NodePtr& node, const NodePtr& g) {
    const NodePtr& x = node->inputs[0];
    const Where where = node->where;
    const Int rows = x->type.shape[0], n = x->type.shape[1];
    const Shape pairs{rows, n, n};
    const NodePtr numbers = make_iota(n, where);
    const NodePtr itself = make_node(
        eq_op(),
        {make_expand(make_reshape(numbers, {n, 1}, where), pairs, where), make_expand(numbers, pairs, where)},
        {}, where);
    const auto number = [&](double value) { return make_constant(Array(value).as(x->type.dtype), where); };
    const NodePtr others = make_expand(make_reshape(x, {rows, 1, n}, where), pairs, where);
    const NodePtr masked = make_node(where_op(), {itself, number(1), others}, {}, where);
    const std::vector<std::int64_t> last{2}, elements{1};
    const NodePtr product = make_node(prod_op(), {masked}, {{"axes", last}}, where);
    const NodePtr of_masked = product->op->gradient(product, g)[0];
    const NodePtr of_others = make_node(where_op(), {itself, number(0), of_masked}, {}, where);
    return {make_node(sum_op(), {of_others}, {{"axes", elements}}, where)};
}

}  // namespace

const Op* prod_of_others_op() {
    static const Op* op = register_op({
        .name = "prod_of_others",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = infer_rows,
        .gradient = gradient_others,
        .evaluate = evaluate_others,
        .decompose = decompose_others,
    });
    return op;
}

}  // namespace bitale
