// float32 pow, erf and erfc. Within 2 ulp; pow and erfc, whose errors grow with the logarithm of the result,
// are formed in float64 and are correctly rounded nearly always.

// 2^t to 34 bits; 0 where it is 0 in float32.
B_FN f64 b_exp2_coarse(f64 t) {
    const bool none = t < -150.0;
    const f64 low = t > 200.0 ? 200.0 : t, c = low < -200.0 ? -200.0 : low;
    const f64 shifted = c + 0x1.8p52, r = c - (shifted - 0x1.8p52);
    f64 q = 0x1.fde6155b23246p-17;
    q = b_fma(q, r, 0x1.445c837e6d5e8p-13);
    q = b_fma(q, r, 0x1.5d8a85e912e05p-10);
    q = b_fma(q, r, 0x1.3b29f39deab9bp-7);
    q = b_fma(q, r, 0x1.c6b08ac082618p-5);
    q = b_fma(q, r, 0x1.ebfbe077868b8p-3);
    q = b_fma(q, r, 0x1.62e42ff0e185fp-1);
    const f64 power = b_fma(q, r, 1.0) * b_double((b_bits(shifted) + 1023u) << 52);
    return none ? 0.0 : power;
}

// As C's pow. log2(x) = k + s p(s^2) with s = (m - 1) / (m + 1).
B_FN f32 b_pow(f32 x, f32 y) {
    const f32 a = b_magnitude(x);
    const u64 bits = b_bits((f64)a);
    const i64 k = (i64)(bits - 0x3fe6a09e667f3bcdull) >> 52;
    const f64 m = b_double(bits - ((u64)k << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
    f64 p = 0x1.21b10eff39341p-2;
    p = b_fma(p, z, 0x1.479553c99a6fep-2);
    p = b_fma(p, z, 0x1.a61a2ed81780dp-2);
    p = b_fma(p, z, 0x1.2776c2932d34bp-1);
    p = b_fma(p, z, 0x1.ec709dc53c765p-1);
    p = b_fma(p, z, 0x1.71547652b8251p1);
    const f64 number = b_fma(p, s, (f64)(i32)k);
    // Where x or y is the same for all lanes, compilers have no vectors for a choice by it: what asks for one
    // of them alone is a number or a mask.
    const u64 zero = a == 0.0f ? ~0ull : 0ull, large = a < b_inf ? 0ull : ~0ull;
    const f64 logarithm = b_double((b_bits(number) & ~(zero | large)) | (b_bits((f64)-b_inf) & zero) |
                                   (b_bits((f64)a) & large));
    // 1 to any power is 1, and so is -1 to an infinite one.
    const u32 kept = x == 1.0f ? 0u : ~0u;
    const f32 most = a == 1.0f ? 0x1.fffffep127f : b_inf, own = b_float(b_bits(y) & kept);
    const f32 below = own > most ? most : own, exponent = below < -most ? -most : below;
    const f32 power = (f32)b_exp2_coarse((f64)exponent * logarithm);

    const bool whole = b_trunc(y) == y, odd = whole & (2.0f * b_trunc(0.5f * y) != y);
    const u32 sign = odd ? 0x80000000u : 0u, not_whole = whole ? 0u : 0x7fc00000u;
    const u32 negative = ((x < 0.0f) & (a < b_inf)) ? ~0u : 0u, none = y == 0.0f ? ~0u : 0u;
    const u32 result = b_bits(power + b_float(not_whole & negative)) | (b_bits(x) & sign);
    return b_float((result & ~none) | (0x3f800000u & none));
}

// x + x p(x^2) up to 1, then 1 - exp(p(|x|)), which is 1 from 3.92 on.
B_FN f32 b_erf(f32 x) {
    const f32 z = x * x, size = b_magnitude(x), a = size > 4.0f ? 4.0f : size;
    f32 p = 0x1.4771fcp-14f;
    p = b_fma(p, z, -0x1.a3515ep-11f);
    p = b_fma(p, z, 0x1.53f224p-8f);
    p = b_fma(p, z, -0x1.b7f71ap-6f);
    p = b_fma(p, z, 0x1.ce2ce6p-4f);
    p = b_fma(p, z, -0x1.81273ep-2f);
    p = b_fma(p, z, 0x1.06eba8p-3f);
    f32 q = -0x1.6bf30ep-16f;
    q = b_fma(q, a, 0x1.cedf1ep-12f);
    q = b_fma(q, a, -0x1.139616p-8f);
    q = b_fma(q, a, 0x1.9d0a5ep-6f);
    q = b_fma(q, a, -0x1.bc1868p-4f);
    q = b_fma(q, a, -0x1.4434f8p-1f);
    q = b_fma(q, a, -0x1.212c2cp0f);
    q = b_fma(q, a, 0x1.8b3ee2p-13f);
    const f32 outer = b_copysign(1.0f - b_exp(q), x);
    return size < 1.0f ? b_fma(p, x, x) : outer;
}

// exp(-x^2) p((|x| - 3) / (|x| + 3)), and 2 minus that on the left.
B_FN f32 b_erfc(f32 x) {
    const f64 size = (f64)b_magnitude(x), a = size > 11.0 ? 11.0 : size;
    const f64 t = (a - 3.0) / (a + 3.0);
    f64 p = 0x1.3e38d5068388dp-18;
    p = b_fma(p, t, 0x1.147b25ab71f05p-14);
    p = b_fma(p, t, 0x1.01e56ed7a58ep-15);
    p = b_fma(p, t, -0x1.3bb0aef9135ffp-11);
    p = b_fma(p, t, 0x1.7598a63dff9aap-11);
    p = b_fma(p, t, 0x1.17e75baa1d637p-8);
    p = b_fma(p, t, -0x1.8fa8e1e097568p-6);
    p = b_fma(p, t, 0x1.258ad211d735bp-4);
    p = b_fma(p, t, -0x1.336ff3bb2a15p-3);
    p = b_fma(p, t, 0x1.f6ff21a0a8e12p-3);
    p = b_fma(p, t, -0x1.4e102bb64db57p-2);
    p = b_fma(p, t, 0x1.6e9827d0383bdp-3);
    const f64 y = p * b_exp2_coarse(a * a * -0x1.71547652b82fep0);
    return (f32)(x < 0.0f ? 2.0 - y : y);
}
