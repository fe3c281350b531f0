#include "ops/reduce/cumulative.h"

#include <cmath>
#include <string>

#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/reduce/scan.h"

namespace bitale {

namespace {

Term scanned(const Op* op, const Term& x, const Scan& scan) {
    return {make_node(op, {x.node()}, scan.attributes(), x.where), x.where};
}

Term recurrence(const Term& a, const Term& b, const Scan& scan) {
    return {make_node(recurrence_op(), {a.node(), b.node()}, scan.attributes(), a.where), a.where};
}

// Halves do no arithmetic of their own.
NodePtr in(DType dtype, const NodePtr& x, Where where) {
    return x->type.dtype == dtype ? x : make_node(cast_op(), {x}, {{"dtype", dtype}}, where);
}

// The gradient of b where s[i] = a[i] * s[i - 1] + b[i]: from the end, r[i] = g[i] + a[i + 1] * r[i + 1]. The
// neighbour's factor is had by the product u[i] = a[i] * r[i], of which each place wants the next one.
Term carried_back(const Term& a, const Term& g, const Scan& scan) {
    const Scan from_end = scan.without_own().backwards();
    if (scan.exclusive) return recurrence(a, g, from_end);
    return g + recurrence(a, a * g, from_end);
}

// ---- logcumsumexp

Type infer_logcumsumexp(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    if (x.dtype != float32 && x.dtype != float64)
        throw TypeError(where, "logcumsumexp takes float32 or float64, not " + describe(*inputs[0]) +
                                   "; write " + cast_text(inputs[0], float32));
    return make_node(cumsum_op(), inputs, attributes, where)->type;
}

Array evaluate_logcumsumexp(const Node& node, const std::vector<Array>& inputs) {
    const Scan scan = scan_of(node);
    const Array& x = inputs[0];
    const auto axis = x.shape().begin() + scan.axis;
    const std::int64_t inner = count_of(Dims(axis + 1, x.shape().end())), length = *axis;
    Array r(float64, x.shape());
    const auto from = x.view<double>();
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::int64_t line = 0; line < count_of(x.shape()); ++line) {
        const std::int64_t number = line / inner % length;  // along the axis
        double highest = -INFINITY, sum = 0;
        const auto each = [&](const auto& f) {
            const std::int64_t low = scan.reverse ? number + (scan.exclusive ? 1 : 0) : 0,
                               high = scan.reverse ? length : number + (scan.exclusive ? 0 : 1);
            for (std::int64_t k = low; k < high; ++k)
                f(from[static_cast<std::size_t>(line + (k - number) * inner)]);
        };
        each([&](double v) { highest = v > highest || std::isnan(v) ? v : highest; });
        each([&](double v) { sum += std::exp(std::isinf(highest) ? v : v - highest); });
        to[line] = std::isinf(highest) ? std::log(sum) : highest + std::log(sum);
    }
    return r;
}

// The sum of exp(x - m), with m the maximum so far: where m grows, what was summed up before is scaled down.
// An infinite maximum must not be subtracted from itself.
struct Carried {
    Term top;    // m, of which infinities are 0
    Term scale;  // exp of by how much m has fallen short of the one before, 1 at most
    Term each;   // exp(x - m)
};

Carried carried(const NodePtr& node) {
    const Where where = node->where;
    const Term x(node->inputs[0], where);
    const Scan own = {scan_of(*node).axis, false, scan_of(*node).reverse};
    const auto finite = [&](const Term& t) {
        return compose(where_op(), {map(isinf_op(), t).x, literal(0, where), t.x}, where);
    };
    const Term before = scanned(cummax_op(), x, own.without_own()),
               level = finite(scanned(cummax_op(), x, own));
    return {scan_of(*node).exclusive ? finite(before) : level, exp(before - level), exp(x - level)};
}

NodePtr decompose_logcumsumexp(const NodePtr& node) {
    const Carried c = carried(node);
    return (log(recurrence(c.scale, c.each, scan_of(*node))) + c.top).node();
}

// Through the sum alone: the result does not depend on the maximum.
Nodes gradient_logcumsumexp(const NodePtr& node, const NodePtr& g) {
    const Carried c = carried(node);
    const Scan scan = scan_of(*node);
    const Term sum = recurrence(c.scale, c.each, scan);
    const Term share = zero_where(sum, 0, Term(g, node->where) / sum);
    return {(carried_back(c.scale, share, scan) * c.each).node()};
}

Expr scan_along(const Op* op, const Expr& x, std::optional<int> axis, ScanOptions options, Where where) try {
    require_present(op->name.c_str(), {&x}, where);
    const Expr flat = axis ? x : reshape_to(x, {count_of(type_of(x).shape)}, where);
    const Scan scan{axis ? checked_axis(*axis, x, op->name.c_str(), where) : 0, options.exclusive,
                    options.reverse};
    return apply(op, {flat}, scan.attributes(), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace

Nodes gradient_cumsum(const NodePtr& node, const NodePtr& g) {
    if (!is_float(node->inputs[0]->type.dtype)) return {nullptr};
    return {scanned(cumsum_op(), {g, node->where}, scan_of(*node).backwards()).node()};
}

// x[k] is a factor of all results from its place on: their gradients, each times the factors between k and
// it, summed up from the end, and times the product before k. There is no quotient, so zeros are as other
// numbers.
Nodes gradient_cumprod(const NodePtr& node, const NodePtr& gradient) {
    const Where where = node->where;
    if (!is_float(node->inputs[0]->type.dtype)) return {nullptr};
    const Scan scan = scan_of(*node);
    const Term x(in(gradient->type.dtype, node->inputs[0], where), where);
    const Term behind = carried_back(x, {gradient, where}, scan);
    return {(scanned(cumprod_op(), x, scan.without_own()) * behind).node()};
}

Nodes gradient_recurrence(const NodePtr& node, const NodePtr& gradient) {
    const Where where = node->where;
    const DType wide = gradient->type.dtype;
    const Scan scan = scan_of(*node);
    const Term a(in(wide, node->inputs[0], where), where), b(in(wide, node->inputs[1], where), where);
    const Term of_b = carried_back(a, {gradient, where}, scan),
               of_a = of_b * recurrence(a, b, scan.without_own());
    return {of_a.node(), of_b.node()};
}

const Op* logcumsumexp_op() {
    static const Op* op = register_op({
        .name = "logcumsumexp",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = infer_logcumsumexp,
        .gradient = gradient_logcumsumexp,
        .evaluate = evaluate_logcumsumexp,
        .decompose = decompose_logcumsumexp,
    });
    return op;
}

Expr cumsum(const Expr& x, std::optional<int> axis, ScanOptions options, Where where) {
    return scan_along(cumsum_op(), x, axis, options, where);
}
Expr cumprod(const Expr& x, std::optional<int> axis, ScanOptions options, Where where) {
    return scan_along(cumprod_op(), x, axis, options, where);
}
Expr logcumsumexp(const Expr& x, std::optional<int> axis, ScanOptions options, Where where) {
    return scan_along(logcumsumexp_op(), x, axis, options, where);
}

}  // namespace bitale
