// float32 functions around exp. Within 2 units in the last place (ulp). Powers below the normal numbers are
// 0: processors take a hundred times as long for a product with a subnormal number, and the weights that a
// softmax gives to what a mask of -100 excludes are such numbers.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 and n an integer; exp(r) = 1 + r + r^2 q(r), q minimax for the relative
// error.

// The sum of this number and a small number is that number rounded to an integer, which the low bits then
// hold, 254 more of it.
#define B_ROUNDER 0x1.8001fcp23f
#define B_LN2_HIGH 0x1.62e4p-1f
#define B_LN2_LOW 0x1.7f7d1cp-20f
// y 2^(t + shift) of such a sum t.
B_FN f32 b_times_power_of_two(f32 y, f32 t, u32 shift) {
    // In two factors, each half of the number more than the 127 that an exponent is stored with: together
    // they may lie outside the floats.
    const u32 half = b_bits(t) >> 1, rest = b_bits(t) - half + shift;
    return y * b_float(half << 23) * b_float(rest << 23);
}

B_FN f32 b_exp_remainder(f32 r) {
    f32 q = 0x1.6afdc2p-10f;
    q = b_fma(q, r, 0x1.12449p-7f);
    q = b_fma(q, r, 0x1.555826p-5f);
    q = b_fma(q, r, 0x1.555482p-3f);
    return b_fma(q, r, 0x1.fffffcp-2f);
}

// exp(x) 2^shift for a shift of 0 or less. Where x is clamped, the result is infinite or 0 already.
B_FN f32 b_exp_shifted(f32 x, u32 shift) {
    const bool none = x < -0x1.5d589ep+6f;
    const f32 low = x > 91.0f ? 91.0f : x, c = none ? 0.0f : low;
    const f32 t = b_fma(c, 0x1.715476p0f, B_ROUNDER), n = t - B_ROUNDER;
    const f32 r = b_fma(n, -B_LN2_LOW, b_fma(n, -B_LN2_HIGH, c));
    const f32 y = b_fma(r * r, b_exp_remainder(r), r) + 1.0f;
    const f32 power = b_times_power_of_two(y, t, shift);
    return none ? 0.0f : power;
}
B_FN f32 b_exp(f32 x) { return b_exp_shifted(x, 0); }

B_FN f32 b_exp2(f32 x) {
    const bool none = x < -126.0f;
    const f32 low = x > 130.0f ? 130.0f : x, c = none ? 0.0f : low;
    const f32 t = c + B_ROUNDER, r = c - (t - B_ROUNDER);
    f32 q = 0x1.e1016ep-17f;
    q = b_fma(q, r, 0x1.441018p-13f);
    q = b_fma(q, r, 0x1.5da548p-10f);
    q = b_fma(q, r, 0x1.3b2a6p-7f);
    q = b_fma(q, r, 0x1.c6b06ep-5f);
    q = b_fma(q, r, 0x1.ebfbep-3f);
    q = b_fma(q, r, 0x1.62e43p-1f);
    const f32 power = b_times_power_of_two(b_fma(r, q, 1.0f), t, 0);
    return none ? 0.0f : power;
}

B_FN f32 b_expm1_remainder(f32 r) {
    f32 q = 0x1.3b56c8p-13f;
    q = b_fma(q, r, 0x1.6d34eap-10f);
    q = b_fma(q, r, 0x1.115752p-7f);
    q = b_fma(q, r, 0x1.5554fep-5f);
    q = b_fma(q, r, 0x1.55552ap-3f);
    return b_fma(q, r, 0.5f);
}

// 2^n (1 + y) - 1 = 2^n y + (2^n - 1): nothing cancels where n = 0, and for large n the 1 vanishes in the
// rounding. Formed from 2^(n-1) and doubled at the end, since 2^n may overflow.
B_FN f32 b_expm1(f32 x) {
    const f32 low = x > 89.0f ? 89.0f : x, c = low < -26.0f ? -26.0f : low;
    const f32 t = b_fma(c, 0x1.715476p0f, B_ROUNDER), n = t - B_ROUNDER;
    const f32 r = b_fma(n, -B_LN2_LOW, b_fma(n, -B_LN2_HIGH, c));
    const f32 y = b_fma(r * r, b_expm1_remainder(r), r);
    const f32 half = b_float((b_bits(t) - b_bits(B_ROUNDER) + 126u) << 23);
    return b_magnitude(x) < 0x1p-24f ? x : 2.0f * b_fma(half, y, half - 0.5f);
}

// exp(x) where neither it nor the power of two leaves the normal numbers: the same number in fewer steps.
B_FN f32 b_exp_moderate(f32 x) {
    const f32 t = b_fma(x, 0x1.715476p0f, B_ROUNDER), n = t - B_ROUNDER;
    const f32 r = b_fma(n, -B_LN2_LOW, b_fma(n, -B_LN2_HIGH, x));
    const f32 y = b_fma(r * r, b_exp_remainder(r), r) + 1.0f;
    return y * b_float((b_bits(t) - b_bits(B_ROUNDER) + 127u) << 23);
}

// A polynomial near 0, elsewhere 1 - 2 / (exp(2 |x|) + 1), which is 1 in float32 from 9.02 on.
B_FN f32 b_tanh(f32 x) {
    const f32 size = b_magnitude(x), c = size > 10.0f ? 10.0f : size, z = x * x;
    f32 p = -0x1.9921ap-8f;
    p = b_fma(p, z, 0x1.58e518p-6f);
    p = b_fma(p, z, -0x1.b91e7ep-5f);
    p = b_fma(p, z, 0x1.110ceep-3f);
    p = b_fma(p, z, -0x1.55554ap-2f);
    const f32 outer = 1.0f - 2.0f / (b_exp_moderate(2.0f * c) + 1.0f);
    return b_copysign(size < 0.55f ? b_fma(p * z, x, x) : outer, x);
}

// With exp(-|x|) nothing overflows, and small results keep their precision: q = e / (1 + e) is the smaller of
// the results for x and -x; e - e q is the same number, better rounded where e is small.
B_FN f32 b_sigmoid(f32 x) {
    const f32 e = b_exp(-b_magnitude(x)), q = e / (1.0f + e);
    return x >= 0.0f ? 1.0f - q : e < 0.5f ? b_fma(-e, q, e) : q;
}

B_FN f32 b_cosh(f32 x) {
    const f32 half = b_exp_shifted(b_magnitude(x), 0xffffffffu);
    return half + 0.25f / half;
}

B_FN f32 b_sinh(f32 x) {
    const f32 size = b_magnitude(x), half = b_exp_shifted(size, 0xffffffffu), z = x * x;
    f32 p = 0x1.756c1ep-19f;
    p = b_fma(p, z, 0x1.a022bcp-13f);
    p = b_fma(p, z, 0x1.1110ep-7f);
    p = b_fma(p, z, 0x1.555556p-3f);
    return b_copysign(size < 1.0f ? b_fma(p * z, x, x) : half - 0.25f / half, x);
}
