// float32 trigonometry. Within 2 ulp for every argument, however large; infinity gives NaN.
//
// x = (n + f) pi / 2 with |f| <= 1/2, reduced in float64: the product of x and 2 / pi is carried in two
// parts. x as large as 2^50 is a multiple of 2^27 and is taken as 2^27 y, y an integer, so that 2^27 (2 / pi)
// mod 4 serves instead; likewise from 2^77 and 2^104 on. So |y| < 2^50 and f keeps 57 correct bits after the
// point, while no float32 comes closer to a multiple of pi / 2 than 2^-30.

struct b_quarter_turns {
    f64 r;  // the angle that is left
    u32 n;  // quarter turns, mod 2^32
};
B_FN b_quarter_turns b_reduce_angle(f32 x) {
    const f32 a = b_magnitude(x);
    const bool one = a >= 0x1p50f, two = a >= 0x1p77f, three = a >= 0x1p104f;
    const f64 scale = three ? 0x1p-81 : two ? 0x1p-54 : one ? 0x1p-27 : 1.0;
    const f64 high = three ? -0x1.505c1596447e5p0
                     : two ? 0x1.4a7f09d5f47d5p0
                     : one ? -0x1.1b1bbead603d9p-1
                           : 0x1.45f306dc9c883p-1;
    const f64 low = three ? 0x1.b14acc9e21c82p-54
                    : two ? -0x1.6447e493ad4cep-55
                    : one ? 0x1.5f47d4d377037p-55
                          : -0x1.6b01ec5417056p-55;
    const f64 y = (f64)x * scale, t = b_fma(y, high, 0x1.8p52), n = t - 0x1.8p52;
    const f64 f = b_fma(y, low, b_fma(y, high, -n));
    return b_quarter_turns{f * 0x1.921fb54442d18p0, (u32)b_bits(t)};
}
B_FN f32 b_sin_of_turns(f32 r, u32 n) {
    const f32 z = r * r;
    const f32 s = b_fma(b_fma(0x1.7c2d5p-19f, z, -0x1.a05956p-13f), z, 0x1.111174p-7f);
    const f32 c = b_fma(b_fma(0x1.99e80cp-16f, z, -0x1.6c0c28p-10f), z, 0x1.55554ap-5f);
    const f32 sine = b_fma(z * r, b_fma(s, z, -0x1.555556p-3f), r),
              cosine = b_fma(z * z, c, b_fma(-0.5f, z, 1.0f));
    const f32 y = (n & 1u) != 0 ? cosine : sine;
    return b_float(b_bits(y) ^ ((n & 2u) << 30));
}
B_FN f32 b_sin(f32 x) {
    const b_quarter_turns q = b_reduce_angle(x);
    const f32 y = b_sin_of_turns((f32)q.r, q.n);
    return b_magnitude(x) < 0x1p-12f ? x : y;
}
B_FN f32 b_cos(f32 x) {
    const b_quarter_turns q = b_reduce_angle(x);
    return b_sin_of_turns((f32)q.r, q.n + 1u);
}

// The quotient of sine and cosine, in float64: three roundings to float32 would be too many.
B_FN f32 b_tan(f32 x) {
    const b_quarter_turns q = b_reduce_angle(x);
    const f64 z = q.r * q.r;
    f64 s = b_fma(0x1.6cd1f38de4755p-19, z, -0x1.a00f7f2d15a6cp-13);
    s = b_fma(s, z, 0x1.1111086a67f01p-7);
    s = b_fma(b_fma(s, z, -0x1.5555554c71dbcp-3), z * q.r, q.r);
    f64 c = b_fma(0x1.99eb9c1e63952p-16, z, -0x1.6c0c33a823bf8p-10);
    c = b_fma(b_fma(c, z, 0x1.55554a115cf4ep-5), z * z, b_fma(-0.5, z, 1.0));
    const bool odd = (q.n & 1u) != 0;
    const f32 y = (f32)((odd ? -c : s) / (odd ? s : c));
    return b_magnitude(x) < 0x1p-12f ? x : y;
}

#define B_HALF_PI 0x1.921fb6p0f
#define B_HALF_PI_LOW -0x1.777a5cp-25f

B_FN f32 b_atan(f32 x) {
    const f32 a = b_magnitude(x), t = a > 1.0f ? 1.0f / a : a, z = t * t;
    f32 p = -0x1.d32dbcp-10f;
    p = b_fma(p, z, 0x1.6410e6p-7f);
    p = b_fma(p, z, -0x1.fd6fbcp-6f);
    p = b_fma(p, z, 0x1.da24cap-5f);
    p = b_fma(p, z, -0x1.580814p-4f);
    p = b_fma(p, z, 0x1.c08c1ap-4f);
    p = b_fma(p, z, -0x1.242084p-3f);
    p = b_fma(p, z, 0x1.9991e4p-3f);
    p = b_fma(p, z, -0x1.55553ep-2f);
    const f32 inner = b_fma(p * z, t, t);
    return b_copysign(a > 1.0f ? B_HALF_PI - (inner - B_HALF_PI_LOW) : inner, x);
}

// asin(t) for |t| <= 0.5625, z = t^2. Beyond, asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)).
B_FN f32 b_asin_inner(f32 t, f32 z) {
    f32 p = 0x1.84fc14p-5f;
    p = b_fma(p, z, 0x1.b9e6b2p-8f);
    p = b_fma(p, z, 0x1.169d96p-5f);
    p = b_fma(p, z, 0x1.6a59a6p-5f);
    p = b_fma(p, z, 0x1.334932p-4f);
    p = b_fma(p, z, 0x1.555526p-3f);
    return b_fma(p * z, t, t);
}

B_FN f32 b_asin(f32 x) {
    const f32 a = b_magnitude(x), square = a * a, half = b_fma(-0.5f, a, 0.5f);
    const bool outer = a > 0.5625f;
    const f32 z = outer ? half : square, t = outer ? b_sqrt(half) : a, y = b_asin_inner(t, z);
    return b_copysign(outer ? B_HALF_PI - b_fma(2.0f, y, -B_HALF_PI_LOW) : y, x);
}

B_FN f32 b_acos(f32 x) {
    const f32 a = b_magnitude(x), square = a * a, half = b_fma(-0.5f, a, 0.5f);
    const bool outer = a > 0.5625f;
    const f32 z = outer ? half : square, t = outer ? b_sqrt(half) : x, y = b_asin_inner(t, z);
    const f32 large = x > 0.0f ? 2.0f * y : 2.0f * (B_HALF_PI - (y - B_HALF_PI_LOW));
    return outer ? large : B_HALF_PI - (y - B_HALF_PI_LOW);
}
