#include "graph/types/shape.h"

namespace bitale {

Int count_of(const Shape& shape) {
    Int n = 1;
    for (const Int& d : shape) n = n * d;
    return n;
}

bool is_static(const Shape& shape) {
    for (const Int& d : shape)
        if (!d.is_constant()) return false;
    return true;
}

Dims static_dims(const Shape& shape) {
    Dims dims;
    for (const Int& d : shape) dims.push_back(d.constant());
    return dims;
}

Shape shape_of(const Dims& dims) { return Shape(dims.begin(), dims.end()); }

namespace {

// A clipped minibatch is a long formula; its bound says what a reader wants to know.
std::string short_text(const Int& length) {
    constexpr std::size_t readable = 24;
    std::string text = length.text();
    const IntRange r = length.range();
    if (text.size() <= readable || r.high >= IntRange::highest) return text;
    return "<=" + std::to_string(r.high);
}

}  // namespace

std::string text_of(const Shape& shape) {
    std::string s = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + short_text(shape[i]);
    return s + "]";
}

std::string text_of(const Type& type) { return std::string(name_of(type.dtype)) + " " + text_of(type.shape); }

std::int64_t bytes_bound(const Type& type) {
    const IntRange r = count_of(type.shape).range();
    return r.high >= IntRange::highest / 8 ? IntRange::highest : r.high * bytes_of(type.dtype);
}

}  // namespace bitale
