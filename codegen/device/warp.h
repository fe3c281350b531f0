// Threads that work together on one result: CUDA alone.

#ifdef __CUDACC__
// What the thread `lanes` away holds: 1, 2, 4 or 8 among 16, all of which have to ask, or 16 among the 32 of
// a warp.
template <class T>
B_FN T b_other_lane(T x, int lanes) {
    return (T)__shfl_xor_sync(lanes == 16 ? 0xffffffffu : 0xffffu << (threadIdx.x & 16u), x, lanes);
}
B_FN f16 b_other_lane(f16 x, int lanes) { return f16{b_other_lane(x.bits, lanes)}; }
B_FN bf16 b_other_lane(bf16 x, int lanes) { return bf16{b_other_lane(x.bits, lanes)}; }
#endif
