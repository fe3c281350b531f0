// What several files of this folder share: endings of checkpoints, and what loops in float64 keep of a number
// that an optimizer changes.
#pragma once

#include <string>
#include <vector>

#include "bitale/bitale.h"

namespace bitale::test {

inline const std::vector<std::string> endings{".npz", ".safetensors"};

inline constexpr double rate = 0.05;

// One number of a parameter with what its optimizer remembers, and whether it belongs to a matrix.
struct Cell {
    double p = 0, a = 0, b = 0, c = 0;
    bool of_matrix = false;
};

inline std::vector<double> numbers_of(const Array& a) { return a.to_vector<double>(); }

inline Updates& operator+=(Updates& a, const Updates& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace bitale::test
