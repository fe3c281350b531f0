// Stores past the caches, for results that leave them anyway: what is overwritten is not read first. CPU
// alone.

#ifdef __CUDACC__
#else
#if defined(__AVX512F__)
#define B_PAST_BYTES 64
#elif defined(__AVX__)
#define B_PAST_BYTES 32
#else
#define B_PAST_BYTES 16
#endif
typedef f32 b_past_row __attribute__((vector_size(B_PAST_BYTES), may_alias));
typedef f32 b_any_past_row __attribute__((vector_size(B_PAST_BYTES), aligned(1), may_alias));
#if defined(__clang__)
#define B_STORE_PAST(to, x) __builtin_nontemporal_store((b_past_row)(x), (b_past_row*)(to))
#elif defined(__AVX512F__)
#define B_STORE_PAST(to, x) __builtin_ia32_movntps512((float*)(to), x)
#elif defined(__AVX__)
#define B_STORE_PAST(to, x) __builtin_ia32_movntps256((float*)(to), x)
#elif defined(__SSE2__)
#define B_STORE_PAST(to, x) __builtin_ia32_movntps((float*)(to), x)
#else
#define B_STORE_PAST(to, x) (*(b_past_row*)(to) = (x))
#endif
// Whole lines of `to` past the caches, what lies before and behind them as usual.
template <class T>
B_FN void b_leave(T* to, const T* from, i64 count) {
    i64 i = 0;
    for (; i < count && ((u64)(to + i) & 63) != 0; ++i) to[i] = from[i];
    constexpr i64 line = 64 / sizeof(T), row = B_PAST_BYTES / sizeof(T);
    for (; i + line <= count; i += line) {
        B_UNROLL
        for (i64 k = 0; k < line; k += row) B_STORE_PAST(to + i + k, *(const b_any_past_row*)(from + i + k));
    }
    for (; i < count; ++i) to[i] = from[i];
}
#endif

#ifdef __CUDACC__
#else
// What was stored past the caches can be seen by others.
B_FN void b_settle() {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
#endif
