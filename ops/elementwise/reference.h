// Scalar functions as the oracle computes them: doubles for floats, integers in their own type. Written for
// clarity; generated code has helpers of its own, which are tested against these.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <type_traits>

namespace bitale::reference {

// Unsigned arithmetic wraps by definition; uint8 and uint16 would be promoted to int.
template <class T>
using Wrap =
    std::conditional_t<(sizeof(T) < 4), std::uint32_t,
                       std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>>;

template <class T>
T add(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
    else
        return a + b;
}
template <class T>
T sub(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
    else
        return a - b;
}
template <class T>
T mul(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
    else
        return a * b;
}
template <class T>
T neg(T a) {
    if constexpr (std::is_integral_v<T>)
        return sub(T(0), a);
    else
        return -a;
}
template <class T>
T floordiv(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return neg(a);
            const T quotient = static_cast<T>(a / b);
            return static_cast<T>(quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
        }
        return static_cast<T>(a / b);
    } else {
        const T floor = std::floor(a / b), rest = std::fma(-floor, b, a);
        const bool beyond = !std::isinf(floor) && (b > 0 ? rest < 0 : rest > 0);
        return beyond ? floor + std::min(T(-1), std::floor(rest / b)) : floor;
    }
}
template <class T>
T mod(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return b == 0 ? T(0) : sub(a, mul(b, floordiv(a, b)));
    } else {
        const T rest = std::fmod(a, b);
        if (rest == 0) return std::copysign(T(0), b);
        return (rest < 0) != (b < 0) ? rest + b : rest;
    }
}
template <class T>
T pow(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if constexpr (std::is_signed_v<T>) {
            if (b < 0) return static_cast<T>(a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0);
        }
        T power = 1;
        for (auto left = static_cast<Wrap<T>>(b); left; left >>= 1) {
            if (left & 1) power = mul(power, a);
            a = mul(a, a);
        }
        return power;
    } else {
        return std::pow(a, b);
    }
}
template <class T>
T abs(T a) {
    if constexpr (std::is_integral_v<T>)
        return a < T(0) ? neg(a) : a;
    else
        return std::fabs(a);
}
template <class T>
T sign(T a) {
    return a > T(0) ? T(1) : a < T(0) ? static_cast<T>(-1) : a;
}
template <class T>
bool isnan(T a) {
    if constexpr (std::is_integral_v<T>)
        return false;
    else
        return std::isnan(a);
}
template <class T>
bool isinf(T a) {
    if constexpr (std::is_integral_v<T>)
        return false;
    else
        return std::isinf(a);
}
template <class T>
T maximum(T a, T b) {
    return isnan(a) || a >= b ? a : b;
}
template <class T>
T minimum(T a, T b) {
    return isnan(a) || a <= b ? a : b;
}
template <class T>
T clip(T a, T low, T high) {
    return a < low ? low : a > high ? high : a;
}
template <class T>
T relu(T a) {
    return a < T(0) ? T(0) : a;
}
template <std::floating_point T>
T sigmoid(T a) {
    const T e = std::exp(-std::fabs(a));
    return (a >= 0 ? 1 : e) / (1 + e);
}
template <std::floating_point T>
T logaddexp(T a, T b) {
    return maximum(a, b) + std::log1p(std::exp(a == b ? T(0) : -std::fabs(a - b)));
}
template <std::floating_point T>
T log1mexp(T a) {
    return a > -std::numbers::ln2_v<T> ? std::log(-std::expm1(a)) : std::log1p(-std::exp(a));
}
// C libraries are off by up to 4 units in the last place of float64.
template <std::floating_point T>
T cbrt(T x) {
    return static_cast<T>(std::cbrt(static_cast<long double>(x)));
}
template <std::floating_point T>
T logcosh(T x) {
    const T a = std::fabs(x), u = std::expm1(-a);
    return a < 1 ? std::log1p(u * u / (2 * (1 + u)))
                 : a - std::numbers::ln2_v<T> + std::log1p(std::exp(-2 * a));
}
template <std::floating_point T>
T softplus(T a) {
    return maximum(a, T(0)) + std::log1p(std::exp(-std::fabs(a)));
}

template <class T>
T floor(T a) {
    if constexpr (std::is_integral_v<T>)
        return a;
    else
        return std::floor(a);
}
template <class T>
T ceil(T a) {
    if constexpr (std::is_integral_v<T>)
        return a;
    else
        return std::ceil(a);
}
template <class T>
T trunc(T a) {
    if constexpr (std::is_integral_v<T>)
        return a;
    else
        return std::trunc(a);
}
template <class T>
T round(T a) {  // half to even
    if constexpr (std::is_integral_v<T>)
        return a;
    else
        return std::abs(a - std::trunc(a)) == 0.5 ? 2 * std::round(a / 2) : std::round(a);
}

template <std::integral T>
T invert(T a) {
    if constexpr (std::is_same_v<T, bool>)
        return !a;
    else
        return static_cast<T>(~a);
}
template <std::integral T>
T shift_left(T a, T b) {
    if (b < T(0) || b >= T(8 * sizeof(T))) return 0;
    return static_cast<T>(static_cast<Wrap<T>>(a) << b);
}
template <std::integral T>
T shift_right(T a, T b) {
    if (b < T(0) || b >= T(8 * sizeof(T))) return a < T(0) ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> b);
}

}  // namespace bitale::reference
