// Products by oneDNN: how they are cut, and what the cuts give.
#include "runtime/cpu/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "codegen/library/slices.h"
#include "runtime/cpu/pool.h"
#include "tests/runtime/numbers.h"
#include "tests/support/catch.h"

using namespace bitale;
using bitale::test::numbers;

namespace {

using Parameter = GemmCall::Parameter;

std::vector<double> product(const GemmShape& s, const std::vector<float>& a, const std::vector<float>& b,
                            const std::vector<float>& bias) {
    std::vector<double> c(static_cast<std::size_t>(s.m * s.n));
    for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
            double sum = s.bias ? bias[static_cast<std::size_t>(j)] : 0;
            for (std::int64_t k = 0; k < s.k; ++k)
                sum += static_cast<double>(
                           a[static_cast<std::size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)]) *
                       b[static_cast<std::size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
            c[static_cast<std::size_t>(i * s.n + j)] = s.relu && sum < 0 ? 0 : sum;
        }
    return c;
}

}  // namespace

TEST_CASE("slices of a product cover it, and those of a parameter follow its rows") {
    for (const Parameter parameter : {Parameter::none, Parameter::depth, Parameter::columns, Parameter::rows})
        for (const std::int64_t m : {1, 8, 20, 128, 784, 1960})
            for (const std::int64_t n : {1, 10, 100, 500})
                for (const std::int64_t k : {1, 8, 100, 1960}) {
                    const GemmSlices r = slices_of(m, n, k, false, parameter);
                    INFO(fmt::format("{} x {} over {}", m, n, k));
                    CHECK(r.rows * r.of_rows >= m);
                    CHECK(r.rows * (r.of_rows - 1) < m);
                    CHECK(r.columns * r.of_columns >= n);
                    CHECK(r.columns * (r.of_columns - 1) < n);
                    CHECK(r.depth * r.of_depth >= k);
                    CHECK(r.depth * (r.of_depth - 1) < k);
                    if (parameter != Parameter::depth) CHECK(r.of_depth == 1);
                    if (parameter == Parameter::columns) CHECK(r.of_rows == 1);
                    if (parameter == Parameter::rows && m >= 100) CHECK(r.of_columns == 1);
                }
    CHECK(slices_of(8, 100, 1960, false, Parameter::none).of_depth == 1);
    CHECK(slices_of(8, 100, 1960, false, Parameter::depth).of_depth == 2);
    const GemmSlices fewer = slices_of(33, 130, 7, {.rows = 32, .columns = 64, .depth = 16});
    CHECK(fewer.of_grid() == 6);
    CHECK(fewer.of_depth == 1);
}

TEST_CASE("a product is the same for any number of threads, whatever it is cut into") {
    struct Sizes {
        std::int64_t m, n, k;
    };
    for (const Sizes& z : {Sizes{8, 100, 1960}, Sizes{3, 70, 3001}, Sizes{300, 90, 33}, Sizes{9, 1960, 100}})
        for (const Parameter parameter :
             {Parameter::none, Parameter::depth, Parameter::columns, Parameter::rows})
            for (const int form : {0, 1, 2, 3}) {
                GemmShape s{z.m, z.n, z.k, form % 2 == 1, form / 2 == 1, form != 0, form == 2};
                s.parameter = parameter;
                const std::vector<float> a = numbers<float>(z.m * z.k, 1), b = numbers<float>(z.k * z.n, 2),
                                         bias = numbers<float>(z.n, 3);
                const std::vector<double> exact = product(s, a, b, bias);
                std::vector<float> first;
                GemmScratch scratch;
                for (const int threads : {1, 2, 3}) {
                    std::vector<float> c(exact.size(), NAN);
                    gemm(process_pool(threads), s, {a.data(), b.data(), bias.data(), c.data()}, scratch);
                    double worst = 0;
                    for (std::size_t i = 0; i < c.size(); ++i)
                        worst = std::fmax(worst, std::isnan(c[i]) ? 1e9 : std::fabs(c[i] - exact[i]));
                    INFO(fmt::format("{} x {} over {}, form {}, {} threads", z.m, z.n, z.k, form, threads));
                    CHECK(worst < 2e-5 * static_cast<double>(z.k));
                    if (first.empty()) first = c;
                    CHECK(first == c);
                }
            }
}

TEST_CASE("long sums of few results are cut into parts, and added to what was there") {
    CHECK(slices_of(64, 144, 25088, false, Parameter::none).of_depth > 2);
    CHECK(slices_of(64, 144, 25088, false, Parameter::none, true).of_depth == 1);
    CHECK(slices_of(512, 512, 512, false, Parameter::none).of_depth == 1);
    for (const bool transposed : {false, true})  // the parts' results stay small
        CHECK(slices_of(2048, 2048, 1 << 20, transposed, Parameter::none).of_depth == 1);
    const std::int64_t m = 61, n = 45, k = 9001;
    const std::vector<float> a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2),
                             old = numbers<float>(m * n, 3);
    for (const int form : {0, 1, 2, 3})
        for (const double beta : {0.0, 1.0, -0.5}) {
            GemmShape s{m, n, k, form % 2 == 1, form / 2 == 1};
            s.alpha = 0.25;
            s.beta = beta;
            const std::vector<double> exact = product(s, a, b, {});
            std::vector<float> first;
            GemmScratch scratch;
            for (const int threads : {1, 3}) {
                std::vector<float> c = old;
                gemm(process_pool(threads), s, {a.data(), b.data(), nullptr, c.data()}, scratch);
                double worst = 0;
                for (std::size_t i = 0; i < c.size(); ++i)
                    worst = std::fmax(worst, std::fabs(c[i] - (0.25 * exact[i] + beta * old[i])));
                INFO(fmt::format("form {}, beta {}, {} threads", form, beta, threads));
                CHECK(worst < 1e-2);
                if (first.empty()) first = c;
                CHECK(first == c);
            }
        }
}

namespace {

constexpr std::int64_t product_rows = 37, product_columns = 50, slice_rows = 16, slice_columns = 32;

// Negates each slice of a product of rows x columns: buffers are the product, or one slice of it, and the
// result.
void negate(void* const* buffers, const std::int64_t* sizes, std::int64_t first, std::int64_t last) {
    const auto* from = static_cast<const float*>(buffers[0]);
    auto* to = static_cast<float*>(buffers[1]);
    const bool whole = sizes[0] != 0;
    const std::int64_t across = (product_columns + slice_columns - 1) / slice_columns;
    for (std::int64_t t = first; t < last; ++t) {
        const std::int64_t row = t / across * slice_rows, column = t % across * slice_columns;
        for (std::int64_t i = row; i < std::min(product_rows, row + slice_rows); ++i)
            for (std::int64_t j = column; j < std::min(product_columns, column + slice_columns); ++j)
                to[i * product_columns + j] =
                    whole ? -from[i * product_columns + j] : -from[(i - row) * slice_columns + j - column];
    }
}

}  // namespace

TEST_CASE("an epilogue runs on each slice, whether the product is kept or not") {
    for (const std::int64_t k : {0, 5, 70})
        for (const std::int64_t depth : {16, 100})
            for (const bool kept : {true, false}) {
                GemmShape s{product_rows, product_columns, k};
                s.slice_rows = slice_rows;
                s.slice_columns = slice_columns;
                s.slice_depth = depth;
                const std::vector<float> a = numbers<float>(product_rows * k, 1),
                                         b = numbers<float>(k * product_columns, 2);
                const std::vector<double> exact = product(s, a, b, {});
                std::vector<float> c(exact.size(), NAN), r(exact.size(), NAN);
                void* const buffers[] = {kept ? c.data() : nullptr, r.data()};
                const std::int64_t whole = kept ? 1 : 0;
                const GemmKernel epilogue{negate, buffers, 2, &whole};
                GemmScratch scratch;
                for (const int threads : {2, 1, 3}) {
                    gemm(process_pool(threads), s, {a.data(), b.data(), nullptr, kept ? c.data() : nullptr},
                         scratch, {epilogue, {}, {}});
                    double worst = 0;
                    for (std::size_t i = 0; i < r.size(); ++i)
                        worst = std::fmax(worst, std::isnan(r[i]) ? 1e9 : std::fabs(r[i] + exact[i]));
                    INFO(fmt::format("over {}, slices of {}, kept {}", k, depth, kept));
                    CHECK(worst < 1e-4);
                }
            }
}

TEST_CASE("a product is added to what was there") {
    for (const std::int64_t k : {0, 7, 300}) {
        GemmShape s{product_rows, product_columns, k, true};
        s.parameter = Parameter::rows;
        s.alpha = -0.25f;
        s.beta = 0.5f;
        const std::vector<float> a = numbers<float>(product_rows * k, 1),
                                 b = numbers<float>(k * product_columns, 2),
                                 old = numbers<float>(product_rows * product_columns, 3);
        const std::vector<double> exact = product(s, a, b, {});
        GemmScratch scratch;
        for (const int threads : {1, 2, 3}) {
            std::vector<float> c = old;
            gemm(process_pool(threads), s, {a.data(), b.data(), nullptr, c.data()}, scratch);
            double worst = 0;
            for (std::size_t i = 0; i < c.size(); ++i)
                worst = std::fmax(worst, std::fabs(c[i] - (0.5 * old[i] - 0.25 * exact[i])));
            CHECK(worst < 1e-4);
        }
    }
}

namespace {

// Pieces of one operand, as they lie in a matrix of [extent, terms], or [terms, extent].
void copy_piece(void* const* buffers, const std::int64_t* sizes, std::int64_t first, std::int64_t last) {
    auto* to = static_cast<float*>(buffers[0]);
    const auto* from = static_cast<const float*>(buffers[1]);
    const std::int64_t extent = sizes[0], terms = sizes[1], width = sizes[2], depth = sizes[3];
    const bool turned = sizes[4] != 0;
    const std::int64_t pieces = (terms + depth - 1) / depth;
    for (std::int64_t t = first; t < last; ++t)
        for (std::int64_t i = 0; i < std::min(width, extent - t / pieces * width); ++i)
            for (std::int64_t p = 0; p < std::min(depth, terms - t % pieces * depth); ++p) {
                const std::int64_t at = t / pieces * width + i, term = t % pieces * depth + p;
                to[turned ? p * width + i : i * depth + p] =
                    from[turned ? term * extent + at : at * terms + term];
            }
}

constexpr std::int64_t side = 75, part = 32;

// Of a product of side x side, in slices of part x part.
void negate_part(void* const* buffers, const std::int64_t* whole, std::int64_t t, std::int64_t) {
    const std::int64_t across = (side + part - 1) / part, row = t / across * part, column = t % across * part;
    const auto* from = static_cast<const float*>(buffers[0]);
    for (std::int64_t i = row; i < std::min(side, row + part); ++i)
        for (std::int64_t j = column; j < std::min(side, column + part); ++j)
            static_cast<float*>(buffers[1])[i * side + j] =
                -from[whole[0] != 0 ? i * side + j : (i - row) * part + j - column];
}

}  // namespace

TEST_CASE("operands are packed on the fly, and of a matrix times its own transpose one half is computed") {
    constexpr std::int64_t n = side, depth = 16;
    for (const std::int64_t k : {0, 1, 16, 50, 700})
        for (const bool turned : {false, true})
            for (const bool symmetric : {false, true})
                for (const bool made : {false, true})
                    for (const bool kept : {true, false}) {
                        GemmShape s{n, n, k, turned, symmetric ? !turned : turned};
                        s.slice_rows = s.slice_columns = part;
                        s.piece_depth = depth;
                        s.made_a = s.made_b = made;
                        s.symmetric = symmetric;
                        const std::vector<float> a = numbers<float>(n * k, 1),
                                                 b = symmetric ? a : numbers<float>(n * k, 2);
                        const std::vector<double> exact = product(s, a, b, {});
                        const std::int64_t sizes[2][5] = {{n, k, part, depth, s.transpose_a},
                                                          {n, k, part, depth, !s.transpose_b}};
                        void* const of_a[] = {nullptr, const_cast<float*>(a.data())};
                        void* const of_b[] = {nullptr, const_cast<float*>(b.data())};
                        std::vector<float> c(exact.size(), NAN), r(exact.size(), NAN), first;
                        void* const results[] = {kept ? c.data() : nullptr, r.data()};
                        const std::int64_t whole = kept ? 1 : 0;
                        GemmKernels kernels{{negate_part, results, 2, &whole}, {}, {}};
                        if (made) kernels.a = {copy_piece, of_a, 2, sizes[0]};
                        if (made) kernels.b = {copy_piece, of_b, 2, sizes[1]};
                        GemmScratch scratch;
                        for (const int threads : {1, 2, 3}) {
                            gemm(process_pool(threads), s,
                                 {made ? nullptr : a.data(), made ? nullptr : b.data(), nullptr,
                                  kept ? c.data() : nullptr},
                                 scratch, kernels);
                            double worst = 0;
                            for (std::size_t i = 0; i < r.size(); ++i)
                                worst = std::fmax(worst, std::isnan(r[i]) ? 1e9 : std::fabs(r[i] + exact[i]));
                            INFO(fmt::format("over {}, turned {}, symmetric {}, made {}, kept {}", k, turned,
                                             symmetric, made, kept));
                            CHECK(worst < 1e-3);
                            if (first.empty()) first = r;
                            CHECK(first == r);
                        }
                    }
}

namespace {

// c + a . b modulo 2^32.
template <class A>
std::vector<std::uint32_t> product_of_bytes(const GemmShape& s, const std::vector<A>& a,
                                            const std::vector<std::int8_t>& b,
                                            const std::vector<std::int32_t>& old) {
    std::vector<std::uint32_t> c;
    for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
            auto sum = s.beta == 0 ? 0 : static_cast<std::uint32_t>(old[c.size()]);
            for (std::int64_t k = 0; k < s.k; ++k)
                sum += static_cast<std::uint32_t>(
                    int{a[static_cast<std::size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)]} *
                    int{b[static_cast<std::size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)]});
            c.push_back(sum);
        }
    return c;
}

// With many of the numbers whose products four at a time leave 16 bits.
template <class A>
std::vector<A> extreme_bytes(std::int64_t count, std::uint32_t seed) {
    std::vector<A> list(static_cast<std::size_t>(count));
    for (A& x : list) {
        seed = seed * 1664525U + 1013904223U;
        const std::uint32_t bits = seed >> 16;
        x = bits % 3 == 0   ? std::numeric_limits<A>::max()
            : bits % 3 == 1 ? std::numeric_limits<A>::min()
                            : static_cast<A>(bits >> 3);
    }
    return list;
}

template <class A>
void check_products_of_bytes(bool is_unsigned) {
    struct Sizes {
        std::int64_t m, n, k;
    };
    for (const Sizes& z :
         {Sizes{1, 1, 1}, {8, 100, 1960}, {3, 70, 301}, {130, 90, 33}, {61, 45, 9001}, {5, 7, 0}})
        for (const int form : {0, 1, 2, 3})
            for (const double beta : {0.0, 1.0}) {
                GemmShape s{z.m, z.n, z.k, form % 2 == 1, form / 2 == 1};
                s.dtype = DType::int32;
                s.unsigned_a = is_unsigned;
                s.beta = beta;
                const std::vector<A> a = extreme_bytes<A>(z.m * z.k, 1);
                const std::vector<std::int8_t> b = extreme_bytes<std::int8_t>(z.k * z.n, 2);
                std::vector<std::int32_t> old(static_cast<std::size_t>(z.m * z.n), 2'000'000'000);
                const std::vector<std::uint32_t> exact = product_of_bytes(s, a, b, old);
                GemmScratch scratch;
                for (const int threads : {1, 3}) {
                    std::vector<std::int32_t> c = old;
                    gemm(process_pool(threads), s, {a.data(), b.data(), nullptr, c.data()}, scratch);
                    INFO(fmt::format("{} x {} over {}, form {}, beta {}, {} threads", z.m, z.n, z.k, form,
                                     beta, threads));
                    CHECK(std::vector<std::uint32_t>(c.begin(), c.end()) == exact);
                }
            }
}

}  // namespace

TEST_CASE("products of bytes are exact, by a library or by plain loops") {
    check_products_of_bytes<std::int8_t>(false);
    check_products_of_bytes<std::uint8_t>(true);
}
