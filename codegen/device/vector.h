// Elements that one thread loads and stores together: CUDA alone.

#ifdef __CUDACC__
#ifndef B_VECTOR_LOAD  // the emulator may want to see them
#define B_VECTOR_LOAD(V, FROM) (*(const V*)(FROM))
#define B_VECTOR_STORE(V, TO, VALUE) (*(V*)(TO) = (VALUE))
#endif
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) b_vector {
    T at[N];
};
// `from` is aligned to the vector; past the end of a buffer there is room to read.
template <int N, class T>
B_FN b_vector<T, N> b_fetch(const T* from) {
    using Vector = b_vector<T, N>;
    return B_VECTOR_LOAD(Vector, from);
}
// The first `most` elements alone where there are not so many left.
template <int N, class T>
B_FN void b_put(T* to, const b_vector<T, N>& from, i64 most) {
    if (most >= N) {
        using Vector = b_vector<T, N>;
        B_VECTOR_STORE(Vector, to, from);
        return;
    }
    B_UNROLL
    for (int i = 0; i < N; ++i)
        if (i < most) to[i] = from.at[i];
}
#endif
