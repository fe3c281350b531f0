// Matrix products by oneDNN, opened at run time and called single-threaded on slices of our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cpu/pool.h"
#include "runtime/exec/launcher.h"

namespace bitale {

struct GemmLibrary {
    bool present = false;
    std::string name;  // "libdnnl.so.3 (oneDNN 3.7.1)", or why there is none
};
// Tries to open the library at the first call.
const GemmLibrary& gemm_library();

// How a product is cut: into parts of the depth, whose results are added in order, and each of them into a
// grid of slices of so many rows and columns of c, row by row of the grid. By the shape alone, so that the
// bits do not depend on the number of threads.
struct GemmSlices {
    std::int64_t rows = 0, columns = 0, depth = 0;           // of a slice; the last ones may be smaller
    std::int64_t of_rows = 0, of_columns = 0, of_depth = 0;  // how many there are
    std::int64_t count() const { return of_depth * of_rows * of_columns; }
};
GemmSlices slices_of(const GemmShape& shape);

// c[m, n] = a[m, k] . b[k, n], float32, row-major, no padding between rows; a transposed operand is stored
// [k, m] resp. [n, k]; then the bias (else null) and relu that the shape asks for. Needs
// gemm_library().present. `parts` is memory for results of parts of the depth, which grows when needed.
// Throws DeviceError when the library refuses.
void gemm(Pool& pool, const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
          std::vector<float>& parts);

}  // namespace bitale
