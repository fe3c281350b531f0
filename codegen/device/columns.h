// Sums of the columns of a matrix of bytes: CPU alone.

#ifdef __CUDACC__
#else
// to[j] += the sum over r of from[r * far + j]. Even and odd columns are taken apart by a mask and a shift
// and added as 16 bits, in which 256 bytes have room. Up to 63 bytes past the end may be read, and count for
// nothing. `flip` turns the first bit of each byte over: then they are 128 more.
#if defined(__AVX512BW__)
#define B_COLUMNS 64
#elif defined(__AVX2__)
#define B_COLUMNS 32
#else
#define B_COLUMNS 16
#endif
typedef u16 b_columns __attribute__((vector_size(B_COLUMNS), may_alias));
typedef u16 b_any_columns __attribute__((vector_size(B_COLUMNS), aligned(1), may_alias));
template <bool flip>
B_FN b_columns b_pairs_of_columns(const u8* from) {
    const b_columns x = *(const b_any_columns*)from;
    return flip ? x ^ (u16)0x8080 : x;
}
template <bool flip, bool by_four, class Sum>
B_FN void b_add_rows(Sum* to, const u8* from, i64 rows, i64 width, i64 far) {
    constexpr i64 most = 2048, most_rows = 256;
    B_ALIGN u16 even[most / 2], odd[most / 2];
    for (i64 first = 0; first < width; first += most) {
        const i64 count = width - first < most ? width - first : most;
        for (i64 begin = 0; begin < rows; begin += most_rows) {
            const i64 end = rows - begin < most_rows ? rows : begin + most_rows;
            for (i64 j = 0; j < count; j += B_COLUMNS)
                *(b_columns*)(even + j / 2) = *(b_columns*)(odd + j / 2) = b_columns{};
            i64 r = begin;
            for (; by_four && r + 4 <= end; r += 4)
                for (i64 j = 0; j < count; j += B_COLUMNS) {
                    const u8* const at = from + r * far + first + j;
                    const b_columns a = b_pairs_of_columns<flip>(at), b = b_pairs_of_columns<flip>(at + far),
                                    c = b_pairs_of_columns<flip>(at + 2 * far),
                                    d = b_pairs_of_columns<flip>(at + 3 * far);
                    *(b_columns*)(even + j / 2) +=
                        ((a & (u16)255) + (b & (u16)255)) + ((c & (u16)255) + (d & (u16)255));
                    *(b_columns*)(odd + j / 2) += ((a >> 8) + (b >> 8)) + ((c >> 8) + (d >> 8));
                }
            for (; r < end; ++r)
                for (i64 j = 0; j < count; j += B_COLUMNS) {
                    const b_columns a = b_pairs_of_columns<flip>(from + r * far + first + j);
                    *(b_columns*)(even + j / 2) += a & (u16)255;
                    *(b_columns*)(odd + j / 2) += a >> 8;
                }
            const i32 more = flip ? 128 * (i32)(end - begin) : 0;
            Sum* const sums = to + first;
            B_SIMD
            for (i64 j = 0; j < count / 2; ++j) {
                sums[2 * j] += (i32)even[j] - more;
                sums[2 * j + 1] += (i32)odd[j] - more;
            }
            if (count % 2 != 0) sums[count - 1] += (i32)even[count / 2] - more;
        }
    }
}
// Many rows of a few columns without a gap between them: so many rows count as one, and are read one after
// another, which memory is ready for.
template <bool flip, class Sum>
B_FN void b_add_columns_of(Sum* to, const u8* from, i64 rows, i64 width, i64 far) {
    constexpr i64 few = 64, most = 1 << 20;
    if (far == width && width > 0 && width < few && rows >= 2 * few) {
        B_ALIGN i32 wide[few * few];
        i64 together = 1024 / width / few * few;
        if (together < few || rows < 8 * together) together = few;
        while (rows >= together) {
            const i64 some = rows / together < most ? rows / together : most;
            for (i64 j = 0; j < together * width; ++j) wide[j] = 0;
            b_add_rows<flip, false>(wide, from, some, together * width, together * width);
            for (i64 r = 0; r < together; ++r)
                for (i64 j = 0; j < width; ++j) to[j] += wide[r * width + j];
            from += some * together * width;
            rows -= some * together;
        }
    }
    b_add_rows<flip, true>(to, from, rows, width, far);
}
template <class Sum>
B_FN void b_add_columns(Sum* to, const u8* from, i64 rows, i64 width, i64 far) {
    b_add_columns_of<false>(to, from, rows, width, far);
}
template <class Sum>
B_FN void b_add_columns(Sum* to, const bool* from, i64 rows, i64 width, i64 far) {
    b_add_columns_of<false>(to, (const u8*)from, rows, width, far);
}
template <class Sum>
B_FN void b_add_columns(Sum* to, const i8* from, i64 rows, i64 width, i64 far) {
    b_add_columns_of<true>(to, (const u8*)from, rows, width, far);
}
#endif
