// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; 2011): random bits
// as a function of key, counter and element index, the same wherever and in whatever order they are drawn.

struct b_philox_words {
    u32 first, second;
};
B_FN b_philox_words b_philox_block(u64 key, u64 counter, u64 index) {
    u32 c0 = (u32)index, c1 = (u32)(index >> 32), c2 = (u32)counter, c3 = (u32)(counter >> 32);
    u32 k0 = (u32)key, k1 = (u32)(key >> 32);
    B_UNROLL
    for (int round = 0; round < 10; ++round) {
        const u64 first = (u64)0xD2511F53u * c0, second = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(second >> 32) ^ c1 ^ k0;
        c1 = (u32)second;
        c2 = (u32)(first >> 32) ^ c3 ^ k1;
        c3 = (u32)first;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return b_philox_words{c0, c1};
}
B_FN u32 b_philox(u64 key, u64 counter, u64 index) { return b_philox_block(key, counter, index).first; }
B_FN u32 b_philox_second(u64 key, u64 counter, u64 index) {
    return b_philox_block(key, counter, index).second;
}

#ifdef __CUDACC__
#else
// The same for `count` neighbours, rounded up to whole registers. What is multiplied is 32 bits of a lane of
// 64, for which compilers know no instruction: they multiply all 64.
#if defined(__AVX512F__)
#define B_DRAWN 8
#define B_EVERY_OTHER 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15
#define B_NUMBERS 0, 1, 2, 3, 4, 5, 6, 7
#define B_OPERAND "v"
#elif defined(__AVX2__)
#define B_DRAWN 4
#define B_EVERY_OTHER 1, 1, 3, 3, 5, 5, 7, 7
#define B_NUMBERS 0, 1, 2, 3
#define B_OPERAND "x"
#endif
#ifdef B_DRAWN
typedef u64 b_words __attribute__((vector_size(8 * B_DRAWN)));
typedef u32 b_half_words __attribute__((vector_size(8 * B_DRAWN)));
typedef u32 b_low_words __attribute__((vector_size(4 * B_DRAWN)));
typedef u32 b_stored_words __attribute__((vector_size(4 * B_DRAWN), aligned(4), may_alias));
B_FN b_words b_times(b_words a, b_words b) {
    b_words r;
    asm("vpmuludq %2, %1, %0" : "=" B_OPERAND(r) : B_OPERAND(a), B_OPERAND(b));
    return r;
}
B_FN b_words b_high(b_words a) {
    return (b_words)__builtin_shufflevector((b_half_words)a, (b_half_words)a, B_EVERY_OTHER);
}
template <bool both>
B_FN void b_draw_words(u32* first, u32* second, u64 key, u64 counter, u64 index, i64 count) {
    const b_words m0 = b_words{} + 0xD2511F53ull, m1 = b_words{} + 0xCD9E8D57ull;
    for (i64 i = 0; i < count; i += B_DRAWN) {
        const b_words number = b_words{B_NUMBERS} + (index + (u64)i);
        // The first round multiplies the counter, which is the same for all.
        const u64 of_counter = 0xCD9E8D57ull * (u32)counter;
        u64 k0 = key, k1 = key >> 32;
        b_words c3 = b_times(m0, number), c1 = b_words{} + of_counter,
                c0 = (number >> 32) ^ ((of_counter >> 32) ^ k0), c2 = b_high(c3) ^ ((counter >> 32) ^ k1);
        B_UNROLL
        for (int round = 1; round < 10; ++round) {
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
            const b_words a = b_times(m0, c0), b = b_times(m1, c2);
            c0 = b_high(b) ^ c1 ^ k0;
            c1 = b;
            c2 = b_high(a) ^ c3 ^ k1;
            c3 = a;
        }
        *(b_stored_words*)(first + i) = (b_stored_words) __builtin_convertvector(c0, b_low_words);
        if (both) *(b_stored_words*)(second + i) = (b_stored_words) __builtin_convertvector(c1, b_low_words);
    }
}
#else
template <bool both>
B_FN void b_draw_words(u32* first, u32* second, u64 key, u64 counter, u64 index, i64 count) {
    for (i64 i = 0; i < count; ++i) {
        const b_philox_words words = b_philox_block(key, counter, index + (u64)i);
        first[i] = words.first;
        if (both) second[i] = words.second;
    }
}
#endif
B_FN void b_draw(u32* first, u64 key, u64 counter, u64 index, i64 count) {
    b_draw_words<false>(first, first, key, counter, index, count);
}
B_FN void b_draw(u32* first, u32* second, u64 key, u64 counter, u64 index, i64 count) {
    b_draw_words<true>(first, second, key, counter, index, count);
}
#endif
