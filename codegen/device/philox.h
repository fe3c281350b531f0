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
