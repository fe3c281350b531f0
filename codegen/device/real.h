// Floating-point functions that need no approximation: each is exact, or one rounding of the exact value.

B_FN f32 b_abs(f32 a) { return b_magnitude(a); }
B_FN f64 b_abs(f64 a) { return b_magnitude(a); }
B_FN f32 b_sign(f32 a) { return a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a; }
B_FN f64 b_sign(f64 a) { return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; }
B_FN bool b_isinf(f32 a) { return (b_bits(a) & 0x7fffffffu) == 0x7f800000u; }
B_FN bool b_isinf(f64 a) { return (b_bits(a) & 0x7fffffffffffffffull) == 0x7ff0000000000000ull; }

// NaN wins, and the first of two equal operands. The comparison alone keeps a NaN in `a`: in this form host
// compilers find the machine's maximum, also where several of them follow each other.
B_FN f32 b_maximum(f32 a, f32 b) {
    const f32 most = b > a ? b : a;
    return b != b ? b : most;
}
B_FN f64 b_maximum(f64 a, f64 b) {
    const f64 most = b > a ? b : a;
    return b != b ? b : most;
}
B_FN f32 b_minimum(f32 a, f32 b) {
    const f32 least = b < a ? b : a;
    return b != b ? b : least;
}
B_FN f64 b_minimum(f64 a, f64 b) {
    const f64 least = b < a ? b : a;
    return b != b ? b : least;
}

#define b_max_nan(a, b) b_maximum(a, b)
#define b_min_nan(a, b) b_minimum(a, b)

B_FN f32 b_clip(f32 a, f32 b, f32 c) { return a < b ? b : a > c ? c : a; }
B_FN f64 b_clip(f64 a, f64 b, f64 c) { return a < b ? b : a > c ? c : a; }
B_FN f32 b_relu(f32 a) { return a < 0.0f ? 0.0f : a; }
B_FN f64 b_relu(f64 a) { return a < 0.0 ? 0.0 : a; }

#ifdef __CUDACC__
#define B_ROUNDING(NAME, F32, F64)          \
    B_FN f32 NAME(f32 a) { return F32(a); } \
    B_FN f64 NAME(f64 a) { return F64(a); }
#else
#define B_ROUNDING(NAME, F32, F64)                      \
    B_FN f32 NAME(f32 a) { return __builtin_##F32(a); } \
    B_FN f64 NAME(f64 a) { return __builtin_##F64(a); }
#endif

B_ROUNDING(b_floor, floorf, floor)

B_ROUNDING(b_ceil, ceilf, ceil)

B_ROUNDING(b_trunc, truncf, trunc)

// Half to even.
B_ROUNDING(b_round, rintf, rint)

// The exact quotient toward minus infinity. What is rounded may have reached the next whole number: then the
// rest has the other sign. Beyond 2^24 and 2^53 the sum rounds.
B_FN f32 b_floordiv(f32 a, f32 b) {
    const f32 floor = b_floor(a / b), rest = b_fma(-floor, b, a);
    const bool beyond = !b_isinf(floor) & (b > 0.0f ? rest < 0.0f : rest > 0.0f);
    return beyond ? floor + b_minimum(-1.0f, b_floor(rest / b)) : floor;
}
B_FN f64 b_floordiv(f64 a, f64 b) {
    const f64 floor = b_floor(a / b), rest = b_fma(-floor, b, a);
    const bool beyond = !b_isinf(floor) & (b > 0.0 ? rest < 0.0 : rest > 0.0);
    return beyond ? floor + b_minimum(-1.0, b_floor(rest / b)) : floor;
}

// The sign of the divisor, whose sign a zero has too; NaN for the divisor 0.
#ifdef __CUDACC__
#define B_FMOD32(a, b) fmodf(a, b)
#define B_FMOD64(a, b) fmod(a, b)
#else
#define B_FMOD32(a, b) __builtin_fmodf(a, b)
#define B_FMOD64(a, b) __builtin_fmod(a, b)
#endif
B_FN f32 b_mod(f32 a, f32 b) {
    const f32 rest = B_FMOD32(a, b);
    return rest == 0.0f ? b_copysign(0.0f, b) : (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
B_FN f64 b_mod(f64 a, f64 b) {
    const f64 rest = B_FMOD64(a, b);
    return rest == 0.0 ? b_copysign(0.0, b) : (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}
