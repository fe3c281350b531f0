// Elements of a row sorted by their number modulo S, and back, in registers: CPU alone.

#ifdef __CUDACC__
#else
#if defined(__AVX512F__)
#define B_PHASE_BYTES 64
#elif defined(__AVX2__)
#define B_PHASE_BYTES 32
#else
#define B_PHASE_BYTES 16
#endif
#define B_WIDEST_PHASE 8
template <int BYTES>
struct b_number_of {
    typedef i32 type;
};
template <>
struct b_number_of<8> {
    typedef i64 type;
};
template <>
struct b_number_of<2> {
    typedef i16 type;
};
template <>
struct b_number_of<1> {
    typedef i8 type;
};
// Lane l of what is left of `x` when those that the rule says come from `y`.
template <class RULE, class V>
B_FN V b_chosen(V x, V y) {
#ifdef __clang__
    constexpr int n = (int)(sizeof(V) / sizeof(x[0]));
    V r = x;
    B_UNROLL
    for (int l = 0; l < n; ++l) r[l] = RULE::of(l) < n ? x[RULE::of(l) % n] : y[RULE::of(l) % n];
    return r;
#else
    return __builtin_shuffle(x, y, RULE::template all<sizeof(x[0])>());
#endif
}
template <int... L>
struct b_numbers {};
template <class SELF, int N>
struct b_rule {
#ifndef __clang__
    template <int BYTES, int... L>
    B_FN b_vec<typename b_number_of<BYTES>::type, N> list(b_numbers<L...>) {
        return b_vec<typename b_number_of<BYTES>::type, N>{SELF::of(L)...};
    }
    template <int BYTES>
    B_FN b_vec<typename b_number_of<BYTES>::type, N> all() {
        return list<BYTES>(b_numbers<__integer_pack(N)...>{});
    }
#endif
};
// Lane l is element l * S + R of S registers: what register K has of them, behind what those before it have.
template <int N, int S, int R, int K>
struct b_rule_apart : b_rule<b_rule_apart<N, S, R, K>, N> {
    static constexpr int of(int l) {
        const int e = l * S + R;
        return e / N == K ? N + e % N : K == 1 && e < N ? e : l;
    }
};
// Lane l of register NUMBER is the element of phase (NUMBER * N + l) % S: those of phase R.
template <int N, int S, int NUMBER, int R>
struct b_rule_together : b_rule<b_rule_together<N, S, NUMBER, R>, N> {
    static constexpr int of(int l) {
        const int e = NUMBER * N + l;
        return e % S == R ? N + e / S : R == 1 && e % S == 0 ? e / S : l;
    }
};
template <int N, int S, int R, int K, class V>
B_FN V b_phase(const V* x) {
    if constexpr (S == 1)
        return x[0];
    else if constexpr (K <= 1)
        return b_chosen<b_rule_apart<N, S, R, 1> >(x[0], x[K]);
    else
        return b_chosen<b_rule_apart<N, S, R, K> >(b_phase<N, S, R, K - 1>(x), x[K]);
}
template <int N, int S, int NUMBER, int R, class V>
B_FN V b_merged(const V* x) {
    if constexpr (R == 0)
        return x[0];
    else
        return b_chosen<b_rule_together<N, S, NUMBER, R> >(b_merged<N, S, NUMBER, R - 1>(x), x[R]);
}
// Each phase of registers 0 to LAST; with `half`, no more than half a register of it.
template <int N, int S, int R, int LAST, class T, class V>
B_FN void b_store_phases(T* to, i64 far, const V* x, bool half) {
    const V all = b_phase<N, S, R, LAST>(x);
    if (half) {
        b_vec<T, N / 2> first;
        __builtin_memcpy(&first, &all, sizeof first);
        b_store(to + far * R, first);
    } else {
        b_store(to + far * R, all);
    }
    if constexpr (R + 1 < S) b_store_phases<N, S, R + 1, LAST>(to, far, x, half);
}
// As many registers as `there` elements need.
template <int N, int S, int LAST, class T>
B_FN void b_apart_registers(const T* from, i64 there, T* to, i64 far, bool half) {
    if constexpr (LAST + 1 < S)
        if (there > N * (LAST + 1)) return b_apart_registers<N, S, LAST + 1>(from, there, to, far, half);
    b_vec<T, N> x[LAST + 1];
    B_UNROLL
    for (int k = 0; k <= LAST; ++k) x[k] = b_load<N>(from + N * k);
    b_store_phases<N, S, 0, LAST>(to, far, x, half);
}
template <int N, int S, int NUMBER, class T, class V>
B_FN void b_store_merged(T* to, i64 count, const V* x) {
    if (count >= (NUMBER + 1) * N)
        b_store(to + NUMBER * N, b_merged<N, S, NUMBER, S - 1>(x));
    else if (count > NUMBER * N)
        b_store_first(to + NUMBER * N, b_merged<N, S, NUMBER, S - 1>(x), (int)(count - NUMBER * N));
    if constexpr (NUMBER + 1 < S) b_store_merged<N, S, NUMBER + 1>(to, count, x);
}
// to[far * r + q] = from[S * q + r] for q below `count`; elements of `from` are needed below `there` alone.
// Whole registers are read and written.
template <int S, class T>
B_FN void b_apart(const T* from, i64 count, i64 there, T* to, i64 far) {
    if constexpr (S > B_WIDEST_PHASE) {
        for (i64 r = 0; r < S; ++r)
            for (i64 q = 0; q < count; ++q)
                if (S * q + r < there) to[far * r + q] = from[S * q + r];
    } else {
        constexpr int n = B_PHASE_BYTES / (int)sizeof(T);
        for (i64 q = 0; q < count; q += n)
            b_apart_registers<n, S, 0>(from + S * q, there - S * q, to + q, far, count - q <= n / 2);
    }
}
// Lane l of register NUMBER is that element of the register, each S times.
template <int N, int S, int NUMBER>
struct b_rule_repeated : b_rule<b_rule_repeated<N, S, NUMBER>, N> {
    static constexpr int of(int l) { return (NUMBER * N + l) / S; }
};
template <int N, int S, int NUMBER, class T, class V>
B_FN void b_store_repeated(T* to, V x) {
    b_store(to + NUMBER * N, b_chosen<b_rule_repeated<N, S, NUMBER> >(x, x));
    if constexpr (NUMBER + 1 < S) b_store_repeated<N, S, NUMBER + 1>(to, x);
}
// to[S * q + r] = from[q] for q below `count` and r below S. Whole registers are read and written.
template <int S, class T>
B_FN void b_repeat(const T* from, i64 count, T* to) {
    constexpr int n = B_PHASE_BYTES / (int)sizeof(T);
    for (i64 q = 0; q < count; q += n) b_store_repeated<n, S, 0>(to + S * q, b_load<n>(from + q));
}
// Of each 2 W lanes the first W, or with HIGH the last W, of two registers side by side.
template <int N, int W, bool HIGH>
struct b_rule_halves : b_rule<b_rule_halves<N, W, HIGH>, N> {
    static constexpr int of(int l) {
        const int first = l / (2 * W) * (2 * W), inside = l % (2 * W), from = first + (HIGH ? W : 0);
        return inside < W ? from + inside : N + from + inside - W;
    }
};
// Of registers R and R + W: both halves of each 2 W lanes added, those of R first.
template <int N, int W, class V>
B_FN V b_added(const V* x) {
    if constexpr (W == N) {
        return x[0];
    } else {
        const V a = b_added<N, 2 * W>(x), b = b_added<N, 2 * W>(x + W);
        return b_chosen<b_rule_halves<N, W, false> >(a, b) + b_chosen<b_rule_halves<N, W, true> >(a, b);
    }
}
// sums[r] = the sum of the 16 elements from[16 * r ...] for 16 rows: element l and l + 8, then 4, 2 and 1.
B_FN void b_add_up_rows(const f32* from, f32* sums) {
    constexpr int n = B_PHASE_BYTES / 4;
    B_UNROLL
    for (int first = 0; first < 16; first += n) {
        b_vec<f32, n> x[n];
        B_UNROLL
        for (int r = 0; r < n; ++r) {
            const f32* const row = from + 16 * (first + r);
            if constexpr (n == 16)
                x[r] = b_load<n>(row);
            else if constexpr (n == 8)
                x[r] = b_load<n>(row) + b_load<n>(row + 8);
            else
                x[r] = (b_load<n>(row) + b_load<n>(row + 8)) + (b_load<n>(row + 4) + b_load<n>(row + 12));
        }
        b_store(sums + first, b_added<n, 1>(x));
    }
}
// to[S * q + r] = from[far * r + q] for the first `count` elements of `to`, and no other.
template <int S, class T>
B_FN void b_together(T* to, i64 count, const T* from, i64 far) {
    if constexpr (S > B_WIDEST_PHASE) {
        for (i64 q = 0; S * q < count; ++q)
            for (i64 r = 0; r < S && S * q + r < count; ++r) to[S * q + r] = from[far * r + q];
    } else {
        constexpr int n = B_PHASE_BYTES / (int)sizeof(T);
        for (i64 q = 0; S * q < count; q += n) {
            b_vec<T, n> x[S];
            B_UNROLL
            for (int r = 0; r < S; ++r) x[r] = b_load<n>(from + far * r + q);
            b_store_merged<n, S, 0>(to + S * q, count - S * q, x);
        }
    }
}
#endif
