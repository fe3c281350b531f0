// float64 erf and erfc. Within 2 ulp.

// erfc(a) for 0 <= a < 28 as y 2^k: exp(-a^2) (1 + p(t)) / (1 + 2 a) with t = (a - 3.25) / (a + 3.25).
// Products and quotient keep their rounding errors, each of which would cost half an ulp.
struct b_scaled {
    f64 y;
    u64 k;
};
B_FN b_scaled b_erfc_scaled(f64 a) {
    const f64 square = a * a, square_low = b_fma(a, a, -square);
    const f64 n_shifted = b_fma(square, -0x1.71547652b82fep0, B_ROUNDER64), n = n_shifted - B_ROUNDER64;
    // exp(-a^2) / 2^n = 1 + g.
    const f64 first = b_fma(n, -B_LN2_HIGH64, -square), r = b_fma(n, -B_LN2_LOW64, first);
    const f64 r_low = b_fma(n, -B_LN2_LOW64, first - r) - square_low;
    const f64 curve = r * r * b_exp_remainder(r), one = 1.0 + r, g = b_fma(r_low, one + curve, curve);
    const f64 e = one + g, e_low = ((1.0 - one) + r) + ((one - e) + g);

    const f64 t = (a - 3.25) / (a + 3.25);
    f64 p = 0x1.86ead91d2335ap-30;
    p = b_fma(p, t, 0x1.0826640716924p-28);
    p = b_fma(p, t, -0x1.45c7922bf4457p-27);
    p = b_fma(p, t, -0x1.49788702e635bp-25);
    p = b_fma(p, t, 0x1.1b6a8bede8p-25);
    p = b_fma(p, t, 0x1.0725c3f00c729p-22);
    p = b_fma(p, t, -0x1.66c967c34dbd3p-24);
    p = b_fma(p, t, -0x1.7f3eaf0c52849p-20);
    p = b_fma(p, t, 0x1.53067c48c11acp-22);
    p = b_fma(p, t, 0x1.20cd3df5a58f5p-17);
    p = b_fma(p, t, -0x1.2639638c3a888p-18);
    p = b_fma(p, t, -0x1.c6616a7a9cdc9p-15);
    p = b_fma(p, t, 0x1.3abf58610dbafp-14);
    p = b_fma(p, t, 0x1.3fdda2ec368d5p-12);
    p = b_fma(p, t, -0x1.19d65f493f154p-10);
    p = b_fma(p, t, -0x1.894fbaa53e19ep-13);
    p = b_fma(p, t, 0x1.4c8d0588ea6aep-7);
    p = b_fma(p, t, -0x1.2ec7f60cb99d7p-5);
    p = b_fma(p, t, 0x1.484a4db133ef4p-4);
    p = b_fma(p, t, -0x1.e75668d4d9c87p-4);
    p = b_fma(p, t, 0x1.d0ed3bd04c4c5p-4);
    p = b_fma(p, t, -0x1.c1da16512bd31p-6);
    p = b_fma(p, t, -0x1.1be042459f8a8p-3);
    p = b_fma(p, t, 0x1.fae93423b7c85p-3);
    const f64 factor = 1.0 + p, factor_low = (1.0 - factor) + p;
    const f64 numerator = e * factor;
    const f64 numerator_low = b_fma(e, factor, -numerator) + b_fma(e, factor_low, e_low * factor);
    const f64 twice = 2.0 * a, denominator = 1.0 + twice, back = denominator - 1.0;
    const f64 denominator_low = (twice - back) + (1.0 - (denominator - back));
    const f64 q = numerator / denominator;
    const f64 rest = b_fma(-q, denominator, numerator) + b_fma(-q, denominator_low, numerator_low);
    return b_scaled{q + rest / denominator, b_bits(n_shifted) - b_bits(B_ROUNDER64)};
}

// erf(x) = x + x p(x^2) for |x| <= 1.
B_FN f64 b_erf_inner(f64 x) {
    const f64 z = x * x;
    f64 p = -0x1.a22e3682f2de1p-31;
    p = b_fma(p, z, 0x1.d3d8febbc878cp-27);
    p = b_fma(p, z, -0x1.5b8bd822548a8p-23);
    p = b_fma(p, z, 0x1.b96b4339fb596p-20);
    p = b_fma(p, z, -0x1.f4c82d5f4682ap-17);
    p = b_fma(p, z, 0x1.f9a2969fdfbbep-14);
    p = b_fma(p, z, -0x1.c02daeb66ab5dp-11);
    p = b_fma(p, z, 0x1.565bcceed7c5bp-8);
    p = b_fma(p, z, -0x1.b82ce311a973bp-6);
    p = b_fma(p, z, 0x1.ce2f21a03f8b8p-4);
    p = b_fma(p, z, -0x1.812746b03799dp-2);
    p = b_fma(p, z, 0x1.06eba8214db68p-3);
    return b_fma(p, x, x);
}

B_FN f64 b_erf(f64 x) {
    const f64 size = b_magnitude(x), a = size > 6.0 ? 6.0 : size;
    const b_scaled s = b_erfc_scaled(a);
    const f64 outer = b_copysign(1.0 - b_times_power_of_two(s.y, s.k), x);
    return size < 1.0 ? b_erf_inner(x) : outer;
}

B_FN f64 b_erfc(f64 x) {
    const f64 size = b_magnitude(x), a = size > 28.0 ? 28.0 : size;
    const b_scaled s = b_erfc_scaled(a);
    const f64 y = b_times_power_of_two(s.y, s.k);
    return size < 0.25 ? 1.0 - b_erf_inner(x) : x < 0.0 ? 2.0 - y : y;
}
