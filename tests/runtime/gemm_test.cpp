// Products by oneDNN: how they are cut, and what the cuts give.
#include "runtime/cpu/gemm.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cpu/pool.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

using Parameter = GemmCall::Parameter;

std::vector<float> numbers(std::int64_t count, std::uint32_t seed) {
    std::vector<float> r(static_cast<std::size_t>(count));
    for (float& x : r) {
        seed = seed * 1664525u + 1013904223u;
        x = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
    }
    return r;
}

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
                    GemmShape s{m, n, k};
                    s.parameter = parameter;
                    const GemmSlices r = slices_of(s);
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
    GemmShape thin{8, 100, 1960};
    CHECK(slices_of(thin).of_depth == 1);
    thin.parameter = Parameter::depth;
    CHECK(slices_of(thin).of_depth == 2);
}

TEST_CASE("a product is the same for any number of threads, whatever it is cut into") {
    if (!gemm_library().present) return;
    struct Sizes {
        std::int64_t m, n, k;
    };
    for (const Sizes& z : {Sizes{8, 100, 1960}, Sizes{3, 70, 3001}, Sizes{300, 90, 33}, Sizes{9, 1960, 100}})
        for (const Parameter parameter :
             {Parameter::none, Parameter::depth, Parameter::columns, Parameter::rows})
            for (const int form : {0, 1, 2, 3}) {
                GemmShape s{z.m, z.n, z.k, form % 2 == 1, form / 2 == 1, form != 0, form == 2};
                s.parameter = parameter;
                const std::vector<float> a = numbers(z.m * z.k, 1), b = numbers(z.k * z.n, 2),
                                         bias = numbers(z.n, 3);
                const std::vector<double> exact = product(s, a, b, bias);
                std::vector<float> first, parts;
                for (const int threads : {1, 2, 3}) {
                    std::vector<float> c(exact.size(), NAN);
                    gemm(process_pool(threads), s, a.data(), b.data(), bias.data(), c.data(), parts);
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
