// Element types (dtypes).
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "bitale/cplusplus.h"

#pragma GCC visibility push(default)

namespace bitale {

// The thirteen element types.
enum class DType : std::uint8_t {
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64
};
inline constexpr int dtype_count = 13;

inline constexpr DType boolean = DType::boolean, int8 = DType::int8, int16 = DType::int16,
                       int32 = DType::int32, int64 = DType::int64, uint8 = DType::uint8,
                       uint16 = DType::uint16, uint32 = DType::uint32, uint64 = DType::uint64,
                       float16 = DType::float16, bfloat16 = DType::bfloat16, float32 = DType::float32,
                       float64 = DType::float64;

// The two half types. They are for storage: cast them to float32 to compute. Conversion from float rounds to
// the nearest value, ties to even; overflow gives infinity. float16 is IEEE 754 binary16.
struct Float16 {
    std::uint16_t bits = 0;
    Float16() = default;
    explicit Float16(float value);
    explicit operator float() const;
};
// bfloat16: the upper 16 bits of a float. Conversion rounds as that of Float16.
struct BFloat16 {
    std::uint16_t bits = 0;
    BFloat16() = default;
    explicit BFloat16(float value);
    explicit operator float() const;
};

// C++ types of numbers that convert to an element; a long double becomes a double.
template <class T>
concept Number = std::is_arithmetic_v<T>;
// C++ types that elements have.
template <class T>
concept Element = (Number<T> && !std::is_same_v<T, long double>) || std::is_same_v<T, Float16> ||
                  std::is_same_v<T, BFloat16>;
// The C++ type of the element that a number becomes.
template <Number T>
using Stored = std::conditional_t<std::is_same_v<T, long double>, double, T>;

// Sizes in bits and bytes, and kinds, of dtypes.
constexpr int bits_of(DType t) {
    constexpr int bits[dtype_count] = {8, 8, 16, 32, 64, 8, 16, 32, 64, 16, 16, 32, 64};
    return bits[static_cast<int>(t)];
}
constexpr int bytes_of(DType t) { return bits_of(t) / 8; }
constexpr bool is_float(DType t) { return t >= DType::float16; }
constexpr bool is_signed_integer(DType t) { return t >= DType::int8 && t <= DType::int64; }
constexpr bool is_unsigned_integer(DType t) { return t >= DType::uint8 && t <= DType::uint64; }
constexpr bool is_integer(DType t) { return is_signed_integer(t) || is_unsigned_integer(t); }

std::string_view name_of(DType t);         // "float32"
DType dtype_named(std::string_view name);  // throws TypeError for an unknown name

// The dtype of a C++ type.
template <class T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, bool>)
        return DType::boolean;
    else if constexpr (std::is_same_v<T, Float16>)
        return DType::float16;
    else if constexpr (std::is_same_v<T, BFloat16>)
        return DType::bfloat16;
    else if constexpr (std::is_same_v<T, float>)
        return DType::float32;
    else if constexpr (std::is_floating_point_v<T>)
        return DType::float64;
    else if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 1   ? DType::int8
               : sizeof(T) == 2 ? DType::int16
               : sizeof(T) == 4 ? DType::int32
                                : DType::int64;
    else
        return sizeof(T) == 1   ? DType::uint8
               : sizeof(T) == 2 ? DType::uint16
               : sizeof(T) == 4 ? DType::uint32
                                : DType::uint64;
}

// Calls f(T{}), where T is the C++ type of the dtype, and returns its result.
template <class F>
decltype(auto) dispatch(DType t, F&& f) {
    switch (t) {
        case DType::boolean: return f(bool{});
        case DType::int8: return f(std::int8_t{});
        case DType::int16: return f(std::int16_t{});
        case DType::int32: return f(std::int32_t{});
        case DType::int64: return f(std::int64_t{});
        case DType::uint8: return f(std::uint8_t{});
        case DType::uint16: return f(std::uint16_t{});
        case DType::uint32: return f(std::uint32_t{});
        case DType::uint64: return f(std::uint64_t{});
        case DType::float16: return f(Float16{});
        case DType::bfloat16: return f(BFloat16{});
        case DType::float32: return f(float{});
        case DType::float64: break;
    }
    return f(double{});
}

}  // namespace bitale

#pragma GCC visibility pop
