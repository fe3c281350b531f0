// Sums of bytes that lie next to each other: CPU alone, in vectors of as many as a register has.

#ifdef __CUDACC__
#else
// Partial sums of 16 bits: pairs of bytes are taken apart by a mask and a shift, which every vector unit has;
// 128 times twice 255 is all that fits. Up to 63 bytes past the end may be read, and count for nothing.
// `flip` turns bits of each pair over first; of each byte the bits of `mask` from bit `shift` on count, which
// those of its neighbour must not reach. Compilers keep vectors longer than a register in memory.
#if defined(__AVX512BW__)
#define B_BYTES 64
#elif defined(__AVX2__)
#define B_BYTES 32
#else
#define B_BYTES 16
#endif
typedef u16 b_pairs __attribute__((vector_size(B_BYTES), aligned(1), may_alias));
typedef u32 b_quads __attribute__((vector_size(B_BYTES), may_alias));
typedef u8 b_bytes __attribute__((vector_size(B_BYTES), may_alias));
typedef u8 b_any_bytes __attribute__((vector_size(B_BYTES), aligned(1), may_alias));
B_TABLE u8 b_byte_numbers[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
#define B_SUM_PAIRS(x) (((x) & (u16)255) + ((x) >> 8))
#define B_BITS_OF_PAIRS(x) (mask == 255 ? (x) : ((x) >> (u16)shift) & (u16)(mask * 257))
#define B_SUM_QUADS(x) (((b_quads)(x)&0xffffu) + ((b_quads)(x) >> 16))
template <int mask>
B_FN i64 b_sum_pairs(const u8* from, i64 count, u16 flip, i64 shift) {
    constexpr i64 most = 128 * B_BYTES;
    const b_bytes numbers = *(const b_any_bytes*)b_byte_numbers;
    i64 total = 0;
    for (i64 begin = 0; begin < count; begin += most) {
        const i64 size = count - begin < most ? count - begin : most,
                  whole = begin + size / B_BYTES * B_BYTES;
        b_pairs part = {};
        for (i64 i = begin; i < whole; i += B_BYTES) {
            const b_pairs pairs = B_BITS_OF_PAIRS(*(const b_pairs*)(from + i) ^ flip);
            part += B_SUM_PAIRS(pairs);
        }
        b_quads quads = B_SUM_QUADS(part);
        if (size % B_BYTES != 0) {
            const b_bytes keep = (b_bytes)(numbers < (u8)(size % B_BYTES));
            const b_pairs pairs = B_BITS_OF_PAIRS(*(const b_pairs*)(from + whole) ^ flip) & (b_pairs)keep;
            const b_pairs rest = B_SUM_PAIRS(pairs);
            quads += B_SUM_QUADS(rest);
        }
        u32 sum = 0;
        for (int i = 0; i < B_BYTES / 4; ++i) sum += quads[i];
        total += sum;
    }
    return total;
}
B_FN i64 b_sum_bytes(const u8* from, i64 count) { return b_sum_pairs<255>(from, count, 0, 0); }
B_FN i64 b_sum_bytes(const bool* from, i64 count) { return b_sum_pairs<255>((const u8*)from, count, 0, 0); }
template <int mask>
B_FN i64 b_sum_bits(const u8* from, i64 count, i64 shift) {
    return b_sum_pairs<mask>(from, count, 0, shift);
}
// As bytes with the first bit turned over, they are 128 more.
B_FN i64 b_sum_bytes(const i8* from, i64 count) {
    return b_sum_pairs<255>((const u8*)from, count, 0x8080, 0) - 128 * count;
}
#endif
