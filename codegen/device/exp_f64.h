// float64 functions around exp: the methods of exp_f32.h with longer polynomials. Within 2 ulp; powers below
// the normal numbers are 0.

#define B_ROUNDER64 0x1.8p52
#define B_LN2_HIGH64 0x1.62e42fefa38p-1
#define B_LN2_LOW64 0x1.ef35793c7673p-45
B_FN f64 b_times_power_of_two(f64 y, u64 k) {
    const u64 half = (u64)((i64)k >> 1), rest = k - half;
    return y * b_double((half + 1023u) << 52) * b_double((rest + 1023u) << 52);
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2.
B_FN f64 b_exp_remainder(f64 r) {
    f64 q = 0x1.1f86f309ee61cp-29;
    q = b_fma(q, r, 0x1.af6c8abf3cb33p-26);
    q = b_fma(q, r, 0x1.27e4c113f1c75p-22);
    q = b_fma(q, r, 0x1.71ddf1323634ep-19);
    q = b_fma(q, r, 0x1.a01a01b9f2eeep-16);
    q = b_fma(q, r, 0x1.a01a01b272438p-13);
    q = b_fma(q, r, 0x1.6c16c16c1181ep-10);
    q = b_fma(q, r, 0x1.111111110f0a4p-7);
    q = b_fma(q, r, 0x1.555555555555dp-5);
    q = b_fma(q, r, 0x1.555555555555ap-3);
    q = b_fma(q, r, 0x1p-1);
    return q;
}

// exp(x) 2^shift for a shift of 0 or less.
B_FN f64 b_exp_shifted(f64 x, u64 shift) {
    const bool none = x < -0x1.6232bdd7abcd1p9;
    const f64 low = x > 712.0 ? 712.0 : x, c = none ? 0.0 : low;
    const f64 t = b_fma(c, 0x1.71547652b82fep0, B_ROUNDER64), n = t - B_ROUNDER64;
    const f64 r = b_fma(n, -B_LN2_LOW64, b_fma(n, -B_LN2_HIGH64, c));
    const f64 y = b_fma(r * r, b_exp_remainder(r), r) + 1.0;
    const f64 power = b_times_power_of_two(y, b_bits(t) - b_bits(B_ROUNDER64) + shift);
    return none ? 0.0 : power;
}
B_FN f64 b_exp(f64 x) { return b_exp_shifted(x, 0); }

// (2^r - 1) / r for |r| <= 1/2.
B_FN f64 b_exp2_remainder(f64 r) {
    f64 q = 0x1.e9665af77cc6p-35;
    q = b_fma(q, r, 0x1.ecde3f1e8034ep-32);
    q = b_fma(q, r, 0x1.e3484a80e0d85p-28);
    q = b_fma(q, r, 0x1.b522d67f31ca1p-24);
    q = b_fma(q, r, 0x1.62c08f66aabb2p-20);
    q = b_fma(q, r, 0x1.ffcbfd7a4f102p-17);
    q = b_fma(q, r, 0x1.430912dcbf43p-13);
    q = b_fma(q, r, 0x1.5d87fe786a9ddp-10);
    q = b_fma(q, r, 0x1.3b2ab6fbaadecp-7);
    q = b_fma(q, r, 0x1.c6b08d704a1fbp-5);
    q = b_fma(q, r, 0x1.ebfbdff82c574p-3);
    q = b_fma(q, r, 0x1.62e42fefa39efp-1);
    return q;
}

B_FN f64 b_exp2(f64 x) {
    const bool none = x < -1022.0;
    const f64 low = x > 1030.0 ? 1030.0 : x, c = none ? 0.0 : low;
    const f64 t = c + B_ROUNDER64, r = c - (t - B_ROUNDER64);
    const f64 power =
        b_times_power_of_two(b_fma(r, b_exp2_remainder(r), 1.0), b_bits(t) - b_bits(B_ROUNDER64));
    return none ? 0.0 : power;
}

// Around n = 1 the 1 cancels half of 2^n y, so y carries its rounding error.
B_FN f64 b_expm1(f64 x) {
    const f64 below = x > 710.0 ? 710.0 : x, c = below < -60.0 ? -60.0 : below;
    const f64 t = b_fma(c, 0x1.71547652b82fep0, B_ROUNDER64), n = t - B_ROUNDER64;
    const f64 first = b_fma(n, -B_LN2_HIGH64, c), r = b_fma(n, -B_LN2_LOW64, first);
    const f64 tail = r * r * b_exp_remainder(r), y = r + tail;
    const f64 low = ((r - y) + tail) + b_fma(n, -B_LN2_LOW64, first - r);
    const f64 half = b_double((b_bits(t) - b_bits(B_ROUNDER64) + 1022u) << 52);
    return b_magnitude(x) < 0x1p-53 ? x : 2.0 * b_fma(half, low, b_fma(half, y, half - 0.5));
}

B_FN f64 b_tanh(f64 x) {
    const f64 size = b_magnitude(x), c = size > 20.0 ? 20.0 : size, z = x * x;
    f64 p = -0x1.46ee0d4827896p-16;
    p = b_fma(p, z, 0x1.5d667f1f1d56cp-14);
    p = b_fma(p, z, -0x1.e96b0c8025a1dp-13);
    p = b_fma(p, z, 0x1.34833a7a3e95dp-11);
    p = b_fma(p, z, -0x1.7d8fc5e6814e4p-10);
    p = b_fma(p, z, 0x1.d6d29a8b8141dp-9);
    p = b_fma(p, z, -0x1.226e2f0e04cp-7);
    p = b_fma(p, z, 0x1.664f48593f54p-6);
    p = b_fma(p, z, -0x1.ba1ba1b97cb12p-5);
    p = b_fma(p, z, 0x1.111111111079p-3);
    p = b_fma(p, z, -0x1.555555555554fp-2);
    const f64 outer = 1.0 - 2.0 / (b_exp(2.0 * c) + 1.0);
    return b_copysign(size < 0.55 ? b_fma(p * z, x, x) : outer, x);
}

B_FN f64 b_sigmoid(f64 x) {
    const f64 e = b_exp(-b_magnitude(x)), q = e / (1.0 + e);
    return x >= 0.0 ? 1.0 - q : e < 0.5 ? b_fma(-e, q, e) : q;
}

B_FN f64 b_cosh(f64 x) {
    const f64 half = b_exp_shifted(b_magnitude(x), (u64)-1);
    return half + 0.25 / half;
}

B_FN f64 b_sinh(f64 x) {
    const f64 size = b_magnitude(x), half = b_exp_shifted(size, (u64)-1), z = x * x;
    f64 p = 0x1.b5c892b2dac2fp-41;
    p = b_fma(p, z, 0x1.6116f4addd10bp-33);
    p = b_fma(p, z, 0x1.ae646ff4ee641p-26);
    p = b_fma(p, z, 0x1.71de3a3b06d79p-19);
    p = b_fma(p, z, 0x1.a01a01a037268p-13);
    p = b_fma(p, z, 0x1.111111111101ep-7);
    p = b_fma(p, z, 0x1.5555555555556p-3);
    return b_copysign(size < 1.0 ? b_fma(p * z, x, x) : half - 0.25 / half, x);
}
