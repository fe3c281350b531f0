// The wide oracle: evaluates a graph in long double, nothing rounded to dtypes on the way, and tells with
// each element how far a device that computes in the dtypes may be from it. It knows no op but the scalar
// functions of the table: composites are decomposed, everything else is its nest. So it shares nothing with
// the typed oracle, and knows nothing of the rules that stabilise: long double has the range (exp(-11000) is
// no 0) that they save.
//
// Error bounds are running ones: each operation adds the rounding of its dtype, a sum of n terms about
// sqrt(n) roundings of the sum of magnitudes, or, where terms are alike and roundings go one way, what the
// plain loop in the dtype is off, and what operands may be off is passed on through the function
// itself. So a sum that cancels has the bound of its summands, and what depends on a decision that rounding
// can turn (a comparison of nearly equal numbers, the position of a maximum) has an infinite one.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "ops/oracle/leaves.h"

namespace bitale {

inline constexpr long double wide_infinity = std::numeric_limits<long double>::infinity();

struct WideValue {
    DType dtype = DType::float32;
    Dims shape;
    std::vector<long double> values;
    std::vector<long double> errors;  // as many, or none where all are exact

    long double error(std::size_t i) const { return errors.empty() ? 0 : errors[i]; }
    Array rounded() const;  // in the dtype
};
using WidePtr = std::shared_ptr<const WideValue>;

// As evaluate() in typed.h.
std::vector<WidePtr> evaluate_wide(const Nodes& roots, const LeafValues& leaves);
std::vector<Array> rounded(const std::vector<WidePtr>& values);

}  // namespace bitale
