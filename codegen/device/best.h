// The greatest or least of a window in vector registers of a CPU, one window for each lane, and its first
// position. NaN is better than any number, and equal elements are as good as the first one.

#ifdef __CUDACC__
#else
// The mask of lanes where some element is NaN; without such masks: of no lane, and every comparison looks.
template <int C, class V>
B_FN int b_strange(const V (&)[C]) {
    return -1;
}
template <bool LEAST, int C, class V>
B_FN V b_plain_best(const V (&x)[C]) {
    V best = x[0];
    B_UNROLL
    for (int i = 1; i < C; ++i) best = (LEAST ? x[i] < best : x[i] > best) ? x[i] : best;
    return best;
}
#if defined(__AVX512F__) && !defined(__clang__)
template <int C>
B_FN int b_strange(const b_vec<f32, 16> (&x)[C]) {
    u16 mask = 0;
    B_UNROLL
    for (int i = 0; i < C; i += 2)
        mask |= __builtin_ia32_cmpps512_mask(x[i], x[i + 1 < C ? i + 1 : i], 3, (u16)-1, 4);
    return mask;
}
template <bool LEAST, int C>
B_FN b_vec<f32, 16> b_plain_best(const b_vec<f32, 16> (&x)[C]) {
    b_vec<f32, 16> best = x[0];
    B_UNROLL
    for (int i = 1; i < C; ++i)
        best = LEAST ? __builtin_ia32_minps512_mask(x[i], best, best, (u16)-1, 4)
                     : __builtin_ia32_maxps512_mask(x[i], best, best, (u16)-1, 4);
    return best;
}
#endif
template <bool LEAST, int C, class V>
B_FN V b_best(const V (&x)[C]) {
    if (__builtin_expect(b_strange(x) == 0, 1)) return b_plain_best<LEAST>(x);
    V best = x[0];
    B_UNROLL
    for (int i = 1; i < C; ++i) {
        best = (LEAST ? x[i] < best : x[i] > best) ? x[i] : best;
        best = x[i] != x[i] ? x[i] : best;
    }
    return best;
}
template <bool LEAST, int C, class V>
B_FN b_vec<i32, sizeof(V) / 4> b_first_best(const V (&x)[C]) {
    typedef b_vec<i32, sizeof(V) / 4> positions;
    positions first = positions{} + (C - 1);
    if (__builtin_expect(b_strange(x) == 0, 1)) {
        const V best = b_plain_best<LEAST>(x);
        B_UNROLL
        for (int i = C - 2; i >= 0; --i) first = x[i] == best ? positions{} + i : first;
        return first;
    }
    const V best = b_best<LEAST>(x);
    B_UNROLL
    for (int i = C - 1; i >= 0; --i) first = (x[i] == best) | (x[i] != x[i]) ? positions{} + i : first;
    return first;
}
#endif
