// Matrix products by a routine of our own: of float64, and of float32 where oneDNN is absent or slow.
#pragma once

#include <cstdint>

namespace bitale {

// Element (i, j) is at[i * row + j * column].
template <class T>
struct StridedMatrix {
    T* at = nullptr;
    std::int64_t row = 0, column = 0;
};

// Elements of memory that a call works in, or one for a smaller product.
std::int64_t product_room(std::int64_t m, std::int64_t n, std::int64_t k);

// c[m, n] = alpha * a[m, k] . b[k, n] + beta * c, in one thread; c, whose columns are side by side, is not
// read where beta is 0. Blocks of 256 terms are summed with one rounding per term on processors that have
// such an instruction, and the sums of the blocks are added in order: an element has the same bits whatever
// m, n, the strides and the other elements are. Registers of the processor that are wider than `most_bytes`
// are not used.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, StridedMatrix<const float> a,
              StridedMatrix<const float> b, float beta, StridedMatrix<float> c, float* room,
              int most_bytes = 64);
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, StridedMatrix<const double> a,
              StridedMatrix<const double> b, double beta, StridedMatrix<double> c, double* room,
              int most_bytes = 64);

}  // namespace bitale
