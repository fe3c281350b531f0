// The oracle's way to move elements: a result element by element, each copied from somewhere, whatever its
// dtype.
#pragma once

#include <cstring>
#include <vector>

#include "bitale/array.h"

namespace bitale {

inline std::int64_t linear_of(const Dims& at, const Dims& shape) {
    std::int64_t linear = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) linear = linear * shape[i] + at[i];
    return linear;
}

// f(at) for every index of the shape, in row-major order.
template <class F>
void for_each_index(const Dims& shape, F&& f) {
    Dims at(shape.size(), 0);
    for (std::int64_t n = count_of(shape); n > 0; --n) {
        f(const_cast<const Dims&>(at));
        for (std::size_t i = shape.size(); i-- > 0;) {
            if (++at[i] < shape[i]) break;
            at[i] = 0;
        }
    }
}

// Copies element `from` of x to element `to` of r; both of one dtype.
inline void copy_element(Array& r, std::int64_t to, const Array& x, std::int64_t from) {
    const auto size = static_cast<std::size_t>(bytes_of(x.dtype()));
    std::memcpy(static_cast<char*>(r.mutable_data()) + static_cast<std::size_t>(to) * size,
                static_cast<const char*>(x.data()) + static_cast<std::size_t>(from) * size, size);
}

// source(at) is the linear index in x of the result's element `at`, or -1 for one that stays zero.
template <class F>
Array copied(const Array& x, const Dims& shape, F&& source) {
    Array r(x.dtype(), shape);
    std::int64_t to = 0;
    for_each_index(shape, [&](const Dims& at) {
        const std::int64_t from = source(at);
        if (from >= 0) copy_element(r, to, x, from);
        ++to;
    });
    return r;
}

}  // namespace bitale
