// Rows in order, and looking for a place among what is in order.

// A number that is the greater the later an element comes in ascending order: NaN is the last of all, -0 is
// 0.
B_FN u32 b_order_key(bool x) { return (u32)x; }
B_FN u32 b_order_key(u8 x) { return (u32)x; }
B_FN u32 b_order_key(u16 x) { return (u32)x; }
B_FN u32 b_order_key(u32 x) { return x; }
B_FN u64 b_order_key(u64 x) { return x; }
B_FN u32 b_order_key(i8 x) { return (u32)(i32)x ^ 0x80000000u; }
B_FN u32 b_order_key(i16 x) { return (u32)(i32)x ^ 0x80000000u; }
B_FN u32 b_order_key(i32 x) { return (u32)x ^ 0x80000000u; }
B_FN u64 b_order_key(i64 x) { return (u64)x ^ 0x8000000000000000ull; }
B_FN u32 b_order_key(f32 x) {
    const u32 bits = b_bits(x + 0.0f), key = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
    return x != x ? ~0u : key;
}
B_FN u64 b_order_key(f64 x) {
    const u64 bits = b_bits(x + 0.0), key = (bits >> 63) != 0 ? ~bits : bits | 0x8000000000000000ull;
    return x != x ? ~0ull : key;
}
template <bool down, class X>
B_FN auto b_key(X x) {
    const auto key = b_order_key(x);
    return down ? ~key : key;
}

#ifdef __CUDACC__
// By all threads of a block, which come here together and leave together: order = the positions of the first
// `wanted` of `count` elements in order, equal ones as they come. Runs that are in order become runs of twice
// the length; each element looks for its place in the other run of the two. There is room for a key and
// two positions an element.
template <bool down, class P, class X>
B_FN void b_sort_row(P* order, const X* row, u64* room, i64 count, i64 wanted) {
    typedef decltype(b_order_key(row[0])) K;
    K *keys = (K*)room, *from = keys + count, *to = from + count;
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
        keys[i] = b_key<down>(row[i]);
        from[i] = (K)i;
    }
    __syncthreads();
    for (i64 width = 1; width < count; width *= 2) {
        for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
            const i64 begin = i / (2 * width) * (2 * width);
            const i64 middle = begin + width < count ? begin + width : count;
            const i64 end = begin + 2 * width < count ? begin + 2 * width : count;
            const bool second = i >= middle;
            const K key = keys[from[i]];
            // Of the other run, those that come first; of equals that is the first run's.
            i64 low = second ? begin : middle, high = second ? middle : end;
            const i64 start = low;
            while (low < high) {
                const i64 half = low + (high - low) / 2;
                const K other = keys[from[half]];
                if (second ? other <= key : other < key)
                    low = half + 1;
                else
                    high = half;
            }
            to[begin + (i - (second ? middle : begin)) + (low - start)] = from[i];
        }
        __syncthreads();
        K* other = from;
        from = to;
        to = other;
    }
    for (i64 i = threadIdx.x; i < wanted; i += blockDim.x) order[i] = (P)from[i];
}
#else
// A key above a position: the order of such words is that of keys, equal ones as they come.
template <class K>
struct b_word {
    typedef u64 type;
};
template <>
struct b_word<u64> {
    __extension__ typedef unsigned __int128 type;
};

// Words in ascending order, whose lower halves are in ascending order already: all digits of the upper ones
// are counted, then words are moved to the other array and back, digit by digit from the lowest. Digits that
// all words have in common are passed over. Gives the array in which they are then.
template <int bits, class K, class W>
B_FN W* b_sort_by_digits(W* from, W* to, i64 count) {
    constexpr int half = 8 * (int)sizeof(K), digits = (half + bits - 1) / bits, values = 1 << bits;
    K places[digits * values];
    for (int d = 0; d < digits * values; ++d) places[d] = 0;
    for (i64 i = 0; i < count; ++i)
        for (int d = 0; d < digits; ++d)
            ++places[d * values + ((int)(K)(from[i] >> (half + d * bits)) & (values - 1))];
    for (int d = 0; d < digits; ++d) {
        K* place = places + d * values;
        const int shift = half + d * bits;
        if (place[(int)(K)(from[0] >> shift) & (values - 1)] == (K)count) continue;
        K before = 0;
        for (int v = 0; v < values; ++v) {
            const K here = place[v];
            place[v] = before;
            before += here;
        }
        for (i64 i = 0; i < count; ++i) to[place[(int)(K)(from[i] >> shift) & (values - 1)]++] = from[i];
        W* other = from;
        from = to;
        to = other;
    }
    return from;
}
// Few elements: each counts those that come before it, a register of them at a time. `keys` and `places` have
// room for one register more.
constexpr int b_count_lanes = 8;
typedef u64 b_counts __attribute__((vector_size(8 * b_count_lanes), aligned(8), may_alias));
template <bool distinct>
B_FN void b_count_before(const u64* keys, i64 count, u64* places) {
    if (count < b_count_lanes / 2) {
        for (i64 i = 0; i < count; ++i) {
            places[i] = 0;
            for (i64 j = 0; j < count; ++j) places[i] += j < i ? keys[j] <= keys[i] : keys[j] < keys[i];
        }
        return;
    }
    for (i64 first = 0; first < count; first += b_count_lanes) {
        const b_counts own = *(const b_counts*)(keys + first);
        b_counts before = own ^ own, number = before;  // what holds is a lane of ones: -1
        i64 j = 0;
        if (!distinct) {
            // Of equals the earlier one.
            for (int l = 0; l < b_count_lanes; ++l) number[l] = (u64)(first + l);
            for (; j < first; ++j) before -= (b_counts)(own >= keys[j]);
            for (; j < count && j < first + b_count_lanes; ++j)
                before -=
                    (b_counts)(own > keys[j]) | ((b_counts)(own == keys[j]) & (b_counts)(number > (u64)j));
        }
        for (; j < count; ++j) before -= (b_counts)(own > keys[j]);
        *(b_counts*)(places + first) = before;
    }
}

template <class K, class W>
B_FN W* b_sort_words(W* from, W* to, i64 count) {
    // Words of 32 + 32 bits are all different; of others the lower halves of equal ones are in order already.
    constexpr bool distinct = sizeof(K) == 4;
    constexpr int few = distinct ? 96 : 192;
    if (distinct && count < b_count_lanes) {
        for (i64 i = 0; i < count; ++i) {
            const W word = from[i];
            W place = 0;
            for (i64 j = 0; j < count; ++j) place += from[j] < word ? (W)1 : (W)0;
            to[(i64)place] = word;
        }
        return to;
    }
    if (count <= few) {
        u64 keys[few + b_count_lanes], places[few + b_count_lanes];
        for (i64 i = 0; i < count; ++i) keys[i] = (u64)(from[i] >> (distinct ? 0 : 8 * (int)sizeof(K)));
        for (int l = 0; l < b_count_lanes; ++l) keys[count + l] = 0;
        b_count_before<distinct>(keys, count, places);
        for (i64 i = 0; i < count; ++i) to[places[i]] = from[i];
        return to;
    }
    if (sizeof(K) == 4 && count >= 8192) return b_sort_by_digits<11, K>(from, to, count);
    return b_sort_by_digits<8, K>(from, to, count);
}

// The first `wanted` words of a row in order, a small part of it: those that are less than the last of the
// first ones so far are kept until they are too many, and then cut down to the first ones.
template <bool down, class K, class W, class X>
B_FN W* b_first_words(W* kept, W* other, const X* row, i64 count, i64 wanted) {
    const i64 many = 2 * wanted > wanted + 32 ? 2 * wanted : wanted + 32;
    const i64 most = many < count - 16 ? many : count - 16;
    const int half = 8 * (int)sizeof(K);
    i64 found = 0;
    bool full = false;
    K limit = 0;
    for (i64 i = 0; i < count; i += 16) {
        const int here = count - i < 16 ? (int)(count - i) : 16;
        K keys[16], less = 0;
        if (here == 16)
            for (int j = 0; j < 16; ++j) keys[j] = b_key<down>(row[i + j]);
        else
            for (int j = 0; j < 16; ++j) keys[j] = j < here ? b_key<down>(row[i + j]) : ~(K)0;
        for (int j = 0; j < 16; ++j) less |= (K)(keys[j] < limit);
        if (full && less == 0) continue;
        if (found + 16 > most) {
            const W* sorted = b_sort_words<K>(kept, other, found);
            found = found < wanted ? found : wanted;
            if (sorted != kept)
                for (i64 w = 0; w < found; ++w) kept[w] = sorted[w];
            full = found == wanted;
            limit = (K)(kept[wanted - 1] >> half);
        }
        for (int j = 0; j < here; ++j) {
            kept[found] = ((W)keys[j] << half) | (W)(K)(i + j);
            found += !full || keys[j] < limit;
        }
    }
    return b_sort_words<K>(kept, other, found);
}

// order = the positions of the first `wanted` of `count` elements in order, equal ones as they come. There is
// room for two words an element.
template <bool down, class P, class X>
B_FN void b_sort_row(P* order, const X* row, u64* room, i64 count, i64 wanted) {
    typedef decltype(b_order_key(row[0])) K;
    typedef typename b_word<K>::type W;
    if (wanted == 0) return;
    constexpr int few = 192;
    if (sizeof(K) == 8 && count <= few) {
        // Keys alone: half of the words.
        u64 keys[few + b_count_lanes], places[few + b_count_lanes];
        for (i64 i = 0; i < count; ++i) keys[i] = b_key<down>(row[i]);
        for (int l = 0; l < b_count_lanes; ++l) keys[count + l] = 0;
        b_count_before<false>(keys, count, places);
        for (i64 i = 0; i < count; ++i)
            if ((i64)places[i] < wanted) order[places[i]] = (P)i;
        return;
    }
    W *words = (W*)room, *other = words + count, *sorted = words;
    if (count >= 64 && 16 * wanted <= count) {
        sorted = b_first_words<down, K>(words, other, row, count, wanted);
    } else {
        for (i64 i = 0; i < count; ++i) words[i] = ((W)b_key<down>(row[i]) << (8 * (int)sizeof(K))) | (W)(K)i;
        sorted = b_sort_words<K>(words, other, count);
    }
    for (i64 i = 0; i < wanted; ++i) order[i] = (P)(K)sorted[i];
}

// The first position from `begin` below `end` whose element is not below `low`, else the greater of the two:
// steps that double, then halves. The elements are in ascending order.
template <class T>
B_FN i64 b_search(const T* sorted, i64 begin, i64 end, i64 low) {
    i64 step = 1, first = begin;
    while (first + step <= end && (i64)sorted[first + step - 1] < low) {
        first += step;
        step *= 2;
    }
    if (first + step <= end) end = first + step - 1;
    while (first < end) {
        const i64 middle = first + (end - first) / 2;
        if ((i64)sorted[middle] < low)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}
#endif
