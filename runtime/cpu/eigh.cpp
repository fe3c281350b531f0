#include "runtime/cpu/eigh.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "graph/base/check.h"
#include "ops/linear/jacobi.h"
#include "runtime/cpu/eigensystem.h"
#include "runtime/outside.h"

namespace bitale {

namespace {

// What the library says of itself, in parentheses; empty where it says nothing.
std::string version_of(void* handle) {
    if (const auto config = reinterpret_cast<const char* (*)()>(dlsym(handle, "openblas_get_config")))
        return " (" + std::string(config()) + ")";
    if (const auto version =
            reinterpret_cast<void (*)(char*, int)>(dlsym(handle, "mkl_get_version_string"))) {
        char text[200] = {};
        version(text, sizeof text - 1);
        return " (" + std::string(text) + ")";
    }
    return "";
}

// Eigenvalues and eigenvectors of one matrix [n, n], whose result is [n + 1, n].
template <class T>
class OneMatrix {
  public:
    OneMatrix(Pool& pool, std::int64_t n, const T* a, T* result, T* workspace)
        : pool_(pool), n_(n), a_(a), values_(result), vectors_(result + n), workspace_(workspace) {}

    bool run(const Lapack* lapack) {
        if (!measure()) {
            std::fill(values_, vectors_ + n_ * n_, std::numeric_limits<T>::quiet_NaN());
            return true;
        }
        copy();
        if (!lapack || !by_library(*lapack)) {
            if (lapack) copy();
            if (!eigensystem(pool_, n_, vectors_, values_, vectors_, workspace_)) return false;
        }
        for (std::int64_t i = 0; i < n_; ++i) values_[i] = std::ldexp(values_[i], exponent_);
        pool_.run(n_, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                T* const vector = vectors_ + i * n_;
                if (has_other_sign(vector, static_cast<std::size_t>(n_)))
                    for (std::int64_t k = 0; k < n_; ++k) vector[k] = -vector[k];
            }
        });
        return true;
    }

  private:
    // Whether all that is read is finite; and the power of two that the largest element needs.
    bool measure() {
        T largest = 0;
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = 0; j <= i; ++j) {
                const T x = std::abs(a_[i * n_ + j]);
                if (!(x <= std::numeric_limits<T>::max())) return false;
                largest = std::max(largest, x);
            }
        std::frexp(largest, &exponent_);
        return true;
    }

    // Scaled, to where the vectors will be: no square of an element is then too large, or too small to
    // matter.
    void copy() {
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = 0; j <= i; ++j)
                vectors_[i * n_ + j] = vectors_[j * n_ + i] = std::ldexp(a_[i * n_ + j], -exponent_);
    }

    // Fortran's columns are our rows, and its upper triangle our lower one.
    bool by_library(const Lapack& lapack) {
        constexpr std::int64_t most = 32'000;  // the workspace is counted in 32 bits
        if (n_ > most || outside::refused(outside::Door::library)) return false;
        const auto n = static_cast<std::int32_t>(n_);
        const std::int32_t count = 1 + 6 * n + 2 * n * n, integer_count = 3 + 5 * n;
        std::int32_t info = 0;
        auto* const integers = reinterpret_cast<std::int32_t*>(workspace_ + count);
        if constexpr (std::is_same_v<T, float>)
            lapack.ssyevd("V", "U", &n, vectors_, &n, values_, workspace_, &count, integers, &integer_count,
                          &info, 1, 1);
        else
            lapack.dsyevd("V", "U", &n, vectors_, &n, values_, workspace_, &count, integers, &integer_count,
                          &info, 1, 1);
        return info == 0;
    }

    Pool& pool_;
    const std::int64_t n_;
    const T* const a_;
    T *const values_, *const vectors_, *const workspace_;
    int exponent_ = 0;
};

template <class T>
bool eigh_of(Pool& pool, const RoutineShape& shape, const void* a, void* result, void* workspace,
             const Lapack& lapack) {
    const std::int64_t matrices = shape.sizes[0], n = shape.sizes[1];
    if (n == 0) return true;
    constexpr std::int64_t aligned = 16;
    const std::int64_t room = (eigensystem_workspace<T>(n) + aligned - 1) / aligned * aligned;
    std::atomic<bool> all{true};
    pool.run(matrices, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t k = first; k < last; ++k) {
            OneMatrix<T> matrix(pool, n, static_cast<const T*>(a) + k * n * n,
                                static_cast<T*>(result) + k * (n + 1) * n,
                                static_cast<T*>(workspace) + k * room);
            if (!matrix.run(shape.by_library ? &lapack : nullptr)) all = false;
        }
    });
    return all;
}

}  // namespace

Lapack open_lapack(const std::vector<std::string>& files) {
    Lapack r;
    std::string tried;
    for (const std::string& file : files) {
        std::string problem = file;
        void* handle = outside::load_library(file, RTLD_NOW | RTLD_LOCAL, &problem);
        if (!handle) {
            if (tried.empty()) tried = problem;
            continue;
        }
        r.ssyevd = reinterpret_cast<Syevd<float>>(dlsym(handle, "ssyevd_"));
        r.dsyevd = reinterpret_cast<Syevd<double>>(dlsym(handle, "dsyevd_"));
        if (r.ssyevd && r.dsyevd) {
            r.present = true;
            r.name = file + version_of(handle);
            return r;
        }
        tried += (tried.empty() ? "" : "; ") + file + " has no ssyevd_ and dsyevd_";
    }
    r.name = tried;
    return r;
}

const Lapack& lapack_library() {
    static const Lapack& opened =
        *new Lapack(open_lapack({"libopenblas.so.0", "libmkl_rt.so.2", "libmkl_rt.so.1"}));
    return opened;
}

bool eigh(Pool& pool, const RoutineShape& shape, const void* a, void* result, void* workspace,
          const Lapack& lapack) {
    BITALE_CHECK(!shape.by_library || (lapack.present && shape.sizes[0] == 1),
                 "a library that is not there is to compute eigenvalues");
    return shape.dtype == DType::float32 ? eigh_of<float>(pool, shape, a, result, workspace, lapack)
                                         : eigh_of<double>(pool, shape, a, result, workspace, lapack);
}

}  // namespace bitale
