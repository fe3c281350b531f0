#include "ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ir/fault_text.h"
#include "graph/types/convert.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/kept.h"
#include "ops/reduce/others.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"

namespace bitale {

DType accumulator_of(DType dtype) {
    if (dtype == DType::float64) return DType::float64;
    if (is_float(dtype)) return DType::float32;
    return is_unsigned_integer(dtype) ? DType::uint64 : DType::int64;
}

std::vector<std::int64_t> reduced_axes(const Node& node) {
    return node.attributes.get<std::vector<std::int64_t>>("axes");
}

Shape kept_as_ones(const Node& node) {
    Shape shape = node.inputs[0]->type.shape;
    for (const std::int64_t axis : reduced_axes(node)) shape[static_cast<std::size_t>(axis)] = 1;
    return shape;
}

Int reduced_count(const Node& node) {
    Int count = 1;
    for (const std::int64_t axis : reduced_axes(node))
        count = count * node.inputs[0]->type.shape[static_cast<std::size_t>(axis)];
    return count;
}

namespace {

// What tells one reduction from another.
struct ReductionKind {
    const char* name;
    Combine combine;
    DType (*result)(DType);
    bool needs_elements;  // has no value for nothing
};

DType sum_result(DType t) { return is_float(t) ? t : accumulator_of(t); }
DType same_result(DType t) { return t; }
DType boolean_result(DType) { return DType::boolean; }
DType position_result(DType) { return DType::int64; }

Type infer_reduction(const ReductionKind& kind, const Nodes& inputs, const Attributes& attributes,
                     Where where) {
    const Type& x = inputs[0]->type;
    const auto& axes = attributes.get<std::vector<std::int64_t>>("axes");
    BITALE_CHECK(std::is_sorted(axes.begin(), axes.end()) && (axes.empty() || axes.back() < x.rank()),
                 "axes of " + std::string(kind.name));
    Type type{kind.result(x.dtype), {}};
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
        if (!contains(axes, i))
            type.shape.push_back(x.shape[i]);
        else if (kind.needs_elements && x.shape[i].is(0))
            throw ShapeError(where, std::string(kind.name) + " of " + describe(*inputs[0]) + ": axis " +
                                        std::to_string(i) + " is empty, and nothing has no " + kind.name);
    }
    return type;
}

Nest nest_reduction(const ReductionKind& kind, const Node& node) {
    const Type& x = node.inputs[0]->type;
    const std::vector<std::int64_t> axes = reduced_axes(node);
    Nest nest;
    std::vector<Int> at;
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
        std::vector<Loop>& loops = contains(axes, i) ? nest.reduced : nest.parallel;
        loops.push_back(
            make_loop((&loops == &nest.reduced ? "k" : "i") + std::to_string(loops.size()), x.shape[i]));
        at.push_back(loops.back().variable);
    }
    nest.dtype = node.type.dtype;
    nest.combine = kind.combine;
    switch (kind.combine) {
        case Combine::sum:
        case Combine::prod: nest.accumulator = accumulator_of(x.dtype); break;
        case Combine::any:
        case Combine::all: nest.accumulator = DType::boolean; break;
        default: nest.accumulator = is_float(x.dtype) ? accumulator_of(x.dtype) : x.dtype;
    }
    nest.body = scalar_cast(nest.accumulator, scalar_read(x.dtype, 0, at));
    if (nest.reduced.empty()) {
        const bool position = kind.combine == Combine::argmax || kind.combine == Combine::argmin;
        nest.combine = Combine::none;
        nest.body = position ? scalar_integer(DType::int64, 0) : scalar_cast(nest.dtype, nest.body);
    }
    return nest;
}

// ---- The oracle
// -------------------------------------------------------------------------------------------------

// step(element of the result, number of the element within its reduction, value) for every element of x.
template <class T, class Step>
void walk(const Array& x, const std::vector<std::int64_t>& axes, const Dims& shape, Step&& step) {
    const T* value = static_cast<const T*>(x.data());
    Dims kept, reduced, reduced_shape;
    for (const std::int64_t axis : axes) reduced_shape.push_back(x.shape()[static_cast<std::size_t>(axis)]);
    for_each_index(x.shape(), [&](const Dims& at) {
        kept.clear();
        reduced.clear();
        for (std::size_t i = 0; i < at.size(); ++i) (contains(axes, i) ? reduced : kept).push_back(at[i]);
        step(linear_of(kept, shape), linear_of(reduced, reduced_shape), *value++);
    });
}

template <class T>
bool is_better(T value, T best, bool greater) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(best)) return false;
        if (std::isnan(value)) return true;
    }
    return greater ? value > best : value < best;
}

template <class T>
Array reduced(const ReductionKind& kind, const Array& x, const std::vector<std::int64_t>& axes,
              const Dims& shape) {
    using Sum = std::conditional_t<
        std::is_floating_point_v<T>, double,
        std::conditional_t<std::is_unsigned_v<T> && !std::is_same_v<T, bool>, std::uint64_t, std::int64_t>>;
    switch (kind.combine) {
        case Combine::sum:
        case Combine::prod: {
            // Integers wrap, so they meet as unsigned numbers.
            using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
            const bool product = kind.combine == Combine::prod;
            std::vector<Wide> totals(static_cast<std::size_t>(count_of(shape)), product ? Wide(1) : Wide(0));
            walk<T>(x, axes, shape, [&](std::int64_t to, std::int64_t, T value) {
                Wide& total = totals[static_cast<std::size_t>(to)];
                total = product ? total * static_cast<Wide>(value) : total + static_cast<Wide>(value);
            });
            return Array(std::vector<Sum>(totals.begin(), totals.end()), shape);
        }
        case Combine::any:
        case Combine::all: {
            const bool all = kind.combine == Combine::all;
            Array r(DType::boolean, shape);
            bool* truth = static_cast<bool*>(r.mutable_data());
            std::fill(truth, truth + r.size(), all);
            walk<T>(x, axes, shape, [&](std::int64_t to, std::int64_t, T value) {
                truth[to] = all ? truth[to] && value != T(0) : truth[to] || value != T(0);
            });
            return r;
        }
        default: break;
    }
    const bool greater = kind.combine == Combine::max || kind.combine == Combine::argmax;
    Array best(x.dtype(), shape), position(DType::int64, shape);
    T* values = static_cast<T*>(best.mutable_data());
    constexpr bool is_real = std::is_floating_point_v<T>;
    std::fill(values, values + best.size(),
              is_real ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest());
    auto* positions = static_cast<std::int64_t*>(position.mutable_data());
    walk<T>(x, axes, shape, [&](std::int64_t to, std::int64_t number, T value) {
        if (number > 0 && !is_better(value, values[to], greater)) return;
        values[to] = value;
        positions[to] = number;
    });
    return kind.combine == Combine::max || kind.combine == Combine::min ? best : position;
}

Array evaluate_reduction(const ReductionKind& kind, const Node& node, const std::vector<Array>& inputs) {
    const Dims shape = static_dims(node.type.shape);
    return dispatch(inputs[0].dtype(), [&](auto t) -> Array {
        if constexpr (Number<decltype(t)>)
            return reduced<decltype(t)>(kind, inputs[0], reduced_axes(node), shape);
        BITALE_CHECK(false, "the oracle widens half types before " + node.op->name);
        return {};
    });
}

const Op* register_reduction(const ReductionKind& kind, Nodes (*gradient)(const NodePtr&, const NodePtr&)) {
    Op op;
    op.name = kind.name;
    op.kind = OpKind::reduce;
    op.arity = 1;
    op.infer = [kind](const Nodes& inputs, const Attributes& attributes, Where where) {
        return infer_reduction(kind, inputs, attributes, where);
    };
    if (kind.needs_elements)
        op.equalities = [kind](const Node& node) {
            std::vector<Equality> r;
            demand_at_most(r, 1, reduced_count(node),
                           std::string(kind.name) + " of " + describe(*node.inputs[0]) +
                               " needs at least 1 element to choose from, but there are " + number_there());
            return r;
        };
    op.gradient = gradient;
    op.evaluate = [kind](const Node& node, const std::vector<Array>& inputs) {
        return evaluate_reduction(kind, node, inputs);
    };
    op.nest = [kind](const Node& node) { return nest_reduction(kind, node); };
    return register_op(std::move(op));
}

// ---- mean
// -------------------------------------------------------------------------------------------------------

DType mean_result(DType t) { return is_float(t) ? t : DType::float32; }

NodePtr make_cast(const NodePtr& x, DType dtype, Where where) {
    return x->type.dtype == dtype ? x : make_node(cast_op(), {x}, {{"dtype", dtype}}, where);
}

// The sum of the elements as floats, so that bytes and floats of the same values have the same mean to the
// bit.
NodePtr decompose_mean(const NodePtr& node) {
    const DType wide = accumulator_of(node->type.dtype);
    const NodePtr total =
        make_sum(make_cast(node->inputs[0], wide, node->where), reduced_axes(*node), node->where);
    const NodePtr quotient =
        make_node(div_op(), {total, number_of(reduced_count(*node), wide, node->where)}, {}, node->where);
    return make_cast(quotient, node->type.dtype, node->where);
}

Array evaluate_mean(const Node& node, const std::vector<Array>& inputs) {
    static const ReductionKind sum{"sum", Combine::sum, sum_result, false};
    const Dims shape = static_dims(node.type.shape);
    Array r = reduced<double>(sum, inputs[0].as(DType::float64), reduced_axes(node), shape);
    auto* values = static_cast<double*>(r.mutable_data());
    for (std::int64_t i = 0; i < r.size(); ++i)
        values[i] /= static_cast<double>(reduced_count(node).constant());
    return r;
}

}  // namespace

// ---- What users call
// --------------------------------------------------------------------------------------------

Expr reduce(const Op* op, const Expr& x, const Axes& axes, ReduceOptions options, Where where) try {
    require_present(op->name.c_str(), {&x}, where);
    std::vector<std::int64_t> all;
    if (axes.empty())
        for (int i = 0; i < x.rank(); ++i) all.push_back(i);
    for (const int axis : axes) all.push_back(checked_axis(axis, x, op->name.c_str(), where));
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
        throw IndexError(where, op->name + " of " + describe(*x.node()) + ": an axis is named twice");
    const Expr r = apply(op, {x}, {{"axes", all}}, where);
    return options.keepdims ? reshape_to(r, kept_as_ones(*r.node()), where) : r;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

const Op* sum_op() {
    static const Op* op = register_reduction({"sum", Combine::sum, sum_result, false}, gradient_sum);
    return op;
}
const Op* prod_op() {
    static const Op* op = register_reduction({"prod", Combine::prod, sum_result, false}, gradient_prod);
    return op;
}
const Op* max_op() {
    static const Op* op = register_reduction({"max", Combine::max, same_result, true}, gradient_max);
    return op;
}
const Op* min_op() {
    static const Op* op = register_reduction({"min", Combine::min, same_result, true}, gradient_min);
    return op;
}
const Op* supremum_op() {
    static const Op* op = register_reduction({"supremum", Combine::max, same_result, false}, no_gradient);
    return op;
}
const Op* any_op() {
    static const Op* op = register_reduction({"any", Combine::any, boolean_result, false}, no_gradient);
    return op;
}
const Op* all_op() {
    static const Op* op = register_reduction({"all", Combine::all, boolean_result, false}, no_gradient);
    return op;
}
const Op* argmax_op() {
    static const Op* op = register_reduction({"argmax", Combine::argmax, position_result, true}, no_gradient);
    return op;
}
const Op* argmin_op() {
    static const Op* op = register_reduction({"argmin", Combine::argmin, position_result, true}, no_gradient);
    return op;
}

const Op* mean_op() {
    static const Op* op = register_op({
        .name = "mean",
        .kind = OpKind::composite,
        .arity = 1,
        .infer =
            [](const Nodes& inputs, const Attributes& attributes, Where where) {
                return infer_reduction({"mean", Combine::sum, mean_result, false}, inputs, attributes, where);
            },
        .gradient = gradient_mean,
        .evaluate = evaluate_mean,
        .decompose = decompose_mean,
    });
    return op;
}

NodePtr make_sum(const NodePtr& x, const std::vector<std::int64_t>& axes, Where where) {
    return axes.empty() ? x : make_node(sum_op(), {x}, {{"axes", axes}}, where);
}

void register_reduce_ops() {
    for (const Op* op : {sum_op(), prod_op(), max_op(), min_op(), supremum_op(), any_op(), all_op(),
                         argmax_op(), argmin_op(), mean_op(), prod_of_others_op()})
        BITALE_CHECK(op, "an op of ops/reduce is not registered");
}

Expr sum(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(sum_op(), x, axes, options, where);
}
Expr prod(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(prod_op(), x, axes, options, where);
}
Expr mean(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(mean_op(), x, axes, options, where);
}
Expr max(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(max_op(), x, axes, options, where);
}
Expr min(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(min_op(), x, axes, options, where);
}
Expr any(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(any_op(), x, axes, options, where);
}
Expr all(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(all_op(), x, axes, options, where);
}
Expr argmax(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(argmax_op(), x, axes, options, where);
}
Expr argmin(const Expr& x, const Axes& axes, ReduceOptions options, Where where) {
    return reduce(argmin_op(), x, axes, options, where);
}

}  // namespace bitale
