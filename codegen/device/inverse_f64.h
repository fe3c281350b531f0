// Inverse hyperbolic functions, the cube root and the angle of a point, of float64. Within 2 ulp.

// Beyond B_FAR64, asinh(x) and acosh(x) are log(2 x), by log1p(x - 1).
#define B_LOG_TWO64 0x1.62e42fefa39efp-1
#define B_FAR64 0x1p28

B_FN f64 b_asinh(f64 x) {
    const f64 a = b_magnitude(x), square = a * a;
    const bool far = a > B_FAR64;
    const f64 y = b_log1p(far ? a - 1.0 : a + square / (1.0 + b_sqrt(1.0 + square)));
    return b_copysign(far ? y + B_LOG_TWO64 : y, x);
}

B_FN f64 b_acosh(f64 x) {
    const f64 t = x - 1.0;
    const bool far = x > B_FAR64;
    const f64 root = b_sqrt(b_fma(t, t, 2.0 * t)), sum = t + root, rest = t - (sum - root);
    const f64 y = b_log1p(far ? t : sum);
    return x < 1.0 ? (f64)b_nan : far ? y + B_LOG_TWO64 : y + rest / (1.0 + sum);
}

B_FN f64 b_atanh(f64 x) {
    const f64 a = b_magnitude(x), twice = 2.0 * a;
    const bool near = a < 0.5;  // else 1 - a is exact
    const f64 q = (near ? twice * a : twice) / (1.0 - a);
    return b_copysign(0.5 * b_log1p(near ? twice + q : q), x);
}

B_FN f64 b_nearer_root(f64 t, f64 s) {
    const f64 cube = t * t * t;
    return t * ((s + s + cube) / (s + cube + cube));
}

// As in inverse_f32.h.
B_FN f64 b_cbrt(f64 x) {
    const f64 a = b_magnitude(x);
    const bool tiny = a < 0x1p-1022;
    const bool huge = a > 0x1p512;
    const f64 s = tiny ? a * 0x1p54 : huge ? a * 0x1p-54 : a;
    const u64 high = b_bits(s) >> 32, third = (high * 0x55555556ull >> 32) + 0x2a9f7893ull;
    f64 t = b_double(third << 32);
    t = b_nearer_root(b_nearer_root(b_nearer_root(t, s), s), s);
    const f64 square = t * t, rest = b_fma(t, t, -square);
    t = t - b_fma(rest, t, b_fma(square, t, -s)) / (3.0 * square);
    const f64 y = b_copysign(tiny ? t * 0x1p-18 : huge ? t * 0x1p18 : t, x);
    return a > 0.0 && a < (f64)b_inf ? y : x;
}

B_FN f64 b_atan2(f64 y, f64 x) {
    const f64 a = b_magnitude(y), b = b_magnitude(x);
    const bool steep = a > b;
    const f64 least = steep ? b : a, most = steep ? a : b;
    const f64 angle = b_atan(most == 0.0 ? 0.0 : least == (f64)b_inf ? 1.0 : least / most);
    const f64 right = steep ? B_HALF_PI64 - (angle - B_HALF_PI64_LOW) : angle;
    const f64 all = b_bits(x) >> 63 ? 2.0 * B_HALF_PI64 - (right - 2.0 * B_HALF_PI64_LOW) : right;
    return x != x || y != y ? x + y : b_copysign(all, y);
}
