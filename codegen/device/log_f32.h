// float32 logarithms and softplus. Within 2 ulp, for arguments below the normal numbers too.
//
// x = 2^k m with m in [sqrt 1/2, sqrt 2); f = m - 1 is exact; log(1 + f) = f - f^2 / 2 + f^3 p(f), p minimax.

B_FN f32 b_log_remainder(f32 f) {
    f32 p = 0x1.b5b6d4p-5f;
    p = b_fma(p, f, -0x1.bf2e9cp-4f);
    p = b_fma(p, f, 0x1.eff146p-4f);
    p = b_fma(p, f, -0x1.0103dap-3f);
    p = b_fma(p, f, 0x1.23036cp-3f);
    p = b_fma(p, f, -0x1.552f18p-3f);
    p = b_fma(p, f, 0x1.99a54p-3f);
    p = b_fma(p, f, -0x1.00007p-2f);
    return b_fma(p, f, 0x1.555548p-2f);
}

#define B_SQRT_HALF_BITS 0x3f3504f3u
struct b_log_parts_f32 {
    f32 k, f;
};
B_FN b_log_parts_f32 b_log_split(f32 x) {
    const bool tiny = x < 0x1p-126f;
    const u32 bits = b_bits(tiny ? x * 0x1p23f : x);
    const i32 k = (i32)(bits - B_SQRT_HALF_BITS) >> 23;
    return b_log_parts_f32{(f32)(tiny ? k - 23 : k), b_float(bits - ((u32)k << 23)) - 1.0f};
}
// Where the argument is not a positive number.
B_FN f32 b_log_special(f32 x, f32 y) {
    const f32 pole = x == 0.0f ? -b_inf : b_nan;
    return x <= 0.0f ? pole : x < b_inf ? y : x;
}

B_FN f32 b_log_sum(f32 k, f32 f) {
    const f32 square = f * f;
    const f32 tail = b_fma(-0.5f, square, b_fma(square * f, b_log_remainder(f), k * -0x1.bd0106p-13f));
    return b_fma(k, 0x1.63p-1f, f + tail);
}
B_FN f32 b_log(f32 x) {
    const b_log_parts_f32 s = b_log_split(x);
    return b_log_special(x, b_log_sum(s.k, s.f));
}

// The product with 1 / ln B is carried in two parts.
B_FN f32 b_log2(f32 x) {
    const b_log_parts_f32 s = b_log_split(x);
    const f32 square = s.f * s.f, tail = square * b_fma(s.f, b_log_remainder(s.f), -0.5f);
    const f32 low = b_fma(s.f, 0x1.4ae0cp-26f, tail * 0x1.715476p0f);
    return b_log_special(x, b_fma(s.f, 0x1.715476p0f, low) + s.k);
}

B_FN f32 b_log10(f32 x) {
    const b_log_parts_f32 s = b_log_split(x);
    const f32 square = s.f * s.f, tail = square * b_fma(s.f, b_log_remainder(s.f), -0.5f);
    const f32 low = b_fma(s.f, -0x1.5b235ep-27f, b_fma(tail, 0x1.bcb7b2p-2f, s.k * 0x1.3509f8p-18f));
    return b_log_special(x, b_fma(s.k, 0x1.344p-2f, b_fma(s.f, 0x1.bcb7b2p-2f, low)));
}

// u = 1 + x with its rounding error c: f = (m - 1) + c / 2^k.
B_FN f32 b_log1p(f32 x) {
    const f32 u = 1.0f + x, back = u - 1.0f;
    const f32 c = (x - back) + (1.0f - (u - back));
    const b_log_parts_f32 s = b_log_split(u);
    const f32 k = s.k > 60.0f ? 60.0f : s.k;
    const f32 scale = b_float((u32)(127 - (i32)k) << 23);
    const f32 y = b_log_sum(s.k, b_fma(c, scale, s.f));
    return b_log_special(u, b_magnitude(x) < 0x1p-24f ? x : y);
}

// log(1 + exp(x)) without overflow.
B_FN f32 b_softplus(f32 x) { return (x > 0.0f ? x : 0.0f) + b_log1p(b_exp(-b_magnitude(x))); }

// log(exp(x) + exp(y)). Equal operands may be infinite, and then have no difference.
B_FN f32 b_logaddexp(f32 x, f32 y) {
    return (x > y ? x : y) + b_log1p(b_exp(x == y ? 0.0f : -b_magnitude(x - y)));
}

// log(1 - exp(x)): of the two ways, the one that does not cancel on its side of log(1/2).
B_FN f32 b_log1mexp(f32 x) { return x > -0x1.62e43p-1f ? b_log(-b_expm1(x)) : b_log1p(-b_exp(x)); }

// log(cosh(x)) for a = abs(x): near 0 by way of cosh(a) - 1, elsewhere as a - log(2) + log(1 + exp(-2 * a)).
B_FN f32 b_logcosh(f32 x) {
    const f32 a = b_magnitude(x), u = b_expm1(-a), e = 1.0f + u;
    const bool near = a < 1.0f;
    const f32 y = b_log1p(near ? 0.5f * u * u / e : e * e);
    return near ? y : (a - 0x1.62e43p-1f) + y;
}
