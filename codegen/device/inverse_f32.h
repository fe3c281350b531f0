// Inverse hyperbolic functions, the cube root and the angle of a point, of float32. Within 2 ulp.

// Beyond B_FAR, asinh(x) and acosh(x) are log(2 x), by log1p(x - 1).
#define B_LOG_TWO 0x1.62e43p-1f
#define B_FAR 0x1p12f

B_FN f32 b_asinh(f32 x) {
    const f32 a = b_magnitude(x), square = a * a;
    const bool far = a > B_FAR;
    const f32 y = b_log1p(far ? a - 1.0f : a + square / (1.0f + b_sqrt(1.0f + square)));
    return b_copysign(far ? y + B_LOG_TWO : y, x);
}

B_FN f32 b_acosh(f32 x) {
    const f32 t = x - 1.0f;
    const bool far = x > B_FAR;
    const f32 root = b_sqrt(b_fma(t, t, 2.0f * t)), sum = t + root, rest = t - (sum - root);
    const f32 y = b_log1p(far ? t : sum);
    return x < 1.0f ? (f32)b_nan : far ? y + B_LOG_TWO : y + rest / (1.0f + sum);
}

B_FN f32 b_atanh(f32 x) {
    const f32 a = b_magnitude(x), twice = 2.0f * a;
    const bool near = a < 0.5f;  // else 1 - a is exact
    const f32 q = (near ? twice * a : twice) / (1.0f - a);
    return b_copysign(0.5f * b_log1p(near ? twice + q : q), x);
}

// A step of Halley's iteration for the cube root of s.
B_FN f32 b_nearer_root(f32 t, f32 s) {
    const f32 cube = t * t * t;
    return t * ((s + s + cube) / (s + cube + cube));
}

// A third of the exponent, from the bits; Halley's iteration twice; and a step of Newton's with the residual
// that two products in twice the precision leave.
B_FN f32 b_cbrt(f32 x) {
    const f32 a = b_magnitude(x);
    const bool tiny = a < 0x1p-126f;
    const bool huge = a > 0x1p64f;
    const f32 s = tiny ? a * 0x1p24f : huge ? a * 0x1p-24f : a;
    f32 t = b_float(b_bits(s) / 3u + 0x2a50fa1eu);
    t = b_nearer_root(b_nearer_root(t, s), s);
    const f32 square = t * t, rest = b_fma(t, t, -square);
    t = t - b_fma(rest, t, b_fma(square, t, -s)) / (3.0f * square);
    const f32 y = b_copysign(tiny ? t * 0x1p-8f : huge ? t * 0x1p8f : t, x);
    return a > 0.0f && a < b_inf ? y : x;
}

// The angle in the first octant, mirrored: of (y, x) from the axis of x.
B_FN f32 b_atan2(f32 y, f32 x) {
    const f32 a = b_magnitude(y), b = b_magnitude(x);
    const bool steep = a > b;
    const f32 least = steep ? b : a, most = steep ? a : b;
    const f32 angle = b_atan(most == 0.0f ? 0.0f : least == b_inf ? 1.0f : least / most);
    const f32 right = steep ? B_HALF_PI - (angle - B_HALF_PI_LOW) : angle;
    const f32 all = b_bits(x) >> 31 ? 2.0f * B_HALF_PI - (right - 2.0f * B_HALF_PI_LOW) : right;
    return x != x || y != y ? x + y : b_copysign(all, y);
}
