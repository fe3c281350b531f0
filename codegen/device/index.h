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

// errors = {number + 1, value, element, high}: on a CPU the report of the first check, and of its first
// element, in whatever order tasks run; on a GPU the first that arrives.
B_COLD void b_report(i64* errors, i64 number, i64 value, i64 element, i64 high) {
#ifdef __CUDACC__
    if (atomicCAS((u64*)errors, 0ull, (u64)(number + 1)) != 0) return;
    errors[1] = value;
    errors[2] = element;
    errors[3] = high;
#else
    constexpr i64 writing = -1;
    i64 before;
    while ((before = __atomic_exchange_n(errors, writing, __ATOMIC_ACQUIRE)) == writing) {
    }
    if (before != 0 && (before < number + 1 || (before == number + 1 && errors[2] <= element))) {
        __atomic_store_n(errors, before, __ATOMIC_RELEASE);
        return;
    }
    errors[1] = value;
    errors[2] = element;
    errors[3] = high;
    __atomic_store_n(errors, number + 1, __ATOMIC_RELEASE);
#endif
}
