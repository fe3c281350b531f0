#include "ops/elementwise/promotion.h"

namespace bitale {

namespace {

DType signed_of(int bits) {
    return bits <= 8 ? DType::int8 : bits <= 16 ? DType::int16 : bits <= 32 ? DType::int32 : DType::int64;
}

}  // namespace

std::optional<DType> promote(DType a, DType b) {
    if (is_half(a) || is_half(b)) return std::nullopt;
    if (a == b || b == DType::boolean) return a;
    if (a == DType::boolean) return b;
    if (is_float(a) && is_float(b)) return DType::float64;
    if (is_float(a) || is_float(b)) {
        if (a == DType::float32 || b == DType::float32) return DType::float32;
        return std::nullopt;
    }
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

}  // namespace bitale
