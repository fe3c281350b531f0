// Casts between all element types: b_to_T(x). The semantics are those of graph/types/convert.h: float to
// integer truncates and saturates and NaN gives 0; integers wrap; to bool is != 0; to the half types rounds
// to nearest even.

B_FN f32 b_to_f32(f16 x) {
    const u32 sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
    // Infinities and NaNs, numbers, subnormal numbers (exact in a product).
    const u32 special = 0x7f800000u | (rest << 13), number = (rest << 13) + 0x38000000u;
    const u32 tiny = b_bits((f32)(i32)rest * 0x1p-24f);
    return b_float(sign | (rest >= 0x7c00u ? special : rest < 0x400u ? tiny : number));
}
B_FN f32 b_to_f32(bf16 x) { return b_float((u32)x.bits << 16); }
template <class T>
B_FN f32 b_to_f32(T x) {
    return (f32)x;
}

B_FN f64 b_to_f64(f16 x) { return (f64)b_to_f32(x); }
B_FN f64 b_to_f64(bf16 x) { return (f64)b_to_f32(x); }
template <class T>
B_FN f64 b_to_f64(T x) {
    return (f64)x;
}

B_FN f16 b_to_f16(f32 x) {
    const u32 sign = (b_bits(x) >> 16) & 0x8000u, rest = b_bits(x) & 0x7fffffffu;
    const u32 number = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
    // Adding 0.5 lets the float unit round a subnormal result at the right bit.
    const u32 tiny = b_bits(b_float(rest < 0x38800000u ? rest : 0u) + 0.5f) - 0x3f000000u;
    const u32 large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return f16{(u16)(sign | (rest >= 0x477ff000u ? large : rest < 0x38800000u ? tiny : number))};
}
B_FN f16 b_to_f16(f16 x) { return x; }
B_FN f16 b_to_f16(bf16 x) { return b_to_f16(b_to_f32(x)); }
template <class T>
B_FN f16 b_to_f16(T x) {
    return b_to_f16((f32)x);
}

B_FN bf16 b_to_bf16(f32 x) {
    const u32 bits = b_bits(x), quiet = (bits >> 16) | 0x40u;
    const u32 number = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return bf16{(u16)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : number)};
}
B_FN bf16 b_to_bf16(bf16 x) { return x; }
B_FN bf16 b_to_bf16(f16 x) { return b_to_bf16(b_to_f32(x)); }
template <class T>
B_FN bf16 b_to_bf16(T x) {
    return b_to_bf16((f32)x);
}

B_FN bool b_to_bool(f16 x) { return (x.bits & 0x7fffu) != 0; }
B_FN bool b_to_bool(bf16 x) { return (x.bits & 0x7fffu) != 0; }
template <class T>
B_FN bool b_to_bool(T x) {
    return x != 0;
}

#define B_FROM_HALF(NAME, T)                         \
    B_FN T NAME(f16 x) { return NAME(b_to_f32(x)); } \
    B_FN T NAME(bf16 x) { return NAME(b_to_f32(x)); }

// Limits that both float types hold: clamp, then truncate.
#define B_TO_SMALL(NAME, T, F, LOW, HIGH)             \
    B_FN T NAME(F x) {                                \
        const F number = x == x ? x : (F)0;           \
        const F above = number > LOW ? number : LOW;  \
        return (T)(i32)(above < HIGH ? above : HIGH); \
    }

// The float below LIMIT (2^bits, less one bit for a sign) is BELOW; at or above LIMIT the result is MAX.
#define B_TO_LARGE(NAME, T, F, LOW, BELOW, LIMIT, MAX)          \
    B_FN T NAME(F x) {                                          \
        const F number = x == x ? x : (F)0;                     \
        const F above = number > LOW ? number : LOW;            \
        const T truncated = (T)(above < BELOW ? above : BELOW); \
        return number >= LIMIT ? MAX : truncated;               \
    }

template <class T>
B_FN i8 b_to_i8(T x) {
    return (i8)x;
}
B_TO_SMALL(b_to_i8, i8, f32, -128.0f, 127.0f)
B_TO_SMALL(b_to_i8, i8, f64, -128.0, 127.0)
B_FROM_HALF(b_to_i8, i8)

template <class T>
B_FN u8 b_to_u8(T x) {
    return (u8)x;
}
B_TO_SMALL(b_to_u8, u8, f32, 0.0f, 255.0f)
B_TO_SMALL(b_to_u8, u8, f64, 0.0, 255.0)
B_FROM_HALF(b_to_u8, u8)

template <class T>
B_FN i16 b_to_i16(T x) {
    return (i16)x;
}
B_TO_SMALL(b_to_i16, i16, f32, -32768.0f, 32767.0f)
B_TO_SMALL(b_to_i16, i16, f64, -32768.0, 32767.0)
B_FROM_HALF(b_to_i16, i16)

template <class T>
B_FN u16 b_to_u16(T x) {
    return (u16)x;
}
B_TO_SMALL(b_to_u16, u16, f32, 0.0f, 65535.0f)
B_TO_SMALL(b_to_u16, u16, f64, 0.0, 65535.0)
B_FROM_HALF(b_to_u16, u16)

template <class T>
B_FN i32 b_to_i32(T x) {
    return (i32)x;
}
B_TO_LARGE(b_to_i32, i32, f32, -0x1p31f, 0x1.fffffep30f, 0x1p31f, 0x7fffffff)
B_TO_SMALL(b_to_i32, i32, f64, -2147483648.0, 2147483647.0)
B_FROM_HALF(b_to_i32, i32)

template <class T>
B_FN u32 b_to_u32(T x) {
    return (u32)x;
}
B_TO_LARGE(b_to_u32, u32, f32, 0.0f, 0x1.fffffep31f, 0x1p32f, 0xffffffffu)
B_TO_LARGE(b_to_u32, u32, f64, 0.0, 4294967295.0, 0x1p32, 0xffffffffu)
B_FROM_HALF(b_to_u32, u32)

template <class T>
B_FN i64 b_to_i64(T x) {
    return (i64)x;
}
B_TO_LARGE(b_to_i64, i64, f32, -0x1p63f, 0x1.fffffep62f, 0x1p63f, 0x7fffffffffffffffll)
B_TO_LARGE(b_to_i64, i64, f64, -0x1p63, 0x1.fffffffffffffp62, 0x1p63, 0x7fffffffffffffffll)
B_FROM_HALF(b_to_i64, i64)

template <class T>
B_FN u64 b_to_u64(T x) {
    return (u64)x;
}
B_TO_LARGE(b_to_u64, u64, f32, 0.0f, 0x1.fffffep63f, 0x1p64f, 0xffffffffffffffffull)
B_TO_LARGE(b_to_u64, u64, f64, 0.0, 0x1.fffffffffffffp63, 0x1p64, 0xffffffffffffffffull)
B_FROM_HALF(b_to_u64, u64)
