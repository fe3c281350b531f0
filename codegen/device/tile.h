// A tile of 16 x 16 elements, transposed in registers: CPU alone.

#ifdef __CUDACC__
#else
#if defined(__AVX512F__)
#define B_TILE_LANES 16
#define B_TILE_LOW \
    { 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23 }
#define B_TILE_HIGH \
    { 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 }
#elif defined(__AVX2__)
#define B_TILE_LANES 8
#define B_TILE_LOW \
    { 0, 8, 1, 9, 2, 10, 3, 11 }
#define B_TILE_HIGH \
    { 4, 12, 5, 13, 6, 14, 7, 15 }
#else
#define B_TILE_LANES 4
#define B_TILE_LOW \
    { 0, 4, 1, 5 }
#define B_TILE_HIGH \
    { 2, 6, 3, 7 }
#endif
typedef f32 b_row __attribute__((vector_size(4 * B_TILE_LANES)));
typedef f32 b_any_row __attribute__((vector_size(4 * B_TILE_LANES), aligned(4), may_alias));
#ifdef __clang__
B_FN b_row b_pick(const b_row& x, const b_row& y, bool high) {
    b_row r;
    const int order[2][B_TILE_LANES] = {B_TILE_LOW, B_TILE_HIGH};
    for (int i = 0; i < B_TILE_LANES; ++i) {
        const int from = order[high][i];
        r[i] = from < B_TILE_LANES ? x[from] : y[from - B_TILE_LANES];
    }
    return r;
}
#define B_TILE_PICK(x, y, high) b_pick(x, y, high)
#else
typedef i32 b_order __attribute__((vector_size(4 * B_TILE_LANES)));
#define B_TILE_PICK(x, y, high) __builtin_shuffle(x, y, (high) ? (b_order)B_TILE_HIGH : (b_order)B_TILE_LOW)
#endif
// Rows from `from` on, of which there are so many, to columns.
template <class T>
B_FN void b_turn_registers(const T* from, i64 stride, i64 rows, b_row* x) {
    b_row y[B_TILE_LANES];
    B_UNROLL
    for (int k = 0; k < B_TILE_LANES; ++k) x[k] = *(const b_any_row*)(from + stride * (k < rows ? k : 0));
    // Rows i and i + LANES / 2 side by side; once more and so on, until columns are rows.
    B_UNROLL
    for (int step = 1; step < B_TILE_LANES; step *= 2) {
        B_UNROLL
        for (int k = 0; k < B_TILE_LANES / 2; ++k) {
            y[2 * k] = B_TILE_PICK(x[k], x[k + B_TILE_LANES / 2], false);
            y[2 * k + 1] = B_TILE_PICK(x[k], x[k + B_TILE_LANES / 2], true);
        }
        B_UNROLL
        for (int k = 0; k < B_TILE_LANES; ++k) x[k] = y[k];
    }
}
// to[16 c + r] = from[stride r + c] for r below `rows` and c below `columns`, which are 16 at most. Whole
// vectors of the rows are read: up to 15 elements past the end of one.
template <class T>
B_FN void b_transpose(const T* from, i64 stride, T* to, i64 rows, i64 columns) {
    if constexpr (sizeof(T) == 4) {
        for (i64 c = 0; c < columns; c += B_TILE_LANES)
            for (i64 r = 0; r < rows; r += B_TILE_LANES) {
                b_row x[B_TILE_LANES];
                b_turn_registers(from + stride * r + c, stride, rows - r, x);
                B_UNROLL
                for (int k = 0; k < B_TILE_LANES; ++k) *(b_any_row*)(to + 16 * (c + k) + r) = x[k];
            }
    } else {
        for (i64 r = 0; r < rows; ++r)
            for (i64 c = 0; c < columns; ++c) to[16 * c + r] = from[stride * r + c];
    }
}
// The same to[far c + r], of elements of 4 bytes. `past` the caches where rows of `to` are whole lines of
// them: a large result is not read before it has left them, and what would be overwritten is not read first.
template <bool past, class T>
B_FN void b_turn(const T* from, i64 stride, T* to, i64 far, i64 rows, i64 columns) {
    if (rows < 16) {
        T tile[256];
        b_transpose(from, stride, tile, rows, columns);
        for (i64 c = 0; c < columns; ++c)
            for (i64 r = 0; r < rows; ++r) to[far * c + r] = tile[16 * c + r];
        return;
    }
    for (i64 c = 0; c < columns; c += B_TILE_LANES)
        for (i64 r = 0; r < rows; r += B_TILE_LANES) {
            b_row x[B_TILE_LANES];
            b_turn_registers(from + stride * r + c, stride, B_TILE_LANES, x);
            T* const first = to + far * c + r;
#if B_TILE_LANES == 16
            if (past && (((u64)first | (u64)(4 * far)) & 63) == 0 && c + 16 <= columns) {
                B_UNROLL
                for (int k = 0; k < 16; ++k) B_STORE_PAST(first + far * k, x[k]);
                continue;
            }
#endif
            B_UNROLL
            for (int k = 0; k < B_TILE_LANES; ++k)
                if (c + k < columns) *(b_any_row*)(first + far * k) = x[k];
        }
}
#endif
