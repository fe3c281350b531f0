// Integer arithmetic, conversions, index helpers and random words of generated code, against exact formulas.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "graph/types/convert.h"
#include "ops/random/philox.h"
#include "tests/codegen/device_functions.h"
#include "tests/support/catch.h"

namespace d = bitale::device;

namespace {

__extension__ using Wide = __int128;

template <class T>
std::vector<T> values(int count) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> r;
    if constexpr (std::is_same_v<T, bool>) {
        r = {false, true};
    } else {
        for (int i = 0; i <= 9; ++i) {
            r.push_back(static_cast<T>(i));
            r.push_back(static_cast<T>(0 - i));
            r.push_back(static_cast<T>(Limits::max() - i));
            r.push_back(static_cast<T>(Limits::min() + i));
        }
        std::mt19937_64 random(3);
        for (int i = 0; i < count; ++i) r.push_back(static_cast<T>(random() >> random() % 64));
    }
    return r;
}

Wide floor_quotient(Wide a, Wide b) {
    if (b == 0) return 0;
    const Wide q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// a^b modulo 2^64, b >= 0.
template <class T>
std::uint64_t power(T a, T b) {
    std::uint64_t result = 1, square = static_cast<std::uint64_t>(a);
    for (auto left = static_cast<std::uint64_t>(b); left != 0; left >>= 1, square *= square)
        if (left & 1) result *= square;
    return result;
}

template <class T>
void check_arithmetic() {
    constexpr int bits = 8 * sizeof(T);
    int wrong = 0;
    const std::vector<T> as = values<T>(100);
    for (const T a : as) {
        wrong += d::b_neg(a) != static_cast<T>(-Wide(a));
        wrong += d::b_abs(a) != static_cast<T>(a < T(0) ? -Wide(a) : Wide(a));
        wrong += d::b_sign(a) != static_cast<T>(a > T(0) ? 1 : a < T(0) ? -1 : 0);
        wrong += d::b_relu(a) != (a < T(0) ? T(0) : a);
        if constexpr (std::is_same_v<T, bool>)
            wrong += d::b_invert(a) == a;
        else
            wrong += d::b_invert(a) != static_cast<T>(~a);
        for (const T b : as) {
            if constexpr (std::is_same_v<T, bool>) {
                wrong += d::b_add(a, b) != (a || b);
                wrong += d::b_mul(a, b) != (a && b);
            } else {
                wrong += d::b_add(a, b) != static_cast<T>(Wide(a) + b);
                wrong += d::b_mul(a, b) !=
                         static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
                if (b < T(0) || b >= bits) {
                    wrong += d::b_shift_left(a, b) != T(0);
                    wrong += d::b_shift_right(a, b) != static_cast<T>(a < T(0) ? -1 : 0);
                } else {
                    wrong += d::b_shift_left(a, b) != static_cast<T>(static_cast<std::uint64_t>(a) << b);
                    wrong += d::b_shift_right(a, b) != static_cast<T>(floor_quotient(a, Wide(1) << b));
                }
            }
            wrong += d::b_sub(a, b) != static_cast<T>(Wide(a) - b);
            const Wide q = floor_quotient(a, b);
            wrong += d::b_floordiv(a, b) != static_cast<T>(q);
            wrong += d::b_mod(a, b) != static_cast<T>(b == T(0) ? 0 : Wide(a) - q * b);
            wrong += d::b_maximum(a, b) != (a < b ? b : a);
            wrong += d::b_minimum(a, b) != (b < a ? b : a);
            wrong += d::b_clip(a, T(1), b) != (a < T(1) ? T(1) : a > b ? b : a);
            T expected;
            if (b >= T(0))
                expected = static_cast<T>(power(a, b));
            else
                expected = static_cast<T>(Wide(a) == 1 ? 1 : Wide(a) == -1 ? (b % 2 != 0 ? -1 : 1) : 0);
            wrong += d::b_pow(a, b) != expected;
        }
    }
    INFO((std::is_signed_v<T> ? "signed, " : "unsigned, ") << bits << " bits");
    CHECK(wrong == 0);
}

// The storage types have two names.
template <class T>
using DeviceType = std::conditional_t<
    std::is_same_v<T, bitale::Float16>, d::f16,
    std::conditional_t<std::is_same_v<T, bitale::BFloat16>, d::bf16,
                       std::conditional_t<std::is_same_v<T, std::int64_t>, d::i64,
                                          std::conditional_t<std::is_same_v<T, std::uint64_t>, d::u64, T>>>>;

template <class T>
DeviceType<T> to_device(T x) {
    return std::bit_cast<DeviceType<T>>(x);
}

template <class To, class From>
auto device_convert(From x) {
    const auto v = to_device(x);
    if constexpr (std::is_same_v<To, bool>)
        return d::b_to_bool(v);
    else if constexpr (std::is_same_v<To, std::int8_t>)
        return d::b_to_i8(v);
    else if constexpr (std::is_same_v<To, std::int16_t>)
        return d::b_to_i16(v);
    else if constexpr (std::is_same_v<To, std::int32_t>)
        return d::b_to_i32(v);
    else if constexpr (std::is_same_v<To, std::int64_t>)
        return d::b_to_i64(v);
    else if constexpr (std::is_same_v<To, std::uint8_t>)
        return d::b_to_u8(v);
    else if constexpr (std::is_same_v<To, std::uint16_t>)
        return d::b_to_u16(v);
    else if constexpr (std::is_same_v<To, std::uint32_t>)
        return d::b_to_u32(v);
    else if constexpr (std::is_same_v<To, std::uint64_t>)
        return d::b_to_u64(v);
    else if constexpr (std::is_same_v<To, bitale::Float16>)
        return d::b_to_f16(v);
    else if constexpr (std::is_same_v<To, bitale::BFloat16>)
        return d::b_to_bf16(v);
    else if constexpr (std::is_same_v<To, float>)
        return d::b_to_f32(v);
    else
        return d::b_to_f64(v);
}

template <class T>
std::vector<T> sources() {
    if constexpr (std::is_same_v<T, bitale::Float16> || std::is_same_v<T, bitale::BFloat16>) {
        std::vector<T> r(65536);
        for (std::uint32_t i = 0; i < 65536; ++i) r[i].bits = static_cast<std::uint16_t>(i);
        return r;
    } else if constexpr (std::is_floating_point_v<T>) {
        std::vector<T> r;
        for (int e = -1; e <= 65; ++e)
            for (const T delta : {T(-1), T(-0.5), T(0), T(0.5), T(1)})
                for (const T sign : {T(1), T(-1)}) {
                    const T x = sign * (std::ldexp(T(1), e) + delta);
                    r.insert(r.end(), {x, std::nextafter(x, T(0)), std::nextafter(x, 2 * x)});
                }
        std::mt19937_64 random(4);
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        for (int i = 0; i < 30000; ++i) {
            r.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
            // The range of the half types, ties between them and subnormal results.
            r.push_back(std::bit_cast<T>(static_cast<Bits>(random()) &
                                         ~((Bits(1) << (sizeof(T) == 4 ? 11 : 40)) - 1)));
            r.push_back(std::ldexp(static_cast<T>(random() % 4096), static_cast<int>(random() % 46) - 30));
        }
        return r;
    } else {
        return values<T>(3000);
    }
}

template <class From, class To>
void check_conversion() {
    int wrong = 0;
    for (const From x : sources<From>()) {
        const To expected = bitale::convert<To>(x);
        const auto got = device_convert<To>(x);
        static_assert(sizeof(got) == sizeof(To));
        if constexpr (std::is_floating_point_v<To>)
            wrong += expected != expected ? got == got : got != expected;
        else
            wrong += std::memcmp(&got, &expected, sizeof(To)) != 0;
    }
    INFO(bitale::name_of(bitale::dtype_of<From>()) << " -> " << bitale::name_of(bitale::dtype_of<To>()));
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("Integer helpers wrap, and define division by zero, wide shifts and negative powers", "[device]") {
    check_arithmetic<bool>();
    check_arithmetic<d::i8>();
    check_arithmetic<d::u8>();
    check_arithmetic<d::i16>();
    check_arithmetic<d::u16>();
    check_arithmetic<d::i32>();
    check_arithmetic<d::u32>();
    check_arithmetic<d::i64>();
    check_arithmetic<d::u64>();
}

TEST_CASE("Conversions are those of graph/types/convert.h for every pair of dtypes", "[device]") {
    for (int from = 0; from < bitale::dtype_count; ++from)
        for (int to = 0; to < bitale::dtype_count; ++to)
            bitale::dispatch(static_cast<bitale::DType>(from), [&](auto f) {
                bitale::dispatch(static_cast<bitale::DType>(to),
                                 [&](auto t) { check_conversion<decltype(f), decltype(t)>(); });
            });
}

TEST_CASE("Clamped indices are valid ones", "[device]") {
    CHECK(d::b_clamp_index(-1, 5) == 0);
    CHECK(d::b_clamp_index(0, 5) == 0);
    CHECK(d::b_clamp_index(4, 5) == 4);
    CHECK(d::b_clamp_index(5, 5) == 4);
    CHECK(d::b_clamp_index(INT64_MAX, 5) == 4);
    CHECK(d::b_clamp_index(INT64_MIN, 5) == 0);
    CHECK(d::b_clamp_index(3, 0) == 0);
    CHECK(d::b_clamp_index(3, -2) == 0);
}

TEST_CASE("The first report of an error stays, whole, also from many threads", "[device]") {
    d::i64 errors[4] = {};
    d::b_report(errors, 6, -3, 40, 9);
    d::b_report(errors, 7, 1, 2, 3);
    CHECK(errors[0] == 7);
    CHECK(errors[1] == -3);
    CHECK(errors[2] == 40);
    CHECK(errors[3] == 9);

    d::i64 shared[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&shared, i] { d::b_report(shared, i, 10 * i, 100 * i, 1000 * i); });
    for (std::thread& t : threads) t.join();
    CHECK(shared[1] == 10 * (shared[0] - 1));
    CHECK(shared[2] == 100 * (shared[0] - 1));
    CHECK(shared[3] == 1000 * (shared[0] - 1));
}

TEST_CASE("Random words are Philox-4x32-10", "[device]") {
    CHECK(d::b_philox(0, 0, 0) == 0x6627e8d5u);
    CHECK(d::b_philox_second(0, 0, 0) == 0xe169c58du);
    std::mt19937_64 random(8);
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t key = random(), counter = random(), index = random();
        wrong += d::b_philox(key, counter, index) != bitale::philox::word(key, counter, index, 0);
        wrong += d::b_philox_second(key, counter, index) != bitale::philox::word(key, counter, index, 1);
    }
    CHECK(wrong == 0);
}
