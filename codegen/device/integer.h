// Integer and boolean arithmetic that C leaves undefined: overflow wraps, division by zero gives 0, wide
// shifts give 0 or the sign. Wrapping sums and products are formed in W, an unsigned type of 32 bits or more.

#define B_WRAPPING(T, W)                                \
    B_FN T b_add(T a, T b) { return (T)((W)a + (W)b); } \
    B_FN T b_sub(T a, T b) { return (T)((W)a - (W)b); } \
    B_FN T b_mul(T a, T b) { return (T)((W)a * (W)b); }
#define B_NEGATION(T, W) \
    B_FN T b_neg(T a) { return (T)((W)0 - (W)a); }
B_FN bool b_add(bool a, bool b) { return a | b; }
B_FN bool b_sub(bool a, bool b) { return a != b; }
B_FN bool b_mul(bool a, bool b) { return a & b; }
B_FN bool b_neg(bool a) { return a; }
B_WRAPPING(i8, u32)
B_WRAPPING(u8, u32)
B_WRAPPING(i16, u32)
B_WRAPPING(u16, u32)
B_WRAPPING(i32, u32)
B_WRAPPING(u32, u32)
B_WRAPPING(i64, u64)
B_WRAPPING(u64, u64)
B_NEGATION(i8, u32)
B_NEGATION(u8, u32)
B_NEGATION(i16, u32)
B_NEGATION(u16, u32)
B_NEGATION(u32, u32)
B_NEGATION(i64, u64)
B_NEGATION(u64, u64)
// Wrong code of ptxas 13.0 and 13.2 for sm_90 and sm_100, seen on an H200: the instruction for the largest or
// least of three integers, VIMNMX3, drops the negation of one of them, as in max(max(a, -b), c). ptxas does
// not recognise ~a + 1 as a negation; NVRTC does, unless asm hides the two operations.
#ifdef __CUDACC__
#ifdef __CUDACC_RTC__
B_FN i32 b_neg(i32 a) {
    i32 inverted, r;
    asm("not.b32 %0, %1;" : "=r"(inverted) : "r"(a));
    asm("add.s32 %0, %1, 1;" : "=r"(r) : "r"(inverted));
    return r;
}
#else
B_NEGATION(i32, u32)
#endif
#else
B_NEGATION(i32, u32)
#endif

// The divisors 0 and -1 are replaced before the division, which would trap.
#define B_SIGNED_DIVISION(T, W)                                                     \
    B_FN T b_floordiv(T a, T b) {                                                   \
        const T divisor = ((b == 0) | (b == -1)) ? (T)1 : b;                        \
        const T quotient = (T)(a / divisor), rest = (T)(a % divisor);               \
        const T floor = (T)(quotient - ((rest != 0) & ((rest ^ divisor) < 0)));     \
        return b == 0 ? (T)0 : b == -1 ? (T)((W)0 - (W)a) : floor;                  \
    }                                                                               \
    B_FN T b_mod(T a, T b) {                                                        \
        const T divisor = ((b == 0) | (b == -1)) ? (T)1 : b;                        \
        const T rest = (T)(a % divisor);                                            \
        return ((rest != 0) & ((rest ^ divisor) < 0)) ? (T)(rest + divisor) : rest; \
    }
#define B_UNSIGNED_DIVISION(T)                                                           \
    B_FN T b_floordiv(T a, T b) { return b == 0 ? (T)0 : (T)(a / (b == 0 ? (T)1 : b)); } \
    B_FN T b_mod(T a, T b) { return b == 0 ? (T)0 : (T)(a % (b == 0 ? (T)1 : b)); }
B_FN bool b_floordiv(bool a, bool b) { return a & b; }
B_FN bool b_mod(bool, bool) { return false; }
B_SIGNED_DIVISION(i8, u32)
B_SIGNED_DIVISION(i16, u32)
B_SIGNED_DIVISION(i32, u32)
B_SIGNED_DIVISION(i64, u64)
B_UNSIGNED_DIVISION(u8)
B_UNSIGNED_DIVISION(u16)
B_UNSIGNED_DIVISION(u32)
B_UNSIGNED_DIVISION(u64)

// By squaring; a negative exponent gives the reciprocal, rounded toward zero, and 0 for the base 0.
#define B_POWER(T, W)                                \
    B_FN T b_pow_natural(T a, T b) {                 \
        W power = 1, square = (W)a;                  \
        for (W left = (W)b; left != 0; left >>= 1) { \
            if (left & 1) power *= square;           \
            square *= square;                        \
        }                                            \
        return (T)power;                             \
    }
#define B_UNSIGNED_POWER(T, W) \
    B_POWER(T, W)              \
    B_FN T b_pow(T a, T b) { return b_pow_natural(a, b); }
#define B_SIGNED_POWER(T, W)                                                \
    B_POWER(T, W)                                                           \
    B_FN T b_pow(T a, T b) {                                                \
        if (b >= 0) return b_pow_natural(a, b);                             \
        return a == 1 ? (T)1 : a == -1 ? (T)((b & 1) != 0 ? -1 : 1) : (T)0; \
    }
B_FN bool b_pow(bool a, bool b) { return a | !b; }
B_SIGNED_POWER(i8, u32)
B_SIGNED_POWER(i16, u32)
B_SIGNED_POWER(i32, u32)
B_SIGNED_POWER(i64, u64)
B_UNSIGNED_POWER(u8, u32)
B_UNSIGNED_POWER(u16, u32)
B_UNSIGNED_POWER(u32, u32)
B_UNSIGNED_POWER(u64, u64)

#define B_SIGNED_SIGN(T, W)                                    \
    B_FN T b_abs(T a) { return a < 0 ? (T)((W)0 - (W)a) : a; } \
    B_FN T b_sign(T a) { return (T)((a > 0) - (a < 0)); }      \
    B_FN T b_relu(T a) { return a < 0 ? (T)0 : a; }
#define B_UNSIGNED_SIGN(T)                     \
    B_FN T b_abs(T a) { return a; }            \
    B_FN T b_sign(T a) { return (T)(a != 0); } \
    B_FN T b_relu(T a) { return a; }
B_UNSIGNED_SIGN(bool)
B_SIGNED_SIGN(i8, u32)
B_SIGNED_SIGN(i16, u32)
B_SIGNED_SIGN(i32, u32)
B_SIGNED_SIGN(i64, u64)
B_UNSIGNED_SIGN(u8)
B_UNSIGNED_SIGN(u16)
B_UNSIGNED_SIGN(u32)
B_UNSIGNED_SIGN(u64)

#define B_ORDER(T)                                        \
    B_FN T b_maximum(T a, T b) { return a >= b ? a : b; } \
    B_FN T b_minimum(T a, T b) { return a <= b ? a : b; } \
    B_FN T b_clip(T a, T b, T c) { return a < b ? b : a > c ? c : a; }
B_ORDER(bool)
B_ORDER(i8)
B_ORDER(u8)
B_ORDER(i16)
B_ORDER(u16)
B_ORDER(i32)
B_ORDER(u32)
B_ORDER(i64)
B_ORDER(u64)
// Memory holds truth values as bytes.
B_FN bool b_maximum(u8 a, bool b) { return a | b; }
B_FN bool b_minimum(u8 a, bool b) { return a & b; }

// The count is masked before the shift, which C defines below the width alone.
#define B_SIGNED_SHIFT(T, W, BITS)                                                                           \
    B_FN T b_invert(T a) { return (T)~a; }                                                                   \
    B_FN T b_shift_left(T a, T b) { return ((b < 0) | (b >= BITS)) ? (T)0 : (T)((W)a << (b & (BITS - 1))); } \
    B_FN T b_shift_right(T a, T b) { return (T)(a >> (((b < 0) | (b >= BITS)) ? (T)(BITS - 1) : b)); }
#define B_UNSIGNED_SHIFT(T, W, BITS)                                                           \
    B_FN T b_invert(T a) { return (T)~a; }                                                     \
    B_FN T b_shift_left(T a, T b) { return b >= BITS ? (T)0 : (T)((W)a << (b & (BITS - 1))); } \
    B_FN T b_shift_right(T a, T b) { return b >= BITS ? (T)0 : (T)(a >> (b & (BITS - 1))); }
B_FN bool b_invert(bool a) { return !a; }
B_SIGNED_SHIFT(i8, u32, 8)
B_SIGNED_SHIFT(i16, u32, 16)
B_SIGNED_SHIFT(i32, u32, 32)
B_SIGNED_SHIFT(i64, u64, 64)
B_UNSIGNED_SHIFT(u8, u32, 8)
B_UNSIGNED_SHIFT(u16, u32, 16)
B_UNSIGNED_SHIFT(u32, u32, 32)
B_UNSIGNED_SHIFT(u64, u64, 64)
