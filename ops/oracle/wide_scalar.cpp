#include "ops/oracle/wide_scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/types/convert.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/elementwise/rows.h"
#include "ops/oracle/wide.h"

namespace bitale {

namespace {

// Operands are not looked at where all are exact; a result that is no number, or infinite, has no error of
// its own as long as it stays what it is.
long double distance(long double a, long double b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    const long double d = std::fabs(a - b);
    return std::isnan(d) ? wide_infinity : d;
}

// How much of a rounding the function's last step is: none where the result is one of the operands or a whole
// number, several where the function is an approximation.
int roundings_of(const Op* op) {
    const int cost = op->map->cost;
    if (op == add_op() || op == sub_op() || op == mul_op() || op == sqr_op()) return 1;
    return cost <= 2 ? 0 : cost < 20 ? 1 : 8;
}

bool is_comparison(const Op* op) { return op->map && table_row::is_logical(op); }

// The largest change of the function where its operands are off, from the corners of their ranges.
long double passed_on(table_row::WideFunction f, const long double* x, const long double* e,
                      std::size_t arity, long double value) {
    std::size_t uncertain[3], count = 0;
    for (std::size_t k = 0; k < arity; ++k) {
        if (e[k] == wide_infinity) return wide_infinity;
        if (e[k] > 0) uncertain[count++] = k;
    }
    long double most = 0, at[3] = {x[0], x[1], x[2]};
    std::size_t corners = 1;
    for (std::size_t k = 0; k < count; ++k) corners *= 3;
    for (std::size_t corner = 1; corner < corners; ++corner) {
        std::size_t rest = corner;
        for (std::size_t k = 0; k < count; ++k, rest /= 3) {
            const std::size_t operand = uncertain[k];
            at[operand] = x[operand] + (rest % 3 == 0 ? 0 : rest % 3 == 1 ? e[operand] : -e[operand]);
        }
        most = std::max(most, distance(f(at), value));
    }
    return most;
}

// condition ? a : b, where only what is taken matters unless the condition itself is unsure.
Column chosen(const std::vector<const Column*>& x, std::size_t count) {
    Column r;
    r.values.resize(count);
    const bool exact = x[0]->errors.empty() && x[1]->errors.empty() && x[2]->errors.empty();
    if (!exact) r.errors.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t taken = x[0]->values[i] != 0 ? 1 : 2;
        r.values[i] = x[taken]->values[i];
        if (exact) continue;
        r.errors[i] = x[taken]->error(i);
        if (x[0]->error(i) > 0)
            r.errors[i] = std::max(r.errors[i],
                                   distance(r.values[i], x[3 - taken]->values[i]) + x[3 - taken]->error(i));
    }
    return r;
}

}  // namespace

Rounding rounding_of(DType dtype) {
    switch (dtype) {
        case DType::float64: return {0x1p-53L, 0x1p-1074L, std::numeric_limits<double>::max()};
        case DType::float32: return {0x1p-24L, 0x1p-149L, std::numeric_limits<float>::max()};
        case DType::float16: return {0x1p-11L, 0x1p-24L, 65504};
        case DType::bfloat16: return {0x1p-8L, 0x1p-133L, 3.3895313892515355e38L};
        default: return {};
    }
}

long double wrapped_to(DType to, DType from, long double x) {
    if (to == DType::boolean) return x != 0 ? 1 : 0;
    return dispatch(to, [&](auto t) -> long double {
        using To = decltype(t);
        if constexpr (!std::is_integral_v<To>)
            return x;
        else if (is_float(from))
            return static_cast<long double>(convert<To>(x));
        else if (x < 0)
            return static_cast<long double>(convert<To>(static_cast<std::int64_t>(x)));
        else
            return static_cast<long double>(convert<To>(static_cast<std::uint64_t>(x)));
    });
}

Column WideScalars::cast(DType to, DType from, const Column& x) {
    Column r = x;
    const std::size_t count = x.values.size();
    // A half is what it was rounded to: the conversion is there to lose digits.
    const auto stored = [to](long double v) {
        return static_cast<long double>(to == DType::float16
                                            ? static_cast<float>(Float16(static_cast<float>(v)))
                                            : static_cast<float>(BFloat16(static_cast<float>(v))));
    };
    if (is_half(to)) {
        const Rounding rounding = rounding_of(to);
        for (std::size_t i = 0; i < count; ++i) {
            r.values[i] = stored(x.values[i]);
            if (x.error(i) == 0) continue;
            const long double low = stored(x.values[i] - x.errors[i]),
                              high = stored(x.values[i] + x.errors[i]);
            r.errors[i] = std::max(distance(low, r.values[i]), distance(high, r.values[i]));
            if (std::fabs(r.values[i]) + r.errors[i] > rounding.most) r.errors[i] = wide_infinity;
        }
        return r;
    }
    if (is_float(to)) {
        const Rounding rounding = rounding_of(to);
        if (is_float(from) && bytes_of(from) < bytes_of(to)) return r;
        for (std::size_t i = 0; i < count; ++i) {
            const long double magnitude = std::fabs(x.values[i]);
            long double error = 0;
            if (std::isfinite(magnitude)) {
                const bool representable =
                    to == DType::float64
                        ? static_cast<long double>(static_cast<double>(x.values[i])) == x.values[i]
                        : static_cast<long double>(static_cast<float>(x.values[i])) == x.values[i];
                if (!representable) error = magnitude * rounding.unit + rounding.least;
                if (magnitude + x.error(i) > rounding.most) error = wide_infinity;
            }
            if (error == 0) continue;
            if (r.errors.empty()) r.errors.resize(count);
            r.errors[i] += error;
        }
        return r;
    }
    for (std::size_t i = 0; i < count; ++i) {
        r.values[i] = wrapped_to(to, from, x.values[i]);
        const long double e = x.error(i);
        if (e == 0) continue;
        if (!is_float(from) && to != DType::boolean) {
            r.errors[i] = from == DType::boolean ? e : wide_infinity;
            continue;
        }
        const long double low = wrapped_to(to, from, x.values[i] - e),
                          high = wrapped_to(to, from, x.values[i] + e);
        r.errors[i] = e == wide_infinity ? wide_infinity
                                         : std::max(distance(low, r.values[i]), distance(high, r.values[i]));
    }
    return r;
}

Column WideScalars::of_integers(const ScalarNode& s, const std::vector<const Column*>& arguments,
                                std::size_t count) {
    const Dims shape{static_cast<std::int64_t>(count)};
    std::vector<Array> operands;
    Nodes leaves;
    Column r;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
        const DType dtype = s.arguments[k]->dtype;
        operands.push_back(dispatch(dtype, [&](auto t) {
            using T = decltype(t);
            Array x(dtype, shape);
            if constexpr (std::is_integral_v<T>) {
                T* to = static_cast<T*>(x.mutable_data());
                for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(arguments[k]->values[i]);
            }
            return x;
        }));
        leaves.push_back(make_input({dtype, shape_of(shape)}, "", {}));
        if (arguments[k]->errors.empty()) continue;
        r.errors.resize(count);
        for (std::size_t i = 0; i < count; ++i)
            if (arguments[k]->errors[i] > 0) r.errors[i] = is_comparison(s.op) ? 1 : wide_infinity;
    }
    NodePtr& node = nodes_[{s.op, {s.arguments[0]->dtype, count}}];
    if (!node) node = make_node(s.op, std::move(leaves));
    const Array value = s.op->evaluate(*node, operands);
    r.values.resize(count);
    dispatch(value.dtype(), [&](auto t) {
        using T = decltype(t);
        if constexpr (std::is_integral_v<T>) {
            const T* from = static_cast<const T*>(value.data());
            for (std::size_t i = 0; i < count; ++i) r.values[i] = static_cast<long double>(from[i]);
        }
    });
    return r;
}

Column WideScalars::apply(const ScalarNode& s, const std::vector<const Column*>& arguments,
                          std::size_t count) {
    if (s.op == where_op()) return chosen(arguments, count);
    const bool integers = std::none_of(s.arguments.begin(), s.arguments.end(),
                                       [](const Scalar& a) { return is_float(a->dtype); });
    if (integers && !is_float(s.dtype)) return of_integers(s, arguments, count);
    const table_row::WideFunction f = table_row::wide_function_of(s.op);
    BITALE_CHECK(f, s.op->name + " has no function in long double");
    const std::size_t arity = arguments.size();
    const Rounding rounding = is_float(s.dtype) ? rounding_of(s.dtype) : Rounding{};
    const int roundings = is_float(s.dtype) ? roundings_of(s.op) : 0;
    const bool sum = s.op == add_op() || s.op == sub_op(), product = s.op == mul_op();
    bool exact = roundings == 0;
    for (const Column* x : arguments) exact &= x->errors.empty();
    Column r;
    r.values.resize(count);
    if (!exact) r.errors.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        long double x[3] = {}, e[3] = {};
        for (std::size_t k = 0; k < arity; ++k) x[k] = arguments[k]->values[i], e[k] = arguments[k]->error(i);
        const long double value = r.values[i] = f(x);
        if (exact) continue;
        long double error = 0;
        if (e[0] > 0 || e[1] > 0 || e[2] > 0) {
            if (!std::isfinite(value) || e[0] == wide_infinity || e[1] == wide_infinity)
                error = passed_on(f, x, e, arity, value);
            else if (sum)
                error = e[0] + e[1];
            else if (product)
                error = std::fabs(x[0]) * e[1] + std::fabs(x[1]) * e[0] + e[0] * e[1];
            else
                error = passed_on(f, x, e, arity, value);
        }
        if (roundings > 0 && std::isfinite(value)) {
            error += static_cast<long double>(roundings) * rounding.unit * std::fabs(value) + rounding.least;
            if (value == 0 && sum && e[0] == 0 && e[1] == 0) error = 0;
            if (std::fabs(value) + error > rounding.most) error = wide_infinity;
        }
        r.errors[i] = error;
    }
    return r;
}

}  // namespace bitale
