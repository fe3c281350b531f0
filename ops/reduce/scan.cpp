#include "ops/reduce/scan.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

// What tells one scan from another.
struct ScanKind {
    const char* name;
    Combine combine;
    bool floats_only;
};

Type infer_scan(const ScanKind& kind, const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    const auto axis = attributes.get<std::int64_t>("axis");
    BITALE_CHECK(axis >= 0 && axis < x.rank(), "the axis of " + std::string(kind.name));
    if (kind.floats_only && !is_float(x.dtype))
        throw TypeError(where, std::string(kind.name) + " takes floats, not " + describe(*inputs[0]));
    Type type = x;
    type.dtype = is_float(x.dtype) ? x.dtype : accumulator_of(x.dtype);
    if (kind.combine != Combine::affine) return type;
    const Type& other = inputs[1]->type;
    bool fits = other.dtype == x.dtype && other.rank() == x.rank();
    for (std::size_t i = 0; fits && i < x.shape.size(); ++i) {
        fits = !never_equal(x.shape[i], other.shape[i]);
        if (other.shape[i].is_constant()) type.shape[i] = other.shape[i];
    }
    if (!fits)
        throw ShapeError(where, std::string(kind.name) + " takes two tensors of one type, not " +
                                    describe(*inputs[0]) + " and " + describe(*inputs[1]));
    return type;
}

// Of no points at all.
Scalar of_nothing(Combine combine, DType dtype) {
    if (combine == Combine::max) return scalar_constant(dtype, -std::numeric_limits<double>::infinity());
    return scalar_integer(dtype, combine == Combine::prod ? 1 : 0);
}

// Of each place the points before it, counted from where the walk begins.
Nest nest_scan(const ScanKind& kind, const Node& node) {
    const Type& x = node.inputs[0]->type;
    const Scan scan = scan_of(node);
    const auto axis = static_cast<std::size_t>(scan.axis);
    const Int length = node.type.shape[axis];
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.dtype = node.type.dtype;
    nest.accumulator = accumulator_of(x.dtype);
    nest.combine = kind.combine;
    const Int place = nest.parallel[axis].variable;
    std::vector<Int> at = variables_of(nest.parallel);
    if (!length.is(1)) {
        nest.reduced = loops_over({length}, "k");
        const Int before = nest.reduced[0].variable;
        const Int here = scan.reverse ? length - 1 - place : place;
        nest.guards = {{before, 0, scan.exclusive ? here : here + 1}};
        at[axis] = scan.reverse ? length - 1 - before : before;
    }
    const auto element = [&](int operand) {
        return scalar_cast(nest.accumulator, scalar_read(x.dtype, operand, at));
    };
    const bool affine = kind.combine == Combine::affine;
    if (length.is(1)) {
        nest.combine = Combine::none;
        nest.body = scalar_cast(nest.dtype, scan.exclusive ? of_nothing(kind.combine, nest.accumulator)
                                                           : element(affine ? 1 : 0));
    } else {
        nest.body =
            affine ? scalar_apply(affine_pair(), nest.accumulator, {element(0), element(1)}) : element(0);
    }
    return nest;
}

// ---- The oracle
// -------------------------------------------------------------------------------------------------

// step(position of an element, result so far) gives the next result; which of both is kept is the scan's
// matter.
template <class T, class Step, class Keep>
void walk_lines(const Dims& shape, const Scan& scan, T start, const Step& step, const Keep& keep) {
    const auto axis = shape.begin() + scan.axis;
    const std::int64_t outer = count_of(Dims(shape.begin(), axis)),
                       inner = count_of(Dims(axis + 1, shape.end())), length = *axis;
    for (std::int64_t i = 0; i < outer; ++i)
        for (std::int64_t j = 0; j < inner; ++j) {
            T so_far = start;
            for (std::int64_t k = 0; k < length; ++k) {
                const std::int64_t at = (i * length + (scan.reverse ? length - 1 - k : k)) * inner + j;
                const T next = step(static_cast<std::size_t>(at), so_far);
                keep(static_cast<std::size_t>(at), scan.exclusive ? so_far : next);
                so_far = next;
            }
        }
}

double combined(Combine combine, double a, double b) {
    if (combine == Combine::max) return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b);
    return combine == Combine::prod ? a * b : a + b;
}

Array evaluate_scan(const ScanKind& kind, const Node& node, const std::vector<Array>& inputs) {
    const Scan scan = scan_of(node);
    const Dims shape = static_dims(node.type.shape);
    if (is_float(node.type.dtype)) {
        Array r(DType::float64, shape);
        auto* to = static_cast<double*>(r.mutable_data());
        const auto x = inputs[0].view<double>();
        const auto keep = [&](std::size_t at, double value) { to[at] = value; };
        if (kind.combine == Combine::affine) {
            const auto b = inputs[1].view<double>();
            walk_lines(
                shape, scan, 0.0, [&](std::size_t at, double so_far) { return x[at] * so_far + b[at]; },
                keep);
            return r;
        }
        const double start = kind.combine == Combine::sum    ? 0
                             : kind.combine == Combine::prod ? 1
                                                             : -std::numeric_limits<double>::infinity();
        walk_lines(
            shape, scan, start,
            [&](std::size_t at, double so_far) { return combined(kind.combine, so_far, x[at]); }, keep);
        return r;
    }
    // Integers wrap, so they meet as unsigned numbers.
    const Array wide = inputs[0].as(node.type.dtype);
    Array r(node.type.dtype, shape);
    auto* to = static_cast<std::uint64_t*>(r.mutable_data());
    const auto* x = static_cast<const std::uint64_t*>(wide.data());
    const bool product = kind.combine == Combine::prod;
    walk_lines(
        shape, scan, std::uint64_t{product ? 1U : 0U},
        [&](std::size_t at, std::uint64_t so_far) { return product ? so_far * x[at] : so_far + x[at]; },
        [&](std::size_t at, std::uint64_t value) { to[at] = value; });
    return r;
}

const Op* register_scan(const ScanKind& kind, Nodes (*gradient)(const NodePtr&, const NodePtr&)) {
    Op op;
    op.name = kind.name;
    op.kind = OpKind::reduce;
    op.arity = kind.combine == Combine::affine ? 2 : 1;
    op.infer = [kind](const Nodes& inputs, const Attributes& attributes, Where where) {
        return infer_scan(kind, inputs, attributes, where);
    };
    if (kind.combine == Combine::affine)
        op.equalities = [](const Node& node) {
            std::vector<Equality> r;
            const Shape &a = node.inputs[0]->type.shape, &b = node.inputs[1]->type.shape;
            for (std::size_t i = 0; i < a.size(); ++i)
                demand_equal(r, a[i], b[i],
                             "the lengths of axis " + std::to_string(i) + " of the operands of recurrence");
            return r;
        };
    op.gradient = gradient;
    op.evaluate = [kind](const Node& node, const std::vector<Array>& inputs) {
        return evaluate_scan(kind, node, inputs);
    };
    op.nest = [kind](const Node& node) { return nest_scan(kind, node); };
    return register_op(std::move(op));
}

}  // namespace

Scan scan_of(const Node& node) {
    return {node.attributes.get<std::int64_t>("axis"), node.attributes.get<bool>("exclusive"),
            node.attributes.get<bool>("reverse")};
}

const Op* cumsum_op() {
    static const Op* op = register_scan({"cumsum", Combine::sum, false}, gradient_cumsum);
    return op;
}
const Op* cumprod_op() {
    static const Op* op = register_scan({"cumprod", Combine::prod, false}, gradient_cumprod);
    return op;
}
const Op* cummax_op() {
    static const Op* op = register_scan({"cummax", Combine::max, true}, no_gradient);
    return op;
}
const Op* recurrence_op() {
    static const Op* op = register_scan({"recurrence", Combine::affine, true}, gradient_recurrence);
    return op;
}

void register_scan_ops() {
    for (const Op* op : {cumsum_op(), cumprod_op(), cummax_op(), recurrence_op(), logcumsumexp_op()})
        BITALE_CHECK(op, "a scan is not registered");
}

}  // namespace bitale
