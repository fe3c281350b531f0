// Index arithmetic and the report of a wrong one.

// The nearest valid index: 0 for an empty axis too, where nothing may be read. Not as a minimum and a
// maximum, which g++ moves to vector registers and back, in the way of what is computed there.
B_FN i64 b_clamp_index(i64 x, i64 extent) {
    if (x >= 0 && x < extent) return x;
    return x < 0 || extent <= 0 ? 0 : extent - 1;
}

#ifdef __CUDACC__
#else
// A loop variable that leaves the range that the compiler assumed ends the process: loops=checked.
B_FN void b_in_range(i64 x, i64 low, i64 high) {
    if (x < low || x > high) __builtin_trap();
}
// Memory that will be read soon.
B_FN void b_ask(const void* from, int bytes) {
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const char*)from + i);
}
#endif

// The first report of a call stays: errors = {number + 1, value, element, high}.
B_COLD void b_report(i64* errors, i64 number, i64 value, i64 element, i64 high) {
#ifdef __CUDACC__
    if (atomicCAS((u64*)errors, 0ull, (u64)(number + 1)) != 0) return;
#else
    i64 none = 0;
    if (!__atomic_compare_exchange_n(errors, &none, number + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
#endif
    errors[1] = value;
    errors[2] = element;
    errors[3] = high;
}
