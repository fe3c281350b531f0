// Vector registers of a CPU, as many lanes as the target has: GCC's vector extensions.

#ifdef __CUDACC__
#else
template <class T, int N>
struct b_lanes {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
    typedef T loose __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T, int N>
using b_vec = typename b_lanes<T, N>::type;
// Past the end of a buffer there is room to read.
template <int N, class T>
B_FN b_vec<T, N> b_load(const T* from) {
    return *(const typename b_lanes<T, N>::loose*)from;
}
template <int N, class T>
B_FN b_vec<T, N> b_load(const T* from, int count) {
    b_vec<T, N> r{};
    for (int i = 0; i < N; ++i)
        if (i < count) r[i] = from[i];
    return r;
}
template <int N, class T>
B_FN b_vec<T, N> b_all(T x) {
    return x - b_vec<T, N>{};
}
template <class T, class V>
B_FN void b_store(T* to, V from) {
    *(typename b_lanes<T, sizeof(V) / sizeof(T)>::loose*)to = from;
}
template <class T, class V>
B_FN void b_store_first(T* to, V from, int count) {
    B_UNROLL
    for (int i = 0; i < (int)(sizeof(V) / sizeof(T)); ++i)
        if (i < count) to[i] = from[i];
}
#ifdef __AVX512F__
B_FN void b_store_first(f32* to, b_vec<f32, 16> from, int count) {
    __builtin_ia32_storeups512_mask(to, from, (u16)((1u << count) - 1));
}
B_FN void b_store_first(f64* to, b_vec<f64, 8> from, int count) {
    __builtin_ia32_storeupd512_mask(to, from, (u8)((1u << count) - 1));
}
#endif
#ifdef __AVX512VL__
B_FN void b_store_first(i32* to, b_vec<i32, 16> from, int count) {
    __builtin_ia32_storedqusi512_mask(to, from, (u16)((1u << count) - 1));
}
#endif
#if defined(__AVX512BW__) && defined(__AVX512VL__) && !defined(__clang__)
B_FN void b_store_first(u8* to, b_vec<u8, 16> from, int count) {
    typedef char bytes __attribute__((vector_size(16)));
    __builtin_ia32_storedquqi128_mask((char*)to, (bytes)from, (u16)((1u << count) - 1));
}
#endif
template <class T, class V>
B_FN void b_store_apart(T* to, V from, int count, i64 stride) {
    B_UNROLL
    for (int i = 0; i < (int)(sizeof(V) / sizeof(T)); ++i)
        if (i < count) to[i * stride] = from[i];
}
// Bytes to integers of 32 bits and back, which g++ 12 takes apart by itself.
template <class V>
B_FN b_vec<i32, sizeof(V)> b_widen(V x) {
    return __builtin_convertvector(x, b_vec<i32, sizeof(V)>);
}
template <class T, class V>
B_FN b_vec<T, sizeof(V) / 4> b_narrow(V x) {
    return __builtin_convertvector(x, b_vec<T, sizeof(V) / 4>);
}
#if defined(__AVX512F__) && !defined(__clang__)
typedef char b_chars __attribute__((vector_size(16)));
B_FN b_vec<i32, 16> b_widen(b_vec<u8, 16> x) {
    return __builtin_ia32_pmovzxbd512_mask((b_chars)x, b_vec<i32, 16>{}, (u16)-1);
}
B_FN b_vec<i32, 16> b_widen(b_vec<i8, 16> x) {
    return __builtin_ia32_pmovsxbd512_mask((b_chars)x, b_vec<i32, 16>{}, (u16)-1);
}
template <class T>
B_FN b_vec<T, 16> b_narrow(b_vec<i32, 16> x) {
    return (b_vec<T, 16>)__builtin_ia32_pmovdb512_mask(x, b_chars{}, (u16)-1);
}
#endif
template <class V>
B_FN V b_fma_lanes(V a, V b, V c) {
    B_UNROLL
    for (int i = 0; i < (int)(sizeof(V) / sizeof(a[0])); ++i) c[i] = b_fma(a[i], b[i], c[i]);
    return c;
}
#ifdef __AVX512F__
B_FN b_vec<f32, 16> b_fma_lanes(b_vec<f32, 16> a, b_vec<f32, 16> b, b_vec<f32, 16> c) {
    return (b_vec<f32, 16>)__builtin_ia32_vfmaddps512_mask(a, b, c, (u16)-1, 4);
}
B_FN b_vec<f64, 8> b_fma_lanes(b_vec<f64, 8> a, b_vec<f64, 8> b, b_vec<f64, 8> c) {
    return (b_vec<f64, 8>)__builtin_ia32_vfmaddpd512_mask(a, b, c, (u8)-1, 4);
}
#endif
#ifdef __FMA__
B_FN b_vec<f32, 8> b_fma_lanes(b_vec<f32, 8> a, b_vec<f32, 8> b, b_vec<f32, 8> c) {
    return (b_vec<f32, 8>)__builtin_ia32_vfmaddps256(a, b, c);
}
B_FN b_vec<f64, 4> b_fma_lanes(b_vec<f64, 4> a, b_vec<f64, 4> b, b_vec<f64, 4> c) {
    return (b_vec<f64, 4>)__builtin_ia32_vfmaddpd256(a, b, c);
}
#endif

// The first `count` lanes of x, and the others of y.
B_TABLE i32 b_lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
template <class V>
B_FN V b_first_lanes(V x, V y, i64 count) {
    constexpr int width = sizeof(V) / 4;
    const b_vec<i32, width> inside = b_load<width>(b_lane_numbers) < (i32)count;
    return (V)(((b_vec<i32, width>)x & inside) | ((b_vec<i32, width>)y & ~inside));
}

// How many of the elements are not 0, then their numbers; behind the last there is room for 16.
template <class T>
B_FN void b_nonzeros(i32* to, const T* from, i64 count) {
    i64 n = 0;
    for (i64 i = 0; i < count; ++i) {
        to[1 + n] = (i32)i;
        n += from[i] != 0;
    }
    to[0] = (i32)n;
}
#ifdef __AVX512F__
B_FN void b_nonzeros(i32* to, const f32* from, i64 count) {
    b_vec<i32, 16> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    i64 n = 0;
    for (i64 i = 0; i < count; i += 16) {
        const u16 inside = count - i < 16 ? (u16)((1u << (count - i)) - 1) : (u16)-1;
        const u16 mask = __builtin_ia32_cmpps512_mask(b_load<16>(from + i), b_vec<f32, 16>{}, 4, inside, 4);
        b_store(to + 1 + n, __builtin_ia32_compresssi512_mask(numbers, b_vec<i32, 16>{}, mask));
        n += __builtin_popcount(mask);
        numbers += 16;
    }
    to[0] = (i32)n;
}
#endif
#endif
