// The identity, triangles and diagonals of matrices, of one and of many.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// x where `inside(row, column)`, else 0.
template <class F>
Array part_of(const Array& x, F&& inside) {
    std::vector<double> r = x.as(float64).to_vector<double>();
    const std::int64_t n = x.shape()[x.shape().size() - 2], m = x.shape().back();
    for (std::size_t i = 0; i < r.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i);
        if (!inside(at / m % n, at % m)) r[i] = 0;
    }
    return Array(r, x.shape()).as(x.dtype());
}

}  // namespace

TEST_CASE("triangles of matrices on both sides of every diagonal") {
    Random random(51);
    for (const DType dtype : {int8, float32, float64})
        for (const Dims& shape : {Dims{5, 7}, Dims{2, 9, 4}, Dims{1, 1}, Dims{3, 0, 2}}) {
            const Expr known = input(dtype, shape, "known"),
                       unknown = input(dtype, Dims(shape.size(), -1), "unknown");
            const Array x = random_array(dtype, shape, random, 1, 9);
            std::vector<Expr> outputs;
            std::vector<Array> expected;
            for (const std::int64_t k : {-3, -1, 0, 1, 4})
                for (const Expr& e : {known, unknown}) {
                    outputs.insert(outputs.end(), {tril(e, k), triu(e, k)});
                    expected.push_back(part_of(x, [&](auto i, auto j) { return j - i <= k; }));
                    expected.push_back(part_of(x, [&](auto i, auto j) { return j - i >= k; }));
                }
            const Results got = function({known, unknown}, outputs, here())(x, x);
            for (std::size_t i = 0; i < expected.size(); ++i) CHECK(difference(got[i], expected[i]) == "");
        }
}

TEST_CASE("the identity and its neighbours") {
    const Expr n = lscalar("n");
    const Results got = function(
        {n}, {eye(4), eye(3, 5, 1), eye(n, n + 2, -1, int32), eye(n, {}, 0, boolean), dot(eye(n), eye(n))},
        here())(Array(std::int64_t{3}));
    const auto diagonal_of = [](const Dims& shape, std::int64_t k) {
        return part_of(ones(shape), [&](auto i, auto j) { return j - i == k; });
    };
    CHECK(difference(got[0], diagonal_of({4, 4}, 0)) == "");
    CHECK(difference(got[1], diagonal_of({3, 5}, 1)) == "");
    CHECK(difference(got[2], diagonal_of({3, 5}, -1).as(int32)) == "");
    CHECK(difference(got[3], diagonal_of({3, 3}, 0).as(boolean)) == "");
    CHECK(difference(got[4], diagonal_of({3, 3}, 0)) == "");
    CHECK_THROWS_AS(eye(-1), ShapeError);
    CHECK_THROWS_AS(tril(vector("v")), ShapeError);
}

TEST_CASE("diagonals and traces, whatever lies beside them") {
    Random random(52);
    const Expr x = tensor3("x"), b = input(int8, {40, 40}, "b");
    Array values = random_array(float32, {3, 40, 40}, random),
          bytes = random_array(int8, {40, 40}, random, -99, 99);
    auto* at = static_cast<float*>(values.mutable_data());
    at[1] = std::numeric_limits<float>::quiet_NaN();
    at[40] = std::numeric_limits<float>::infinity();
    const Results got =
        function({x, b}, {diagonal(x), trace(x), diagonal(b), trace(b), grad(sum(sqr(diagonal(x))), x)},
                 here())(values, bytes);
    std::vector<float> diagonals, all(3 * 1600);
    std::vector<double> traces(3);
    for (std::size_t p = 0; p < 3; ++p)
        for (std::size_t i = 0; i < 40; ++i) {
            diagonals.push_back(at[p * 1600 + i * 41]);
            traces[p] += diagonals.back();
            all[p * 1600 + i * 41] = 2 * diagonals.back();
        }
    std::vector<std::int8_t> of_bytes;
    std::int64_t sum_of_bytes = 0;
    for (std::size_t i = 0; i < 40; ++i) {
        of_bytes.push_back(bytes.to_vector<std::int8_t>()[i * 41]);
        sum_of_bytes += of_bytes.back();
    }
    CHECK(difference(got[0], Array(diagonals, {3, 40})) == "");
    CHECK(difference(got[1], Array(traces, {3}).as(float32), {.of_largest = 1e-6}) == "");
    CHECK(difference(got[2], Array(of_bytes, {40})) == "");
    CHECK(got[3].item<std::int64_t>() == sum_of_bytes);
    CHECK(difference(got[4], Array(all, {3, 40, 40})) == "");
    CHECK_THROWS_AS(diagonal(input(float32, {3, 4}, "x")), ShapeError);
    Function f = function({x}, diagonal(x), here());
    CHECK_THROWS_AS(f(zeros({1, 3, 4})), ShapeError);
}

TEST_CASE("diagonals that are farther away than any element") {
    const Expr x = matrix("x");
    const Array values = ones({3, 3}), nothing = zeros({3, 3});
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                           most = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t far : {least, least + 1, std::int64_t{-5}}) {
        const Results got = function({x}, {tril(x, far), triu(x, far)}, here())(values);
        CHECK(difference(got[0], nothing) == "");
        CHECK(difference(got[1], values) == "");
    }
    for (const std::int64_t far : {most, most - 1, std::int64_t{5}}) {
        const Results got = function({x}, {tril(x, far), triu(x, far)}, here())(values);
        CHECK(difference(got[0], values) == "");
        CHECK(difference(got[1], nothing) == "");
    }
}
