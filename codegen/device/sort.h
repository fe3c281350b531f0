// Keys in ascending order: CPU alone.

#ifdef __CUDACC__
#else
// Keys as they come give positions in ascending order, equal ones as they come: digit by digit from the
// lowest, counted and moved. Digits in which no keys differ are passed over. Behind the `count` keys lies
// room for as many again, twice.
template <class T, class U>
B_FN void b_sort_by_digits(T* order, T* keys, i64 count) {
    const int bits = count < 4096 ? 8 : 11;
    const U digit = ((U)1 << bits) - 1;
    i64 places[2048];
    U differ = 0;
    for (i64 i = 0; i < count; ++i) differ |= (U)(keys[i] ^ keys[0]);
    T *from = keys, *to = keys + count, *numbers = order, *moved = keys + 2 * count;
    for (i64 i = 0; i < count; ++i) order[i] = (T)i;
    for (int shift = 0; shift < (int)(8 * sizeof(U)) && (differ >> shift) != 0; shift += bits) {
        if (((differ >> shift) & digit) == 0) continue;
        for (i64 d = 0; d <= (i64)digit; ++d) places[d] = 0;
        for (i64 i = 0; i < count; ++i) ++places[((U)from[i] >> shift) & digit];
        i64 before = 0;
        for (i64 d = 0; d <= (i64)digit; ++d) {
            const i64 here = places[d];
            places[d] = before;
            before += here;
        }
        for (i64 i = 0; i < count; ++i) {
            const i64 place = places[((U)from[i] >> shift) & digit]++;
            to[place] = from[i];
            moved[place] = numbers[i];
        }
        T* other = from;
        from = to;
        to = other;
        other = numbers;
        numbers = moved;
        moved = other;
    }
    if (numbers != order)
        for (i64 i = 0; i < count; ++i) order[i] = numbers[i];
}
B_FN void b_sort(i32* order, i32* keys, i64 count) { b_sort_by_digits<i32, u32>(order, keys, count); }
B_FN void b_sort(i64* order, i64* keys, i64 count) { b_sort_by_digits<i64, u64>(order, keys, count); }

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
