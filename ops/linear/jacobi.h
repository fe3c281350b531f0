// Eigenvalues and eigenvectors of symmetric matrices by Jacobi's rotations (Golub and Van Loan, Matrix
// Computations, 8.5): slow, accurate, and nothing but the definition. What the oracles compute eigh with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace bitale {

// Eigenvalues in ascending order, and the eigenvectors as the rows of a matrix.
template <class T>
struct EigenSystem {
    std::vector<T> values, vectors;
};

// Whether an eigenvector [n] has the other sign by convention: the first of its largest components is
// positive. Of components that differ by less than a thousandth none is larger, so that rounding does not
// decide.
template <class T>
bool has_other_sign(const T* vector, std::size_t n) {
    T largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(vector[i]));
    for (std::size_t i = 0; i < n; ++i)
        if (std::abs(vector[i]) >= T(0.999) * largest) return vector[i] < 0;
    return false;
}

// Of a row-major matrix [n, n], of which the lower triangle is read. NaN where it is not finite.
template <class T>
EigenSystem<T> jacobi(std::size_t n, const T* matrix) {
    EigenSystem<T> r{std::vector<T>(n), std::vector<T>(n * n)};
    std::vector<T> a(n * n), v(n * n, T(0));
    T largest = 0;
    bool finite = true;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            const T x = matrix[i * n + j];
            finite = finite && std::isfinite(x);
            largest = std::max(largest, std::abs(x));
        }
    if (!finite) {
        std::fill(r.values.begin(), r.values.end(), std::numeric_limits<T>::quiet_NaN());
        std::fill(r.vectors.begin(), r.vectors.end(), std::numeric_limits<T>::quiet_NaN());
        return r;
    }
    const T scale = largest > 0 ? largest : T(1);
    for (std::size_t i = 0; i < n; ++i) {
        v[i * n + i] = 1;
        for (std::size_t j = 0; j <= i; ++j) a[i * n + j] = a[j * n + i] = matrix[i * n + j] / scale;
    }
    // Rows p and q, then columns p and q, such that a[p, q] becomes 0.
    const auto rotate = [&](std::size_t p, std::size_t q) {
        const T half = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const T t = (half < 0 ? T(-1) : T(1)) / (std::abs(half) + std::hypot(half, T(1)));
        const T c = 1 / std::hypot(t, T(1)), s = t * c;
        for (std::vector<T>* m : {&a, &v})
            for (std::size_t k = 0; k < n; ++k) {
                const T x = (*m)[p * n + k], y = (*m)[q * n + k];
                (*m)[p * n + k] = c * x - s * y;
                (*m)[q * n + k] = s * x + c * y;
            }
        for (std::size_t k = 0; k < n; ++k) {
            const T x = a[k * n + p], y = a[k * n + q];
            a[k * n + p] = c * x - s * y;
            a[k * n + q] = s * x + c * y;
        }
        a[p * n + q] = a[q * n + p] = 0;
    };
    constexpr T negligible = std::numeric_limits<T>::epsilon() / 8;
    constexpr int most_sweeps = 100;  // ten are enough; the last ones change nothing that could be seen
    bool changed = true;
    for (int sweep = 0; changed && sweep < most_sweeps; ++sweep) {
        changed = false;
        for (std::size_t p = 0; p < n; ++p)
            for (std::size_t q = p + 1; q < n; ++q)
                if (std::abs(a[p * n + q]) > negligible) {
                    rotate(p, q);
                    changed = true;
                }
    }
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return a[x * n + x] < a[y * n + y]; });
    for (std::size_t i = 0; i < n; ++i) {
        const T* from = v.data() + order[i] * n;
        const T sign = has_other_sign(from, n) ? T(-1) : T(1);
        r.values[i] = a[order[i] * n + order[i]] * scale;
        for (std::size_t k = 0; k < n; ++k) r.vectors[i * n + k] = sign * from[k];
    }
    return r;
}

}  // namespace bitale
