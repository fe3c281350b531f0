// Householder's reflections and QL iterations. Everything that takes n^3 steps runs along rows in vectors of
// 64 bytes, whatever the processor has: the text of a loop is compiled for several widths (`loops_for`).
#include "runtime/cpu/eigensystem.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/cpu/features.h"

namespace bitale {

namespace {

constexpr std::int64_t vector_bytes = 64;
template <class T>
constexpr std::int64_t lanes = vector_bytes / static_cast<std::int64_t>(sizeof(T));

template <class T>
struct VectorOf {
    using type [[gnu::vector_size(vector_bytes)]] = T;
};
template <class T>
using Vector = typename VectorOf<T>::type;

// Anywhere in memory. A vector type of smaller alignment would do for g++; clang forgets it in templates.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
    Vector<T> v;
};

#define BITALE_INLINE [[gnu::always_inline]] inline

template <class T>
BITALE_INLINE Unaligned<T>& vector_at(T* x, std::int64_t i) {
    return *reinterpret_cast<Unaligned<T>*>(x + i);
}
template <class T>
BITALE_INLINE const Unaligned<T>& vector_at(const T* x, std::int64_t i) {
    return *reinterpret_cast<const Unaligned<T>*>(x + i);
}

template <class T>
BITALE_INLINE T sum_of(const Vector<T>& v) {
    T sum = 0;
    for (std::int64_t k = 0; k < lanes<T>; ++k) sum += v[k];
    return sum;
}

// A row less the two multiples of others (null: as it is), times `by`, over n elements.
template <class T>
struct RowStep {
    T* row;
    const T *first, *second, *by;
    T of_first, of_second;
    std::int64_t n;
};

template <class T>
BITALE_INLINE T update_and_multiply(const RowStep<T>& s) {
    Vector<T> sums[2] = {};
    std::int64_t i = 0;
    T rest = 0;
    if (s.first) {
        for (; i + 2 * lanes<T> <= s.n; i += 2 * lanes<T>)
            for (std::int64_t k = 0; k < 2; ++k) {
                const std::int64_t at = i + k * lanes<T>;
                const Vector<T> x = vector_at(s.row, at).v - (s.of_first * vector_at(s.first, at).v +
                                                              s.of_second * vector_at(s.second, at).v);
                vector_at(s.row, at).v = x;
                sums[k] += x * vector_at(s.by, at).v;
            }
        for (; i < s.n; ++i) {
            s.row[i] -= s.of_first * s.first[i] + s.of_second * s.second[i];
            rest += s.row[i] * s.by[i];
        }
    } else {
        for (; i + 2 * lanes<T> <= s.n; i += 2 * lanes<T>)
            for (std::int64_t k = 0; k < 2; ++k)
                sums[k] += vector_at(s.row, i + k * lanes<T>).v * vector_at(s.by, i + k * lanes<T>).v;
        for (; i < s.n; ++i) rest += s.row[i] * s.by[i];
    }
    return sum_of<T>(sums[0] + sums[1]) + rest;
}

// A row reflected by I - factor v v^T.
template <class T>
BITALE_INLINE void reflect(T* row, const T* v, T factor, std::int64_t n) {
    const T scale = factor * update_and_multiply<T>({row, nullptr, nullptr, v, 0, 0, n});
    std::int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) vector_at(row, i).v -= scale * vector_at(v, i).v;
    for (; i < n; ++i) row[i] -= scale * v[i];
}

template <class T>
struct Rotation {
    T cosine, sine;
};
// Rotations of neighbouring rows: last - 1 with last, and so on down to first with first + 1.
template <class T>
struct Sweep {
    const Rotation<T>* rotations;
    std::int64_t first, last;
};

// Of `width` columns, which are whole vectors.
template <class T, int vectors>
BITALE_INLINE void rotate(T* columns, std::int64_t stride, const Sweep<T>& sweep) {
    Vector<T> upper[vectors];
    T* row = columns + sweep.last * stride;
    for (int k = 0; k < vectors; ++k) upper[k] = vector_at(row, k * lanes<T>).v;
    const Rotation<T>* r = sweep.rotations;
    for (std::int64_t i = sweep.last - 1; i >= sweep.first; --i, ++r) {
        T* const lower = row - stride;
        for (int k = 0; k < vectors; ++k) {
            const Vector<T> x = vector_at(lower, k * lanes<T>).v;
            vector_at(row, k * lanes<T>).v = r->sine * x + r->cosine * upper[k];
            upper[k] = r->cosine * x - r->sine * upper[k];
        }
        row = lower;
    }
    for (int k = 0; k < vectors; ++k) vector_at(row, k * lanes<T>).v = upper[k];
}

template <class T>
BITALE_INLINE void rotate_column(T* column, std::int64_t stride, const Sweep<T>& sweep) {
    const Rotation<T>* r = sweep.rotations;
    for (std::int64_t i = sweep.last - 1; i >= sweep.first; --i, ++r) {
        T &x = column[i * stride], &upper = column[(i + 1) * stride];
        const T old = upper;
        upper = r->sine * x + r->cosine * old;
        x = r->cosine * x - r->sine * old;
    }
}

constexpr int strip_vectors = 4;

template <class T>
BITALE_INLINE void rotate_strip(T* columns, std::int64_t stride, std::int64_t width, const Sweep<T>* sweeps,
                                std::int64_t count) {
    for (std::int64_t s = 0; s < count; ++s) {
        std::int64_t i = 0;
        if (width == strip_vectors * lanes<T>) {
            rotate<T, strip_vectors>(columns, stride, sweeps[s]);
            continue;
        }
        for (; i + lanes<T> <= width; i += lanes<T>) rotate<T, 1>(columns + i, stride, sweeps[s]);
        for (; i < width; ++i) rotate_column<T>(columns + i, stride, sweeps[s]);
    }
}

template <class T>
struct Loops {
    T (*update_and_multiply)(const RowStep<T>&);
    void (*reflect)(T*, const T*, T, std::int64_t);
    void (*rotate_strip)(T*, std::int64_t, std::int64_t, const Sweep<T>*, std::int64_t);
};

#define BITALE_LOOPS(NAME, ...)                                                                \
    template <class T>                                                                         \
    struct NAME {                                                                              \
        __VA_ARGS__ static T update(const RowStep<T>& s) { return update_and_multiply<T>(s); } \
        __VA_ARGS__ static void reflected(T* row, const T* v, T factor, std::int64_t n) {      \
            reflect<T>(row, v, factor, n);                                                     \
        }                                                                                      \
        __VA_ARGS__ static void rotated(T* columns, std::int64_t stride, std::int64_t width,   \
                                        const Sweep<T>* sweeps, std::int64_t count) {          \
            rotate_strip<T>(columns, stride, width, sweeps, count);                            \
        }                                                                                      \
        static constexpr Loops<T> loops{update, reflected, rotated};                           \
    };
BITALE_LOOPS(AnyLoops)
#ifdef __x86_64__
BITALE_LOOPS(Avx2Loops, [[gnu::target("avx2")]])
BITALE_LOOPS(Avx512Loops, [[gnu::target("avx512f")]])
#endif
#undef BITALE_LOOPS

template <class T>
const Loops<T>& loops_for(int bytes) {
#ifdef __x86_64__
    if (bytes >= 64) return Avx512Loops<T>::loops;
    if (bytes >= 32) return Avx2Loops<T>::loops;
#endif
    static_cast<void>(bytes);
    return AnyLoops<T>::loops;
}

constexpr std::int64_t aligned(std::int64_t elements) { return (elements + 15) / 16 * 16; }

template <class T>
class Decomposition {
  public:
    Decomposition(Pool& pool, std::int64_t n, T* values, T* vectors, T* workspace)
        : pool_(pool),
          loops_(loops_for<T>(target_features().vector_bytes)),
          n_(n),
          values_(values),
          vectors_(vectors),
          diagonal_(reinterpret_cast<double*>(workspace)),
          beside_(diagonal_ + n),
          factors_(reinterpret_cast<T*>(beside_ + n)),
          product_(factors_ + n),
          pending_{product_ + n, product_ + 2 * n},
          a_(workspace + aligned(4 * n + 2 * n * static_cast<std::int64_t>(sizeof(double) / sizeof(T)))) {}

    bool run(const T* matrix) {
        for (std::int64_t i = 0; i < n_; ++i)
            for (std::int64_t j = 0; j <= i; ++j) row(i)[j] = row(j)[i] = matrix[i * n_ + j];
        make_tridiagonal();
        collect_reflections();
        // Rotations go through a strip of columns at a time. As they lie in the matrix its rows may share a
        // few sets of the caches, so strips are stored one after another meanwhile.
        copy_strips([](T* strip, T* matrix, std::int64_t width) { std::copy_n(matrix, width, strip); });
        if (!iterate()) return false;
        copy_strips([](T* strip, T* matrix, std::int64_t width) { std::copy_n(strip, width, matrix); });
        order();
        return true;
    }

  private:
    T* row(std::int64_t i) const { return a_ + i * n_; }
    T* vector(std::int64_t i) const { return vectors_ + i * n_; }

    // Step k makes zeros of column k below the element beside the diagonal, by a reflection whose vector
    // takes their place. The rest of the matrix is A - v w^T - w v^T then, of which the next step makes each
    // row right before it multiplies it, so that the matrix passes through the caches once a step.
    void make_tridiagonal() {
        for (std::int64_t k = 0; k < n_; ++k) {
            const T *v = k > 0 ? row(k - 1) : nullptr, *w = pending_[(k + 1) % 2];
            T* const own = row(k);
            const bool reflected = k > 0 && factors_[k - 1] != 0;
            if (reflected)
                for (std::int64_t j = k; j < n_; ++j) own[j] -= v[k] * w[j] + w[k] * v[j];
            diagonal_[k] = static_cast<double>(own[k]);
            factors_[k] = 0;
            beside_[k] = k + 1 < n_ ? static_cast<double>(own[k + 1]) : 0;
            if (k + 1 < n_) factors_[k] = make_reflection(own + k + 1, n_ - k - 1, beside_[k]);
            const T factor = factors_[k];
            if (factor == 0 && !reflected) continue;
            const std::int64_t first = k + 1, count = n_ - first;
            for_rows(first, count, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i)
                    product_[i] = factor * loops_.update_and_multiply(
                                               {row(i) + first, reflected ? w + first : nullptr,
                                                reflected ? v + first : nullptr, own + first,
                                                reflected ? v[i] : T(0), reflected ? w[i] : T(0), count});
            });
            T* const next = pending_[k % 2];
            double along = 0;
            for (std::int64_t i = first; i < n_; ++i) along += static_cast<double>(product_[i] * own[i]);
            const T half = static_cast<T>(0.5 * along) * factor;
            for (std::int64_t i = first; i < n_; ++i) next[i] = product_[i] - half * own[i];
        }
    }

    // Turns x into v, its first element 1, such that (I - factor v v^T) x = (beta, 0, 0, ...).
    static T make_reflection(T* x, std::int64_t n, double& beta) {
        double rest = 0;
        for (std::int64_t i = 1; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        if (rest == 0) return 0;
        const auto alpha = static_cast<double>(x[0]);
        beta = -std::copysign(std::sqrt(alpha * alpha + rest), alpha);
        const double scale = 1 / (alpha - beta);
        for (std::int64_t i = 1; i < n; ++i) x[i] = static_cast<T>(static_cast<double>(x[i]) * scale);
        x[0] = 1;
        return static_cast<T>((beta - alpha) / beta);
    }

    // The transpose of the product of all reflections, each row by itself.
    void collect_reflections() {
        for_rows(0, n_, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                std::fill_n(vector(i), n_, T(0));
                vector(i)[i] = 1;
            }
            for (std::int64_t k = last - 2; k >= 0; --k)
                for (std::int64_t i = std::max(first, k + 1); i < last && factors_[k] != 0; ++i)
                    loops_.reflect(vector(i) + k + 1, row(k) + k + 1, factors_[k], n_ - k - 1);
        });
    }

    // Eigenvalue by eigenvalue. Rotations are written down, and carried out for many sweeps at once.
    bool iterate() {
        constexpr int most_sweeps = 64;
        constexpr double epsilon = 0.5 * static_cast<double>(std::numeric_limits<T>::epsilon());
        std::int64_t left = 30 * n_ + 60;
        auto* const all = reinterpret_cast<Rotation<T>*>(vectors_);  // the strips are in a_
        const std::int64_t room = n_ * n_ / 2;
        Sweep<T> sweeps[most_sweeps];
        std::int64_t count = 0, used = 0;
        for (std::int64_t l = 0; l < n_; ++l)
            for (;;) {
                std::int64_t m = l;
                while (m + 1 < n_ &&
                       std::abs(beside_[m]) > epsilon * (std::abs(diagonal_[m]) + std::abs(diagonal_[m + 1])))
                    ++m;
                if (m == l) break;
                if (left-- == 0) return false;
                if (count == most_sweeps || used + m - l > room) {
                    rotate_vectors(sweeps, count);
                    count = used = 0;
                }
                const std::int64_t first = sweep(l, m, all + used);
                if (first < m) sweeps[count++] = {all + used, first, m};
                used += m - first;
            }
        rotate_vectors(sweeps, count);
        return true;
    }

    // One QL sweep over the block l .. m; the place of its last rotation.
    std::int64_t sweep(std::int64_t l, std::int64_t m, Rotation<T>* rotations) {
        double* const d = diagonal_;
        double* const e = beside_;
        double g = (d[l + 1] - d[l]) / (2 * e[l]);
        g = d[m] - d[l] + e[l] / (g + std::copysign(std::sqrt(g * g + 1), g));
        double sine = 1, cosine = 1, moved = 0;
        for (std::int64_t i = m - 1; i >= l; --i) {
            const double f = sine * e[i], b = cosine * e[i];
            const double length = std::sqrt(f * f + g * g);
            e[i + 1] = length;
            if (length == 0) {  // the block falls into two
                d[i + 1] -= moved;
                e[m] = 0;
                return i + 1;
            }
            sine = f / length;
            cosine = g / length;
            g = d[i + 1] - moved;
            const double h = (d[i] - g) * sine + 2 * cosine * b;
            moved = sine * h;
            d[i + 1] = g + moved;
            g = cosine * h - b;
            *rotations++ = {static_cast<T>(cosine), static_cast<T>(sine)};
        }
        d[l] -= moved;
        e[l] = g;
        e[m] = 0;
        return l;
    }

    // f(strip, its first column, its width) of each.
    template <class F>
    void for_strips(const F& f) {
        constexpr std::int64_t most = strip_vectors * lanes<T>;
        pool_.run((n_ + most - 1) / most, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t column = begin * most; column < std::min(n_, end * most); column += most)
                f(a_ + column * n_, column, std::min(most, n_ - column));
        });
    }

    // f(row in the strip, row in the matrix, width) of each row.
    template <class F>
    void copy_strips(const F& f) {
        for_strips([&](T* strip, std::int64_t column, std::int64_t width) {
            for (std::int64_t i = 0; i < n_; ++i) f(strip + i * width, vector(i) + column, width);
        });
    }

    void rotate_vectors(const Sweep<T>* sweeps, std::int64_t count) {
        for_strips([&](T* strip, std::int64_t, std::int64_t width) {
            loops_.rotate_strip(strip, width, width, sweeps, count);
        });
    }

    void order() {
        for (std::int64_t i = 0; i < n_; ++i) {
            std::int64_t least = i;
            for (std::int64_t j = i + 1; j < n_; ++j)
                if (diagonal_[j] < diagonal_[least]) least = j;
            values_[i] = static_cast<T>(diagonal_[least]);
            if (least == i) continue;
            std::swap(diagonal_[i], diagonal_[least]);
            std::swap_ranges(vector(i), vector(i) + n_, vector(least));
        }
    }

    // Rows that take a thread some microseconds.
    static std::int64_t rows_of_task(std::int64_t length) {
        constexpr std::int64_t fewest = 16, elements = 1 << 15;
        return std::max(fewest, elements / std::max<std::int64_t>(length, 1));
    }
    template <class F>
    void for_rows(std::int64_t first, std::int64_t length, const F& f) {
        const std::int64_t rows = rows_of_task(length);
        pool_.run((n_ - first + rows - 1) / rows, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t task = begin; task < end; ++task)
                f(first + task * rows, std::min(n_, first + (task + 1) * rows));
        });
    }

    Pool& pool_;
    const Loops<T>& loops_;
    const std::int64_t n_;
    T *const values_, *const vectors_;
    double *const diagonal_, *const beside_;  // of the tridiagonal matrix
    T *const factors_, *const product_;       // of the reflections; of the matrix and a reflection's vector
    T* const pending_[2];                     // w of the last two steps
    T* const a_;
};

}  // namespace

template <class T>
bool eigensystem(Pool& pool, std::int64_t n, const T* matrix, T* values, T* vectors, T* workspace) {
    return Decomposition<T>(pool, n, values, vectors, workspace).run(matrix);
}

template bool eigensystem(Pool&, std::int64_t, const float*, float*, float*, float*);
template bool eigensystem(Pool&, std::int64_t, const double*, double*, double*, double*);

}  // namespace bitale
