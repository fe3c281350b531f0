#include "ops/oracle/wide_eigh.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/linear/jacobi.h"
#include "ops/oracle/wide_scalar.h"

namespace bitale {

namespace {

// Whether rounding may turn the sign of an eigenvector whose components may be off by `error`.
bool sign_is_open(const long double* vector, std::size_t n, long double error) {
    long double largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(vector[i]));
    const long double least = 0.999L * largest;
    for (std::size_t i = 0; i < n; ++i) {
        const long double size = std::abs(vector[i]);
        if (size >= least - 3 * error && vector[i] < 0) return true;
        if (size >= least + 3 * error) return false;  // it decides, and is positive
    }
    return true;
}

}  // namespace

WideValue wide_eigh(const WideValue& a) {
    WideValue r;
    r.dtype = a.dtype;
    r.shape = a.shape;
    const auto n = static_cast<std::size_t>(a.shape.back());
    r.shape[r.shape.size() - 2] = a.shape.back() + 1;
    const std::size_t matrices = n == 0 ? 0 : a.values.size() / (n * n);
    const long double unit = rounding_of(a.dtype).unit;
    for (std::size_t m = 0; m < matrices; ++m) {
        const long double* matrix = a.values.data() + m * n * n;
        long double size = 0, off = 0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const long double x = matrix[i * n + j], e = a.error(m * n * n + i * n + j);
                size += (i == j ? 1 : 2) * x * x;
                off += (i == j ? 1 : 2) * e * e;
            }
        const long double error = std::sqrt(off) + 8 * unit * std::sqrt(size);
        const EigenSystem<long double> system = jacobi(n, matrix);
        r.values.insert(r.values.end(), system.values.begin(), system.values.end());
        r.values.insert(r.values.end(), system.vectors.begin(), system.vectors.end());
        r.errors.insert(r.errors.end(), n, error);
        for (std::size_t i = 0; i < n; ++i) {
            long double gap = wide_infinity;
            if (i > 0) gap = std::min(gap, system.values[i] - system.values[i - 1]);
            if (i + 1 < n) gap = std::min(gap, system.values[i + 1] - system.values[i]);
            long double of_vector = 2 * error / gap + 8 * unit;
            if (!(gap > 8 * error) || sign_is_open(system.vectors.data() + i * n, n, of_vector))
                of_vector = wide_infinity;
            r.errors.insert(r.errors.end(), n, of_vector);
        }
    }
    return r;
}

}  // namespace bitale
