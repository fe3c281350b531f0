// Elements that one thread loads and stores together: CUDA alone.

#ifdef __CUDACC__
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) b_vector {
    T at[N];
};
// `from` is aligned to the vector; past the end of a buffer there is room to read.
template <int N, class T>
B_FN b_vector<T, N> b_fetch(const T* from) {
    return *(const b_vector<T, N>*)from;
}
// The first `most` elements alone where there are not so many left.
template <int N, class T>
B_FN void b_put(T* to, const b_vector<T, N>& from, i64 most) {
    if (most >= N) {
        *(b_vector<T, N>*)to = from;
        return;
    }
    B_UNROLL
    for (int i = 0; i < N; ++i)
        if (i < most) to[i] = from.at[i];
}
#endif
