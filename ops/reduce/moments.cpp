// Variance and standard deviation, by the mean first: nothing cancels.
#include <cstddef>
#include <new>
#include <set>

#include "bitale/ops.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"

namespace bitale {

namespace {

// In which differences of neighbouring numbers of x do not vanish: up to 2^53 for integers.
DType type_of_numbers(DType dtype) {
    constexpr int most_bits = 16;
    if (is_float(dtype)) return bits_of(dtype) <= most_bits ? DType::float32 : dtype;
    return dtype == DType::boolean || bits_of(dtype) <= most_bits ? DType::float32 : DType::float64;
}

// Of the variance, in the dtype that type_of_numbers() says.
Expr result_of(const Expr& variance, const Expr& x, Where where) {
    return cast(variance, is_float(x.dtype()) ? x.dtype() : DType::float32, where);
}

Term variance_of(const char* name, const Expr& x, const Axes& axes, const VarianceOptions& options,
                 Where where) {
    require_present(name, {&x}, where);
    std::set<int> reduced;
    for (const int axis : axes)
        if (!reduced.insert(checked_axis(axis, x, name, where)).second)
            throw IndexError(where,
                             std::string(name) + " of " + describe(*x.node()) + ": an axis is named twice");
    if (options.ddof < 0)
        throw Error(
            where, std::string(name) + ": ddof must not be negative, but is " + std::to_string(options.ddof));
    const DType dtype = type_of_numbers(x.dtype());
    const Expr numbers = cast(x, dtype, where);
    const Term centred = compose(sub_op(), {numbers, mean(numbers, axes, {.keepdims = true}, where)}, where);
    const Expr squares = compose(sqr_op(), {centred.x}, where).x;
    const ReduceOptions kept{.keepdims = options.keepdims};
    if (options.ddof == 0) return {mean(squares, axes, kept, where), where};
    Int count = 1;
    const Shape& shape = type_of(x).shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (axes.empty() || reduced.contains(static_cast<int>(d))) count = count * shape[d];
    const Expr terms = cast(expr_of(max(count - options.ddof, 0), where), dtype, where);
    return compose(div_op(), {sum(squares, axes, kept, where), terms}, where);
}

}  // namespace

Expr variance(const Expr& x, const Axes& axes, VarianceOptions options, Where where) try {
    return result_of(variance_of("variance", x, axes, options, where).x, x, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr standard_deviation(const Expr& x, const Axes& axes, VarianceOptions options, Where where) try {
    return result_of(sqrt(variance_of("standard_deviation", x, axes, options, where)).x, x, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
