#include "ops/elementwise/promotion.h"

namespace bitale {

namespace {

DType signed_of(int bits) {
    return bits <= 8 ? DType::int8 : bits <= 16 ? DType::int16 : bits <= 32 ? DType::int32 : DType::int64;
}

}  // namespace

std::optional<DType> promote(DType a, DType b, Options::Promotion promotion) {
    const bool theano = promotion == Options::Promotion::theano;
    if (is_half(a) || is_half(b)) return std::nullopt;
    if (a == b || b == DType::boolean) return a;
    if (a == DType::boolean) return b;
    if (is_float(a) && is_float(b)) return DType::float64;
    if (is_float(a) || is_float(b)) {
        // float32 holds the integers of up to 16 bits exactly.
        const DType real = is_float(a) ? a : b, integer = is_float(a) ? b : a;
        if (theano) return bits_of(integer) <= 16 ? real : DType::float64;
        return real == DType::float32 ? std::optional(real) : std::nullopt;
    }
    if (share_no_integer(a, b)) return theano ? std::optional(DType::float64) : std::nullopt;
    if (is_signed_integer(a) == is_signed_integer(b)) return bits_of(a) > bits_of(b) ? a : b;
    const DType plus_minus = is_signed_integer(a) ? a : b, plus = is_signed_integer(a) ? b : a;
    // One bit more than the unsigned one needs, where there is such a type.
    return bits_of(plus_minus) > bits_of(plus) ? plus_minus : signed_of(2 * bits_of(plus));
}

DType promote_literal(DType literal, DType typed) {
    if (is_float(typed)) return typed;
    if (is_float(literal)) return DType::float32;
    return typed == DType::boolean ? literal : typed;
}

DType smallest_signed(const Array& integer) {
    const auto x = integer.item<std::int64_t>();
    for (const DType dtype : {DType::int8, DType::int16, DType::int32})
        if (integer.as(dtype).item<std::int64_t>() == x) return dtype;
    return DType::int64;
}

}  // namespace bitale
