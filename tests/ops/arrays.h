// Arrays and their numbers, short to write.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "tests/support/gradient_check.h"

namespace bitale::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline const std::vector<DType> all_dtypes = {boolean, int8,   int16,   int32,    int64,   uint8,  uint16,
                                              uint32,  uint64, float16, bfloat16, float32, float64};

inline Array floats(std::vector<float> v, Dims shape) { return Array(v, std::move(shape)); }
inline Array doubles(std::vector<double> v, Dims shape) { return Array(v, std::move(shape)); }

inline std::vector<double> numbers(const Array& x) { return x.to_vector<double>(); }
// Those of y where x has the value.
inline std::vector<double> numbers(const Expr& y, const Expr& x, const Array& value) {
    return numbers(evaluated(y, {x}, {value}));
}

// The composite's own evaluation against that of its parts.
inline void require_decomposes(const Expr& y, const std::vector<Expr>& inputs,
                               const std::vector<Array>& values) {
    const Array whole = evaluated(y, inputs, values);
    const Array parts = evaluated(wrap(y.node()->op->decompose(y.node())), inputs, values);
    REQUIRE(whole.shape() == parts.shape());
    for (std::int64_t i = 0; i < whole.size(); ++i) CHECK(whole.at(i) == Approx(parts.at(i)).margin(1e-12));
}

}  // namespace bitale::test
