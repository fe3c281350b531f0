// Errors of the floating-point helpers of generated code against the C library one precision up, in units of
// the last place (ulp): a fixed stride through all bit patterns, dense samples of the usual range, and the
// edges.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/codegen/device_functions.h"
#include "tests/support/catch.h"

namespace {

template <class T>
struct Wider;
template <>
struct Wider<float> {
    using Type = double;
    using Bits = std::uint32_t;
};
template <>
struct Wider<double> {
    using Type = long double;
    using Bits = std::uint64_t;
};

template <class T>
std::vector<T> edges() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> r;
    for (T x : {T(0),
                T(1),
                T(2),
                T(3),
                T(0.5),
                T(1.5),
                T(2.5),
                T(1e-3),
                T(1e5),
                T(88.72),
                T(103.97),
                T(709.78),
                T(745.1),
                Limits::infinity(),
                Limits::denorm_min(),
                Limits::min(),
                Limits::max(),
                Limits::epsilon(),
                std::nextafter(T(1), T(0)),
                std::nextafter(T(1), T(2)),
                T(1) / Limits::epsilon(),
                T(1) / Limits::epsilon() + 1,
                std::nextafter(Limits::min(), T(0))}) {
        r.push_back(x);
        r.push_back(-x);
    }
    r.push_back(Limits::quiet_NaN());
    return r;
}

// Random bit patterns: all sizes, NaNs, infinities and subnormal numbers; and numbers around 1.
template <class T>
std::vector<T> samples(int count) {
    std::vector<T> r = edges<T>();
    std::mt19937_64 random(5);
    using Bits = typename Wider<T>::Bits;
    std::uniform_real_distribution<T> near(-8, 8), far(-800, 800);
    for (int i = 0; i < count; ++i) {
        r.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
        r.push_back(near(random));
        r.push_back(far(random));
        r.push_back(std::ldexp(near(random), -static_cast<int>(random() % 60)));
    }
    return r;
}

// The distance of y from the exact value in ulp of the latter; infinite where they differ in kind. The sign
// of a zero counts.
template <class T>
double ulps(T y, typename Wider<T>::Type exact) {
    using Wide = typename Wider<T>::Type;
    using Limits = std::numeric_limits<T>;
    constexpr double wrong = std::numeric_limits<double>::infinity();
    if (std::isnan(exact)) return std::isnan(y) ? 0 : wrong;
    if (std::isnan(y) || std::signbit(y) != std::signbit(exact)) return wrong;
    // Overflow begins half an ulp above the largest number: treat infinity as the next number.
    const Wide next = std::ldexp(Wide(1), Limits::max_exponent);
    const auto finite = [&](Wide v) { return std::fabs(v) > next ? std::copysign(next, v) : v; };
    const Wide e = finite(exact);
    int exponent = 0;
    std::frexp(e, &exponent);
    exponent = std::max(exponent, Limits::min_exponent);
    if (std::isinf(exact) && !std::isinf(y)) return wrong;
    return static_cast<double>(std::fabs(finite(y) - e) / std::ldexp(Wide(1), exponent - Limits::digits));
}

template <class T, class F, class R>
void check(const char* name, F function, R reference, const std::vector<T>& xs) {
    using Wide = typename Wider<T>::Type;
    // Powers below the normal numbers are 0, and so is what consists of them.
    static const std::set<std::string_view> of_powers{"exp", "exp2", "sigmoid", "softplus"};
    double worst = 0;
    T at = 0;
    for (const T x : xs) {
        const T y = function(x);
        const Wide exact = reference(Wide(x));
        if (of_powers.contains(name) && exact < Wide(std::numeric_limits<T>::min()) && y == 0) continue;
        const double u = ulps(y, exact);
        if (u > worst) worst = u, at = x;
    }
    INFO(name << (sizeof(T) == 4 ? " in float32" : " in float64") << ": " << worst << " ulp at " << at);
    CHECK(worst <= 2.0);
}

template <class T>
T device_pow(T x, T y) {
    return bitale::device::b_pow(x, y);
}

template <class T>
void check_pow() {
    using Wide = typename Wider<T>::Type;
    double worst = 0;
    T at = 0, to = 0;
    const auto one = [&](T x, T y) {
        const double u = ulps(device_pow(x, y), std::pow(Wide(x), Wide(y)));
        if (u > worst) worst = u, at = x, to = y;
    };
    for (const T x : edges<T>())
        for (const T y : edges<T>()) one(x, y);
    const std::vector<T> bases = samples<T>(40000);
    std::mt19937_64 random(6);
    std::uniform_real_distribution<T> near(-20, 20), wide(-1500, 1500);
    for (const T x : bases) {
        one(x, near(random));
        one(std::fabs(x), near(random));
        one(x, std::round(near(random)));
        one(1 + near(random) / 100, wide(random));
    }
    INFO("pow: " << worst << " ulp at " << at << ", " << to);
    CHECK(worst <= 2.0);
}

// Points of all quadrants, on the axes and at infinity, whose coordinates are of one size or of very
// different ones.
template <class T>
void check_atan2() {
    using Wide = typename Wider<T>::Type;
    double worst = 0;
    T at = 0, to = 0;
    int wrong_signs = 0;
    const auto one = [&](T y, T x) {
        const T got = bitale::device::b_atan2(y, x);
        const Wide exact = std::atan2(Wide(y), Wide(x));
        const double u = ulps(got, exact);
        wrong_signs += got == got && std::signbit(got) != std::signbit(exact);
        if (u > worst) worst = u, at = y, to = x;
    };
    for (const T y : edges<T>())
        for (const T x : edges<T>()) one(y, x);
    std::mt19937_64 random(8);
    std::uniform_real_distribution<T> near(-4, 4);
    const std::vector<T> wide = samples<T>(40000);
    for (std::size_t i = 0; i < wide.size(); ++i) {
        one(near(random), near(random));
        one(wide[i], near(random));
        one(wide[i], wide[wide.size() - 1 - i]);
    }
    INFO("atan2: " << worst << " ulp at " << at << ", " << to);
    CHECK(worst <= 2.0);
    CHECK(wrong_signs == 0);
}

}  // namespace

TEST_CASE("float32 functions are within 2 ulp of the exact values", "[device]") {
    std::vector<float> xs = samples<float>(50000);
    for (std::uint64_t i = 0; i <= 0xffffffffu; i += 20011)
        xs.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(i)));
#define CHECK_FUNCTION(NAME, REFERENCE) \
    check<float>(                       \
        #NAME, [](float x) { return bitale::device::b_##NAME(x); }, [](double x) { return REFERENCE; }, xs);
    BITALE_REAL_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION
}

TEST_CASE("float64 functions are within 2 ulp of the exact values", "[device]") {
    const std::vector<double> xs = samples<double>(40000);
#define CHECK_FUNCTION(NAME, REFERENCE)                              \
    check<double>(                                                   \
        #NAME, [](double x) { return bitale::device::b_##NAME(x); }, \
        [](long double x) -> long double { return REFERENCE; }, xs);
    BITALE_REAL_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION
}

TEST_CASE("Trigonometric functions hold for the largest arguments and next to multiples of pi / 2",
          "[device]") {
    std::vector<float> xs;
    std::vector<double> ys;
    // Convergents of the continued fraction of pi / 2 and their multiples come closest.
    for (double turn = 1; turn < 1e15; turn *= 1.7) {
        const double near = std::rint(turn) * 1.57079632679489661923;
        xs.push_back(static_cast<float>(near));
        for (int i = -2; i <= 2; ++i) ys.push_back(near + i * std::ldexp(std::fabs(near), -52));
    }
    for (const float x : {1.31706817e24f, 6.20968313e22f, 3.94985304e11f, 0x1.1b7a44p79f}) xs.push_back(x);
    // The float64 next to a multiple of pi / 2.
    ys.push_back(6381956970095103.0 * 0x1p797);
    ys.push_back(0x1.6ac5b262ca1ffp849);
    for (int e = 10; e < 1024; ++e) {
        ys.push_back(std::ldexp(1.2345678901234567, e));
        ys.push_back(-std::ldexp(1.9876543210987654, e));
        if (e < 128) xs.push_back(std::ldexp(1.2345678f, e));
    }
    check<float>(
        "sin", [](float x) { return bitale::device::b_sin(x); }, [](double x) { return std::sin(x); }, xs);
    check<float>(
        "cos", [](float x) { return bitale::device::b_cos(x); }, [](double x) { return std::cos(x); }, xs);
    check<float>(
        "tan", [](float x) { return bitale::device::b_tan(x); }, [](double x) { return std::tan(x); }, xs);
    check<double>(
        "sin", [](double x) { return bitale::device::b_sin(x); }, [](long double x) { return std::sin(x); },
        ys);
    check<double>(
        "cos", [](double x) { return bitale::device::b_cos(x); }, [](long double x) { return std::cos(x); },
        ys);
    check<double>(
        "tan", [](double x) { return bitale::device::b_tan(x); }, [](long double x) { return std::tan(x); },
        ys);
}

TEST_CASE("pow is within 2 ulp, and C's pow where C defines special values", "[device]") {
    check_pow<float>();
    check_pow<double>();
}

TEST_CASE("atan2 is within 2 ulp, and C's atan2 on the axes and at infinity", "[device]") {
    check_atan2<float>();
    check_atan2<double>();
}

TEST_CASE("Quotients toward minus infinity are those of exact quotients", "[device]") {
    std::mt19937_64 random(7);
    const auto quotient = [](float a, float b) {
        return static_cast<float>(std::floor(static_cast<double>(a) / b));
    };
    int wrong = 0, rounded_up = 0;
    const auto one = [&](float a, float b) {
        const float got = bitale::device::b_floordiv(a, b), expected = quotient(a, b);
        wrong += !((got != got && expected != expected) ||
                   (got == expected && std::signbit(got) == std::signbit(expected)));
        rounded_up += std::floor(a / b) > expected;
    };
    std::uniform_real_distribution<float> large(-1e8F, 1e8F), small(-20, 20);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t bits = random();
        one(std::bit_cast<float>(static_cast<std::uint32_t>(bits)),
            std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32)));
        one(large(random), std::rint(small(random)));
        one(small(random), small(random) / 100);
    }
    for (const float a : edges<float>())
        for (const float b : edges<float>()) one(a, b);
    CHECK(wrong == 0);
    CHECK(rounded_up > 1000);
    CHECK(bitale::device::b_floordiv(1.0, 0.1) == 9);
    CHECK(bitale::device::b_floordiv(-5e-324, 10.0) == -1);
    CHECK(bitale::device::b_floordiv(1e300, 1e-300) == std::numeric_limits<double>::infinity());
}

TEMPLATE_TEST_CASE("Functions of several numbers treat NaN, zeros and infinities as defined", "[device]",
                   float, double) {
    using T = TestType;
    namespace d = bitale::device;
    const T nan = std::numeric_limits<T>::quiet_NaN();
    const std::vector<T> xs = edges<T>();
    const auto same = [](T a, T b) {
        return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b));
    };
    int wrong = 0;
    for (const T a : xs) {
        wrong += d::b_isinf(a) != std::isinf(a);
        for (const T b : xs) {
            wrong += !same(d::b_maximum(a, b), a != a || b != b ? nan : a >= b ? a : b);
            wrong += !same(d::b_minimum(a, b), a != a || b != b ? nan : a <= b ? a : b);
            wrong += !same(d::b_max_nan(a, b), d::b_maximum(a, b));
            wrong += !same(d::b_min_nan(a, b), d::b_minimum(a, b));
            wrong += !same(d::b_copysign(a, b), std::copysign(a, b));
            T rest = std::fmod(a, b);
            if (rest == 0)
                rest = std::copysign(T(0), b);
            else if ((rest < 0) != (b < 0))
                rest += b;
            wrong += !same(d::b_mod(a, b), rest);
            wrong += !same(d::b_clip(a, T(-1), b), a < -1 ? T(-1) : a > b ? b : a);
            wrong += !same(d::b_fma(a, b, T(3)), std::fma(a, b, T(3)));
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("powers are 0 or normal numbers", "[device]") {
    for (float x = -110; x < -80; x += 0.0078125F)
        for (const float y : {bitale::device::b_exp(x), bitale::device::b_exp2(x * 1.4427F),
                              bitale::device::b_sigmoid(x), bitale::device::b_softplus(x)}) {
            INFO(x << ": " << y);
            REQUIRE(std::fpclassify(y) != FP_SUBNORMAL);
        }
    for (double x = -760; x < -700; x += 0.0078125) {
        INFO(x);
        REQUIRE(std::fpclassify(bitale::device::b_exp(x)) != FP_SUBNORMAL);
        REQUIRE(std::fpclassify(bitale::device::b_exp2(x * 1.4427)) != FP_SUBNORMAL);
    }
}
