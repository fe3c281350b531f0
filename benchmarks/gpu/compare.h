// What two devices computed from the same values, held against each other.
#pragma once

#include <bitale/bitale.h>

#include <vector>

#include "gpu/record.h"

namespace bench {

struct Difference {
    double largest = 0;   // |got - expected| of any element, of the largest magnitude that is expected
    double rms = 0;       // of all differences, of the root mean square that is expected
    bool same = false;    // every byte
    std::int64_t at = 0;  // where the largest one is
    double got = 0, expected = 0;
    std::int64_t not_numbers = 0;  // elements that are NaN or infinite on one device only
};
// Throws std::runtime_error for different shapes.
Difference difference(const bitale::Array& got, const bitale::Array& expected);
Json json_of(const Difference& d);

}  // namespace bench
