// An element and its position against another pair: NaN is better than any number, and of equals the earlier.

template <bool LEAST, class T, class P>
B_FN bool b_comes_first(T value, P position, T other, P there) {
    const bool nan = value != value, other_nan = other != other,
               better = (LEAST ? value < other : value > other) | (nan & !other_nan),
               same = (value == other) | (nan & other_nan);
    return better | (same & (position < there));
}
