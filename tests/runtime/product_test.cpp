// The routine of our own for matrix products: against plain loops in long double, at every width of
// registers.
#include "runtime/cpu/product.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "runtime/cpu/gemm.h"
#include "runtime/cpu/pool.h"
#include "tests/runtime/numbers.h"
#include "tests/support/catch.h"

using namespace bitale;
using bitale::test::numbers;

namespace {

// How a matrix lies: by rows, by columns, with gaps between rows, every third element, backwards.
enum class Form { rows, columns, gaps, apart, backwards };

template <class T>
struct LaidOut {
    std::vector<T> memory;
    StridedMatrix<const T> matrix;

    LaidOut(std::int64_t rows, std::int64_t columns, Form form, std::uint32_t seed) {
        const std::int64_t gap = form == Form::gaps ? 5 : 0, step = form == Form::apart ? 3 : 1;
        const std::int64_t row = form == Form::columns ? 1 : (columns + gap) * step,
                           column = form == Form::columns ? rows : step;
        const std::int64_t most = (rows - 1) * row + (columns - 1) * column;
        memory = numbers<T>(most + 1, seed);
        matrix = form == Form::backwards ? StridedMatrix<const T>{memory.data() + most, -row, -column}
                                         : StridedMatrix<const T>{memory.data(), row, column};
    }
    T at(std::int64_t i, std::int64_t j) const { return matrix.at[i * matrix.row + j * matrix.column]; }
};

template <class T>
struct Multiplied {
    std::vector<T> memory;
    std::int64_t row;
};

template <class T>
Multiplied<T> multiplied(std::int64_t m, std::int64_t n, std::int64_t k, const LaidOut<T>& a,
                         const LaidOut<T>& b, T alpha, T beta, T old, int bytes) {
    Multiplied<T> c{std::vector<T>(static_cast<std::size_t>(m * (n + 3)), old), n + 3};
    std::vector<T> room(static_cast<std::size_t>(product_room(m, n, k)));
    multiply(m, n, k, alpha, a.matrix, b.matrix, beta, StridedMatrix<T>{c.memory.data(), c.row, 1},
             room.data(), bytes);
    return c;
}

template <class T>
void check_all() {
    struct Sizes {
        std::int64_t m, n, k;
    };
    constexpr Form forms[] = {Form::rows, Form::columns, Form::gaps, Form::apart, Form::backwards};
    const double unit = std::numeric_limits<T>::epsilon();
    int which = 0;
    for (const Sizes& z : {Sizes{1, 1, 1}, Sizes{6, 16, 3}, Sizes{7, 17, 257}, Sizes{100, 270, 5},
                           Sizes{113, 9, 300}, Sizes{2, 300, 256}, Sizes{13, 33, 520}})
        for (const Form form_a : forms)
            for (const Form form_b : forms) {
                const bool adds = ++which % 2 == 0;
                const T alpha = adds ? T{-0.5} : T{1}, beta = adds ? T{2} : T{0};
                const T old = adds ? T{3} : std::numeric_limits<T>::quiet_NaN();
                const LaidOut<T> a(z.m, z.k, form_a, 1), b(z.k, z.n, form_b, 2);
                std::vector<double> exact, bound;
                for (std::int64_t i = 0; i < z.m; ++i)
                    for (std::int64_t j = 0; j < z.n; ++j) {
                        long double sum = 0, size = 6;
                        for (std::int64_t p = 0; p < z.k; ++p) {
                            const long double term = static_cast<long double>(a.at(i, p)) * b.at(p, j);
                            sum += term;
                            size += std::fabs(term);
                        }
                        exact.push_back(static_cast<double>(alpha * sum + (adds ? 6.0L : 0.0L)));
                        bound.push_back(static_cast<double>(size) * unit *
                                        (4 + std::sqrt(static_cast<double>(z.k))));
                    }
                for (const int bytes : {16, 32, 64}) {
                    const Multiplied<T> c = multiplied(z.m, z.n, z.k, a, b, alpha, beta, old, bytes);
                    double worst = 0;
                    bool kept = true;
                    for (std::int64_t i = 0; i < z.m; ++i) {
                        const T* const row = c.memory.data() + i * c.row;
                        for (std::int64_t j = 0; j < z.n; ++j) {
                            const auto at = static_cast<std::size_t>(i * z.n + j);
                            worst = std::fmax(
                                worst, std::isnan(row[j]) ? 1e9 : std::fabs(row[j] - exact[at]) / bound[at]);
                        }
                        for (std::int64_t j = z.n; j < c.row; ++j)
                            kept = kept && (adds ? row[j] == old : std::isnan(row[j]));
                    }
                    INFO(fmt::format("{} x {} over {}, forms {} and {}, {} bytes", z.m, z.n, z.k,
                                     static_cast<int>(form_a), static_cast<int>(form_b), bytes));
                    CHECK(worst < 1);
                    CHECK(kept);
                }
            }
}

}  // namespace

TEST_CASE("our routine multiplies matrices of any strides and leaves what lies between the rows") {
    check_all<float>();
    check_all<double>();
}

TEST_CASE("an element of a product has the same bits whatever is computed beside it") {
    const std::int64_t m = 40, n = 90, k = 700;
    const LaidOut<double> a(m, k, Form::rows, 4), b(k, n, Form::columns, 5);
    const Multiplied<double> all = multiplied<double>(m, n, k, a, b, 1, 0, 0, 64);
    for (const std::int64_t i : {0, 5, 6, 39})
        for (const std::int64_t j : {0, 7, 8, 89}) {
            LaidOut<double> row = a, column = b;
            row.matrix.at = a.matrix.at + i * a.matrix.row;
            column.matrix.at = b.matrix.at + j * b.matrix.column;
            const Multiplied<double> one = multiplied<double>(1, 1, k, row, column, 1, 0, 0, 64);
            CHECK(one.memory[0] == all.memory[static_cast<std::size_t>(i * all.row + j)]);
        }
}

TEST_CASE("infinities and NaNs of one row stay in that row") {
    const std::int64_t m = 7, n = 20, k = 30;
    LaidOut<float> a(m, k, Form::rows, 6);
    a.memory[static_cast<std::size_t>(3 * k + 2)] = std::numeric_limits<float>::infinity();
    const LaidOut<float> b(k, n, Form::rows, 7);
    const Multiplied<float> c = multiplied<float>(m, n, k, a, b, 1, 0, 0, 64);
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j)
            CHECK(std::isfinite(c.memory[static_cast<std::size_t>(i * c.row + j)]) == (i != 3));
}

TEST_CASE("products of float64 are the same for any number of threads, whatever they are cut into") {
    for (const int form : {0, 1, 2, 3})
        for (const GemmCall::Parameter parameter :
             {GemmCall::Parameter::none, GemmCall::Parameter::depth, GemmCall::Parameter::rows}) {
            GemmShape s;
            s.m = 150;
            s.n = 130;
            s.k = 1960;
            s.dtype = DType::float64;
            s.transpose_a = form % 2 == 1;
            s.transpose_b = form / 2 == 1;
            s.parameter = parameter;
            const std::vector<double> a = numbers<double>(s.m * s.k, 1), b = numbers<double>(s.k * s.n, 2);
            std::vector<double> first;
            GemmScratch scratch;
            for (const int threads : {1, 2, 3}) {
                std::vector<double> c(static_cast<std::size_t>(s.m * s.n), NAN);
                gemm(process_pool(threads), s, {a.data(), b.data(), nullptr, c.data()}, scratch);
                if (first.empty()) first = c;
                CHECK(first == c);
            }
            for (const std::int64_t at : {std::int64_t{0}, 77 * s.n + 5, s.m * s.n - 1}) {
                long double sum = 0;
                for (std::int64_t p = 0; p < s.k; ++p) {
                    const std::int64_t i = at / s.n, j = at % s.n;
                    sum += static_cast<long double>(
                               a[static_cast<std::size_t>(s.transpose_a ? p * s.m + i : i * s.k + p)]) *
                           b[static_cast<std::size_t>(s.transpose_b ? j * s.k + p : p * s.n + j)];
                }
                CHECK(std::fabs(first[static_cast<std::size_t>(at)] - static_cast<double>(sum)) < 1e-11);
            }
        }
}
