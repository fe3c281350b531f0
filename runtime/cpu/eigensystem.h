// Eigenvalues and eigenvectors of symmetric matrices without a library: Householder's reflections to
// tridiagonal form, then QL iterations with implicit shifts (Golub and Van Loan, Matrix Computations, 8.3).
#pragma once

#include <cstdint>

#include "runtime/cpu/pool.h"

namespace bitale {

// Elements of T that one matrix of order n needs while it is decomposed, from a place aligned to 64 bytes.
template <class T>
constexpr std::int64_t eigensystem_workspace(std::int64_t n) {
    return n * n + 4 * n + 2 * n * static_cast<std::int64_t>(sizeof(double) / sizeof(T)) + 15;
}

// Of a symmetric row-major matrix [n, n], of which the lower triangle is read, all finite and at most 1:
// `values` get the eigenvalues in ascending order, the rows of `vectors` the eigenvectors, each of length 1.
// The order of every sum is fixed by n, so the bits depend neither on the threads nor on the processor. False
// where the iterations do not end, which no matrix is known for.
template <class T>
bool eigensystem(Pool& pool, std::int64_t n, const T* matrix, T* values, T* vectors, T* workspace);

extern template bool eigensystem(Pool&, std::int64_t, const float*, float*, float*, float*);
extern template bool eigensystem(Pool&, std::int64_t, const double*, double*, double*, double*);

}  // namespace bitale
