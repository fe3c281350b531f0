// Random and awkward arrays, and comparison of what two devices compute from them.
#include "tests/support/numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/oracle/wide_scalar.h"
#include "tests/support/tested_device.h"

namespace bitale::test {

namespace {

double spacing(DType dtype, double x) {
    x = std::fabs(x);
    switch (dtype) {
        case DType::float64: return std::nextafter(x, std::numeric_limits<double>::infinity()) - x;
        case DType::float32: {
            const auto f = static_cast<float>(x);
            return static_cast<double>(std::nextafterf(f, std::numeric_limits<float>::infinity())) -
                   static_cast<double>(f);
        }
        case DType::float16: return std::ldexp(1, std::max(std::ilogb(x == 0 ? 1e-30 : x), -14) - 10);
        case DType::bfloat16: return std::ldexp(1, std::max(std::ilogb(x == 0 ? 1e-300 : x), -126) - 7);
        default: return 1;
    }
}

template <class T>
T random_element(Random& random, double low, double high) {
    if constexpr (std::is_same_v<T, bool>) {
        return random.chance(2);
    } else if constexpr (std::is_integral_v<T>) {
        const double least = static_cast<double>(std::numeric_limits<T>::min());
        const double most = std::min(static_cast<double>(std::numeric_limits<T>::max()), 0x1p62);
        return static_cast<T>(std::clamp(std::round(random.real(low, high)), least, most));
    } else {
        return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(
            random.real(low, high)));
    }
}

template <class T>
const std::vector<T>& special_values() {
    static const std::vector<T> values = [] {
        std::vector<T> v;
        if constexpr (std::is_same_v<T, bool>) {
            v = {false, true};
        } else if constexpr (std::is_integral_v<T>) {
            using L = std::numeric_limits<T>;
            v = {T(0),
                 T(1),
                 T(2),
                 T(3),
                 T(7),
                 T(L::digits),
                 T(L::digits + 1),
                 T(L::max() / 2),
                 T(L::max() - 1),
                 L::max()};
            if (std::is_signed_v<T>)
                for (const T x : {T(-1), T(-2), T(-3), T(-7), L::min(), T(L::min() + 1), T(L::min() / 2)})
                    v.push_back(x);
        } else {
            for (const double x : special_floats(dtype_of<T>())) {
                using Through = std::conditional_t<std::is_same_v<T, double>, double, float>;
                v.push_back(T(static_cast<Through>(x)));
            }
        }
        return v;
    }();
    return values;
}

template <class T>
T any_magnitude(Random& random) {
    if constexpr (std::is_same_v<T, bool>)
        return random.chance(2);
    else if constexpr (std::is_integral_v<T>)
        return static_cast<T>(random.bits() >> random.between(0, 63));
    else {
        const double low = std::is_same_v<T, double> ? -300 : std::is_same_v<T, Float16> ? -6 : -36;
        const double x = std::exp(random.real(random.chance(2) ? low : -2, random.chance(2) ? -low : 2) *
                                  (random.chance(2) ? 1 : 2.3));
        const double value = random.chance(2) ? x : -x;
        if constexpr (std::is_same_v<T, double>)
            return value;
        else
            return T(static_cast<float>(value));
    }
}

std::string shown(const Array& x, std::int64_t i) {
    if (is_integer(x.dtype())) {
        if (is_unsigned_integer(x.dtype()))
            return std::to_string(x.as(uint64).view<std::uint64_t>()[static_cast<std::size_t>(i)]);
        return std::to_string(x.as(int64).view<std::int64_t>()[static_cast<std::size_t>(i)]);
    }
    return fmt::format("{:.17g}", x.at(i));
}

}  // namespace

const std::vector<double>& special_floats(DType dtype) {
    static const auto list = [](double least, double least_normal, double most, double whole) {
        const double inf = std::numeric_limits<double>::infinity(),
                     nan = std::numeric_limits<double>::quiet_NaN();
        return std::vector<double>{
            0.0,    -0.0,         1,         -1,    2,         -2,         0.5,
            -0.5,   1.5,          2.5,       -2.5,  3,         10,         -10,
            88.0,   -88.0,        1e-3,      -1e-3, 0.1,       0.3,        3.14159265358979,
            1e3,    -1e3,         whole - 1, whole, whole + 1, -whole - 1, least,
            -least, least_normal, most,      -most, most / 2,  inf,        -inf,
            nan};
    };
    static const std::vector<double> single = list(0x1p-149, 0x1p-126, 3.4028234663852886e38, 0x1p23);
    static const std::vector<double> twice = list(5e-324, 0x1p-1022, 1.7976931348623157e308, 0x1p52);
    static const std::vector<double> half = list(0x1p-24, 0x1p-14, 65504, 1024);
    static const std::vector<double> brain = list(0x1p-133, 0x1p-126, 3.3895313892515355e38, 128);
    switch (dtype) {
        case DType::float16: return half;
        case DType::bfloat16: return brain;
        case DType::float64: return twice;
        default: return single;
    }
}

int special_count(DType dtype) {
    return dispatch(dtype, [](auto t) { return static_cast<int>(special_values<decltype(t)>().size()); });
}

Array random_array(DType dtype, const Dims& shape, Random& random, double low, double high) {
    Array r(dtype, shape);
    dispatch(dtype, [&](auto t) {
        using T = decltype(t);
        T* to = static_cast<T*>(r.mutable_data());
        for (std::int64_t i = 0; i < r.size(); ++i) to[i] = random_element<T>(random, low, high);
    });
    return r;
}

Array special_array(DType dtype, const Dims& shape, Random& random, int stride) {
    Array r(dtype, shape);
    dispatch(dtype, [&](auto t) {
        using T = decltype(t);
        const std::vector<T>& special = special_values<T>();
        const auto count = static_cast<std::int64_t>(special.size());
        std::int64_t divisor = 1, combinations = count * count;
        for (int k = 0; k < stride; ++k) divisor *= count;
        combinations = std::max(combinations, divisor * count);
        T* to = static_cast<T*>(r.mutable_data());
        for (std::int64_t i = 0; i < r.size(); ++i)
            to[i] = i < combinations ? special[static_cast<std::size_t>(i / divisor % count)]
                                     : any_magnitude<T>(random);
    });
    return r;
}

namespace {

// Functions of powers give 0 in place of numbers below the normal ones.
bool is_below_normal(DType dtype, long double x) {
    const double least = dtype == DType::float32   ? double{std::numeric_limits<float>::min()}
                         : dtype == DType::float64 ? std::numeric_limits<double>::min()
                                                   : 0;
    return std::fabs(x) < least;
}

}  // namespace

std::string difference(const Array& got, const Array& expected, const Tolerance& tolerance) {
    if (got.dtype() != expected.dtype() || got.shape() != expected.shape())
        return fmt::format("{} {} instead of {} {}", name_of(got.dtype()), text_of(got.shape()),
                           name_of(expected.dtype()), text_of(expected.shape()));
    if (same(got, expected)) return {};
    const bool real = is_float(got.dtype());
    double largest = 0;
    if (real && tolerance.of_largest > 0)
        for (std::int64_t i = 0; i < expected.size(); ++i)
            if (std::isfinite(expected.at(i))) largest = std::max(largest, std::fabs(expected.at(i)));
    std::int64_t first = -1, count = 0;
    const auto* a = static_cast<const char*>(got.data());
    const auto* b = static_cast<const char*>(expected.data());
    const auto width = static_cast<std::size_t>(bytes_of(got.dtype()));
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * width;
        if (std::equal(a + at, a + at + width, b + at)) continue;
        bool good = false;
        if (real) {
            const double x = got.at(i), y = expected.at(i);
            if (std::isnan(x) || std::isnan(y)) {
                good = std::isnan(x) && std::isnan(y);
            } else if (std::isinf(x) || std::isinf(y)) {
                good = x == y;
            } else {
                const double allowed = tolerance.ulps * spacing(got.dtype(), y) + tolerance.absolute +
                                       tolerance.relative * std::fabs(y) + tolerance.of_largest * largest;
                const bool is_exact = tolerance.ulps + tolerance.absolute + tolerance.of_largest == 0;
                good = std::fabs(x - y) <= allowed && (x != y || !is_exact);
                good = good || (!is_exact && x == 0 && is_below_normal(got.dtype(), y));
            }
        }
        if (good) continue;
        if (first < 0) first = i;
        ++count;
    }
    if (count == 0) return {};
    return fmt::format("{} of {} elements of {} {} differ, first {}: {} instead of {}", count, got.size(),
                       name_of(got.dtype()), text_of(got.shape()), first, shown(got, first),
                       shown(expected, first));
}

std::string differences(const std::vector<Array>& got, const std::vector<Array>& expected,
                        double of_largest) {
    std::string text;
    for (std::size_t k = 0; k < expected.size(); ++k)
        if (const std::string d = difference(got.at(k), expected[k], {.of_largest = of_largest}); !d.empty())
            text += fmt::format("{}: {}\n", k, d);
    return text;
}

std::string difference(const Array& got, const WideValue& expected, std::int64_t* passed_over) {
    const Array rounded = expected.rounded();
    if (got.dtype() != expected.dtype || got.shape() != expected.shape) return difference(got, rounded);
    const bool real = is_float(got.dtype());
    const Rounding rounding = rounding_of(got.dtype());
    std::int64_t first = -1, count = 0;
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const long double y = expected.values[at], error = expected.error(at);
        if (std::isinf(error)) {
            if (passed_over) ++*passed_over;
            continue;
        }
        bool good = false;
        if (!real) {
            good = shown(got, i) == shown(rounded, i) ||
                   std::fabs(static_cast<long double>(got.at(i)) - y) <= error;
        } else {
            const auto x = static_cast<long double>(got.at(i));
            const long double allowed = 4 * error + 8 * rounding.unit * std::fabs(y) + 2 * rounding.least;
            good = x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= allowed ||
                   (x == 0 && is_below_normal(got.dtype(), y)) ||
                   (std::isinf(x) && std::fabs(y) + allowed > rounding.most &&
                    std::signbit(x) == std::signbit(y));
        }
        if (good) continue;
        if (first < 0) first = i;
        ++count;
    }
    if (count == 0) return {};
    const auto at = static_cast<std::size_t>(first);
    return fmt::format(
        "{} of {} elements of {} {} differ, first {}: {} instead of {}, which may be off by {:.3g}", count,
        got.size(), name_of(got.dtype()), text_of(got.shape()), first, shown(got, first),
        shown(rounded, first), static_cast<double>(expected.error(at)));
}

OnTwoDevices::OnTwoDevices(const std::vector<Expr>& inputs, std::vector<Case> cases, const std::string& name)
    : cases_(std::move(cases)) {
    std::vector<Input> list(inputs.begin(), inputs.end());
    std::vector<Expr> outputs;
    for (const Case& c : cases_) outputs.push_back(c.output);
    FunctionOptions options;
    options.name = name;
    options.on_unused_input = OnUnused::ignore;
    options.device = tested_device();
    tested_ = function(list, outputs, options);
    options.device = "reference";
    reference_ = function(list, outputs, options);
}

std::string OnTwoDevices::operator()(const std::vector<Array>& arguments) {
    const Results got = tested_.call(arguments), expected = reference_.call(arguments);
    std::string all;
    for (std::size_t k = 0; k < cases_.size(); ++k) {
        const std::string d = difference(got[k], expected[k], cases_[k].tolerance);
        if (!d.empty()) all += cases_[k].name + ": " + d + "\n";
    }
    return all;
}

}  // namespace bitale::test
