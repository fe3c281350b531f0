// Scalar arithmetic of the wide oracle, many points at a time.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

// Of many points: values, and how far each may be off; no errors where all are exact.
struct Column {
    std::vector<long double> values, errors;
    long double error(std::size_t i) const { return errors.empty() ? 0 : errors[i]; }
};

// Half the distance between neighbours of 1, the smallest number, the largest; of floats.
struct Rounding {
    long double unit = 0, least = 0, most = 0;
};
Rounding rounding_of(DType dtype);

// The value in the dtype, as cast does it.
long double wrapped_to(DType to, DType from, long double x);

// One call of a table's function for every point. Applications to integers alone are those of the typed
// oracle.
class WideScalars {
  public:
    Column apply(const ScalarNode& s, const std::vector<const Column*>& arguments, std::size_t count);
    static Column cast(DType to, DType from, const Column& x);

  private:
    Column of_integers(const ScalarNode& s, const std::vector<const Column*>& arguments, std::size_t count);

    std::map<std::pair<const Op*, std::pair<DType, std::size_t>>, NodePtr> nodes_;
};

}  // namespace bitale
