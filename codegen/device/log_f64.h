// float64 logarithms, softplus and pow. Within 2 ulp.
//
// As in log_f32.h x = 2^k (1 + f); here log(1 + f) = 2 atanh(s) with s = f / (2 + f), which is
// f - (f^2 / 2 - s (f^2 / 2 + R)), R = 2 atanh(s) / s - 2, so that f, the largest part, enters unrounded.

struct b_log_parts_f64 {
    f64 k, f;
};
B_FN b_log_parts_f64 b_log_split(f64 x) {
    const bool tiny = x < 0x1p-1022;
    const u64 bits = b_bits(tiny ? x * 0x1p54 : x);
    const i64 k = (i64)(bits - 0x3fe6a09e667f3bcdull) >> 52;
    return b_log_parts_f64{(f64)(i32)(tiny ? k - 54 : k), b_double(bits - ((u64)k << 52)) - 1.0};
}
B_FN f64 b_log_special(f64 x, f64 y) {
    const f64 pole = x == 0.0 ? -b_inf : b_nan;
    return x <= 0.0 ? pole : x < b_inf ? y : x;
}

// log(1 + f) - f.
B_FN f64 b_log_tail(f64 f) {
    const f64 s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
    f64 p = 0x1.2f118c56b02cp-3;
    p = b_fma(p, z, 0x1.39a094702bbc8p-3);
    p = b_fma(p, z, 0x1.746649b8ab1b4p-3);
    p = b_fma(p, z, 0x1.c71c51d7ac62cp-3);
    p = b_fma(p, z, 0x1.249249422a633p-2);
    p = b_fma(p, z, 0x1.999999997f9f7p-2);
    p = b_fma(p, z, 0x1.5555555555593p-1);
    return b_fma(s, b_fma(p, z, half_square), -half_square);
}

B_FN f64 b_log_sum(f64 k, f64 f) {
    const f64 tail = b_fma(k, B_LN2_LOW64, b_log_tail(f));
    return b_fma(k, B_LN2_HIGH64, f + tail);
}
B_FN f64 b_log(f64 x) {
    const b_log_parts_f64 s = b_log_split(x);
    return b_log_special(x, b_log_sum(s.k, s.f));
}

B_FN f64 b_log2(f64 x) {
    const b_log_parts_f64 s = b_log_split(x);
    const f64 low = b_fma(s.f, 0x1.777d0ffda0d24p-56, b_log_tail(s.f) * 0x1.71547652b82fep0);
    return b_log_special(x, b_fma(s.f, 0x1.71547652b82fep0, low) + s.k);
}

B_FN f64 b_log10(f64 x) {
    const b_log_parts_f64 s = b_log_split(x);
    const f64 low = b_fma(s.f, 0x1.95355baaafad3p-57,
                          b_fma(b_log_tail(s.f), 0x1.bcb7b1526e50ep-2, s.k * 0x1.fef311f12b358p-46));
    return b_log_special(x, b_fma(s.k, 0x1.34413509f78p-2, b_fma(s.f, 0x1.bcb7b1526e50ep-2, low)));
}

B_FN f64 b_log1p(f64 x) {
    const f64 u = 1.0 + x, back = u - 1.0;
    const f64 c = (x - back) + (1.0 - (u - back));
    const b_log_parts_f64 s = b_log_split(u);
    const f64 k = s.k > 120.0 ? 120.0 : s.k;
    const f64 scale = b_double((u64)(1023 - (i64)(i32)k) << 52);
    const f64 y = b_log_sum(s.k, b_fma(c, scale, s.f));
    return b_log_special(u, b_magnitude(x) < 0x1p-53 ? x : y);
}

B_FN f64 b_softplus(f64 x) { return (x > 0.0 ? x : 0.0) + b_log1p(b_exp(-b_magnitude(x))); }

B_FN f64 b_logaddexp(f64 x, f64 y) {
    return (x > y ? x : y) + b_log1p(b_exp(x == y ? 0.0 : -b_magnitude(x - y)));
}

B_FN f64 b_log1mexp(f64 x) { return x > -0x1.62e42fefa39efp-1 ? b_log(-b_expm1(x)) : b_log1p(-b_exp(x)); }

// log(cosh(x)) for a = abs(x): near 0 by way of cosh(a) - 1, elsewhere as a - log(2) + log(1 + exp(-2 * a)).
B_FN f64 b_logcosh(f64 x) {
    const f64 a = b_magnitude(x), u = b_expm1(-a), e = 1.0 + u;
    const bool near = a < 1.0;
    const f64 y = b_log1p(near ? 0.5 * u * u / e : e * e);
    return near ? y : (a - 0x1.62e42fefa39efp-1) + y;
}

// log2 of 2^k (1 + f) as a sum, exact to 2^-64 of its size: the exponent y log2(x) of a power may reach 2^10.
struct b_pair {
    f64 high, low;
};
B_FN b_pair b_log2_pair(f64 k, f64 f) {
    const f64 d = 2.0 + f, d_low = f - (d - 2.0);
    const f64 s = f / d, s_low = (b_fma(-s, d, f) - s * d_low) / d;
    const f64 z = s * s, z_low = b_fma(s, s, -z) + 2.0 * s * s_low;
    // log(1 + f) = 2 s + s z (2/3 + z q(z)).
    f64 q = 0x1.eca26cb81f803p-4;
    q = b_fma(q, z, 0x1.a508ef8cb6d95p-4);
    q = b_fma(q, z, 0x1.e2657d6a68ffcp-4);
    q = b_fma(q, z, 0x1.110f1c3df169cp-3);
    q = b_fma(q, z, 0x1.3b13ba5a74fbfp-3);
    q = b_fma(q, z, 0x1.745d172bc8ea5p-3);
    q = b_fma(q, z, 0x1.c71c71c747e9fp-3);
    q = b_fma(q, z, 0x1.2492492492363p-2);
    q = b_fma(q, z, 0x1.999999999999ap-2);
    const f64 v = q * z, third = 0x1.5555555555555p-1;
    const f64 u = third + v, u_low = (third - u) + v + 0x1.5555555555555p-55;
    const f64 w = s * z, w_low = b_fma(s, z, -w) + b_fma(s, z_low, s_low * z);
    const f64 t = w * u, t_low = b_fma(w, u, -t) + b_fma(w, u_low, w_low * u);
    const f64 l = 2.0 * s + t, l_low = (2.0 * s - l) + t + b_fma(2.0, s_low, t_low);
    const f64 p = l * 0x1.71547652b82fep0;
    const f64 p_low =
        b_fma(l, 0x1.71547652b82fep0, -p) + b_fma(l, 0x1.777d0ffda0d24p-56, l_low * 0x1.71547652b82fep0);
    // |p| <= 1/2, and k is 0 or at least 1 in size.
    const f64 sum = k + p, rest = (k == 0.0 ? 0.0 : (k - sum) + p) + p_low;
    return b_pair{sum, rest};
}

// As C's pow; choices as those of float32 (special_f32.h).
B_FN f64 b_pow(f64 x, f64 y) {
    const f64 a = b_magnitude(x);
    const b_log_parts_f64 s = b_log_split(a);
    const b_pair l = b_log2_pair(s.k, s.f);
    const u64 zero = a == 0.0 ? ~0ull : 0ull, large = a < b_inf ? 0ull : ~0ull, number = ~(zero | large);
    const f64 high = b_double((b_bits(l.high) & number) | (b_bits((f64)-b_inf) & zero) | (b_bits(a) & large));
    const f64 low = b_double(b_bits(l.low) & number);
    const u64 kept = x == 1.0 ? 0ull : ~0ull;
    const f64 most = a == 1.0 ? 0x1.fffffffffffffp1023 : (f64)b_inf, own = b_double(b_bits(y) & kept);
    const f64 down = own > most ? most : own, exponent = down < -most ? -most : down;

    const f64 e = exponent * high, rest = b_fma(exponent, high, -e) + exponent * low;
    const f64 below = e > 1100.0 ? 1100.0 : e, c = below < -1100.0 ? -1100.0 : below;
    const f64 t = c + B_ROUNDER64, r = (c - (t - B_ROUNDER64)) + (b_magnitude(e) < 1100.0 ? rest : 0.0);
    const f64 power =
        b_times_power_of_two(b_fma(r, b_exp2_remainder(r), 1.0), b_bits(t) - b_bits(B_ROUNDER64));

    const bool whole = b_trunc(y) == y, odd = whole & (2.0 * b_trunc(0.5 * y) != y);
    const u64 sign = odd ? 0x8000000000000000ull : 0ull, not_whole = whole ? 0ull : 0x7ff8000000000000ull;
    const u64 negative = ((x < 0.0) & (a < b_inf)) ? ~0ull : 0ull, none = y == 0.0 ? ~0ull : 0ull;
    const u64 result = b_bits(power + b_double(not_whole & negative)) | (b_bits(x) & sign);
    return b_double((result & ~none) | (0x3ff0000000000000ull & none));
}
