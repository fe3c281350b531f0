// float64 trigonometry. Within 2 ulp for every argument, however large; infinity gives NaN.

struct b_angle {
    f64 r, low;  // the angle that is left, as a sum
    u32 n;       // quarter turns, mod 4
};

// The bits of 2 / pi after 64 zeros.
B_TABLE u64 b_two_over_pi[] = {
    0x0000000000000000ull, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull,
    0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull,
    0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull,
    0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull,
    0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
    0xf0cfbc209af4361dull,
};

#ifdef __CUDACC__
B_FN u64 b_multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }
#else
B_FN u64 b_multiply_high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
#endif

// For |x| >= 2^48: x = m 2^e with an integer m; the digits of 2^e (2 / pi) from the weight 2 on, times m, are
// quarter turns mod 4 and a fraction, all exact but for digits below 2^-137.
B_COLD b_angle b_reduce_large_angle(f64 x) {
    const u64 bits = b_bits(x);
    const u64 m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    const u32 start = (u32)(bits >> 52 & 0x7ff) - (1075 - 62), word = start >> 6, shift = start & 63;
    u64 digits[3];
    B_UNROLL
    for (u32 i = 0; i < 3; ++i)
        digits[i] = shift == 0
                        ? b_two_over_pi[word + i]
                        : b_two_over_pi[word + i] << shift | b_two_over_pi[word + i + 1] >> (64 - shift);
    const u64 middle = m * digits[1], low = b_multiply_high(m, digits[2]) + middle;
    u64 high = m * digits[0] + b_multiply_high(m, digits[1]) + (low < middle ? 1 : 0), rest = low;
    // The nearest quarter turn; the fraction that is left has a sign.
    const u32 turns = (u32)((high + (1ull << 61)) >> 62);
    high -= (u64)turns << 62;
    const bool negative = (high >> 63) != 0;
    if (negative) {
        rest = 0 - rest;
        high = ~high + (rest == 0 ? 1 : 0);
    }
    const f64 coarse = (f64)(i64)(high & ~0x7ffull) * 0x1p-62;
    const f64 fine = b_fma((f64)rest, 0x1p-126, (f64)(i64)(high & 0x7ff) * 0x1p-62);
    const f64 f = coarse + fine, f_low = fine - (f - coarse);
    const f64 r = f * 0x1.921fb54442d18p0;
    const f64 r_low =
        b_fma(f, 0x1.921fb54442d18p0, -r) + b_fma(f, 0x1.1a62633145c07p-54, f_low * 0x1.921fb54442d18p0);
    const bool flip = negative != (x < 0.0);
    return b_angle{flip ? -r : r, flip ? -r_low : r_low, x < 0.0 ? 0u - turns : turns};
}

// Below that x - n (pi / 2) with pi / 2 in three parts. The first difference is exact.
B_FN b_angle b_reduce_angle(f64 x) {
    if (b_magnitude(x) >= 0x1p48) return b_isinf(x) ? b_angle{b_nan, b_nan, 0} : b_reduce_large_angle(x);
    const f64 t = b_fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52), n = t - 0x1.8p52;
    const f64 first = b_fma(n, -0x1.921fb54442d18p0, x);
    const f64 second = n * 0x1.1a62633145c07p-54, second_low = b_fma(n, 0x1.1a62633145c07p-54, -second);
    const f64 r = first - second, back = first - r;
    const f64 error = (first - (r + back)) + (back - second);
    const f64 low = error - second_low - n * -0x1.f1976b7ed8fbcp-110;
    return b_angle{r, low, (u32)b_bits(t)};
}

// Sine and cosine of an angle of at most pi / 4, each as a sum.
struct b_sine_cosine {
    f64 sine, sine_low, cosine, cosine_low;
};
B_FN b_sine_cosine b_sine_cosine_of(f64 r, f64 low) {
    const f64 z = r * r, half = 0.5 * z, w = 1.0 - half;
    f64 s = 0x1.5d7e524012726p-33;
    s = b_fma(s, z, -0x1.ae5e1fdc3fadcp-26);
    s = b_fma(s, z, 0x1.71de351f53f0fp-19);
    s = b_fma(s, z, -0x1.a01a019badd6ap-13);
    s = b_fma(s, z, 0x1.111111110f574p-7);
    s = b_fma(s, z, -0x1.5555555555547p-3);
    f64 c = -0x1.8f8b73cbac65ep-37;
    c = b_fma(c, z, 0x1.1ee9a7a8080f6p-29);
    c = b_fma(c, z, -0x1.27e4f7a4ecf6ep-22);
    c = b_fma(c, z, 0x1.a01a019c24ed4p-16);
    c = b_fma(c, z, -0x1.6c16c16c14bcfp-10);
    c = b_fma(c, z, 0x1.5555555555549p-5);
    const f64 s_tail = b_fma(s * z, r, low * w), c_tail = b_fma(z * z, c, (1.0 - w) - half - r * low);
    const f64 sine = r + s_tail, cosine = w + c_tail;
    return b_sine_cosine{sine, s_tail - (sine - r), cosine, c_tail - (cosine - w)};
}
B_FN f64 b_sin_of_turns(b_angle angle, u32 quarter) {
    const b_sine_cosine v = b_sine_cosine_of(angle.r, angle.low);
    const u32 n = angle.n + quarter;
    const f64 y = (n & 1u) != 0 ? v.cosine : v.sine;
    return (n & 2u) != 0 ? -y : y;
}
B_FN f64 b_sin(f64 x) {
    const f64 y = b_sin_of_turns(b_reduce_angle(x), 0);
    return b_magnitude(x) < 0x1p-27 ? x : y;
}
B_FN f64 b_cos(f64 x) { return b_sin_of_turns(b_reduce_angle(x), 1); }

// The quotient, corrected by its remainder.
B_FN f64 b_tan(f64 x) {
    const b_angle angle = b_reduce_angle(x);
    const b_sine_cosine v = b_sine_cosine_of(angle.r, angle.low);
    const bool odd = (angle.n & 1u) != 0;
    const f64 a = odd ? -v.cosine : v.sine, a_low = odd ? -v.cosine_low : v.sine_low;
    const f64 b = odd ? v.sine : v.cosine, b_low = odd ? v.sine_low : v.cosine_low;
    const f64 q = a / b, y = q + (b_fma(-q, b, a) + b_fma(-q, b_low, a_low)) / b;
    return b_magnitude(x) < 0x1p-27 ? x : y;
}

#define B_HALF_PI64 0x1.921fb54442d18p0
#define B_HALF_PI64_LOW 0x1.1a62633145c07p-54

// atan(a) = atan(c) + atan((a - c) / (1 + a c)) with c = 0, 1/2, 1 or infinity.
B_FN f64 b_atan(f64 x) {
    const f64 a = b_magnitude(x);
    const bool some = a > 0.4, more = a > 0.7, most = a > 2.4;
    const f64 numerator = most ? -1.0 : a - (more ? 1.0 : some ? 0.5 : 0.0);
    const f64 denominator = most ? a : b_fma(a, more ? 1.0 : some ? 0.5 : 0.0, 1.0);
    const f64 base = most ? B_HALF_PI64 : more ? 0.5 * B_HALF_PI64 : some ? 0x1.dac670561bb4fp-2 : 0.0;
    const f64 base_low = most   ? B_HALF_PI64_LOW
                         : more ? 0.5 * B_HALF_PI64_LOW
                         : some ? 0x1.a2b7f222f65e2p-56
                                : 0.0;
    const f64 t = numerator / denominator, z = t * t;
    f64 p = -0x1.24c1bccc27b35p-6;
    p = b_fma(p, z, 0x1.378944c526648p-5);
    p = b_fma(p, z, -0x1.9cb4e9688a0f8p-5);
    p = b_fma(p, z, 0x1.df08b94c1071ap-5);
    p = b_fma(p, z, -0x1.10eb457f22727p-4);
    p = b_fma(p, z, 0x1.3b110f1257032p-4);
    p = b_fma(p, z, -0x1.745cf84c7fa03p-4);
    p = b_fma(p, z, 0x1.c71c70e10e281p-4);
    p = b_fma(p, z, -0x1.24924922a074cp-3);
    p = b_fma(p, z, 0x1.999999999564fp-3);
    p = b_fma(p, z, -0x1.555555555553cp-2);
    return b_copysign(base + (b_fma(p * z, t, base_low) + t), x);
}

B_FN f64 b_asin_inner(f64 t, f64 z) {
    f64 p = 0x1.e9c5c9020635p-5;
    p = b_fma(p, z, -0x1.3a16bf6403fb4p-4);
    p = b_fma(p, z, 0x1.18c4b64df425dp-4);
    p = b_fma(p, z, -0x1.6293a14a10edcp-6);
    p = b_fma(p, z, 0x1.1e57abec24454p-6);
    p = b_fma(p, z, 0x1.fcfe950a3a064p-8);
    p = b_fma(p, z, 0x1.84b9b022c601fp-7);
    p = b_fma(p, z, 0x1.c878866799823p-7);
    p = b_fma(p, z, 0x1.1c59f92710e77p-6);
    p = b_fma(p, z, 0x1.6e8b0be3b3fadp-6);
    p = b_fma(p, z, 0x1.f1c7219323ed3p-6);
    p = b_fma(p, z, 0x1.6db6db6084d1p-5);
    p = b_fma(p, z, 0x1.333333334452bp-4);
    p = b_fma(p, z, 0x1.55555555554d9p-3);
    return b_fma(p * z, t, t);
}

B_FN f64 b_asin(f64 x) {
    const f64 a = b_magnitude(x), square = a * a, half = b_fma(-0.5, a, 0.5);
    const bool outer = a > 0.5625;
    const f64 z = outer ? half : square, t = outer ? b_sqrt(half) : a, y = b_asin_inner(t, z);
    return b_copysign(outer ? B_HALF_PI64 - b_fma(2.0, y, -B_HALF_PI64_LOW) : y, x);
}

B_FN f64 b_acos(f64 x) {
    const f64 a = b_magnitude(x), square = a * a, half = b_fma(-0.5, a, 0.5);
    const bool outer = a > 0.5625;
    const f64 z = outer ? half : square, t = outer ? b_sqrt(half) : x, y = b_asin_inner(t, z);
    const f64 inner = B_HALF_PI64 - (y - B_HALF_PI64_LOW);
    return outer ? (x > 0.0 ? 2.0 * y : 2.0 * inner) : inner;
}
