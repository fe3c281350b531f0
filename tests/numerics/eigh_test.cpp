// eigh among other ops on a CPU, against both oracles: sizes, batches, dtypes, what comes before and behind
// it, gradients.
#include <fmt/format.h>

#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// With eigenvalues that are apart: vectors whose neighbours are near may turn into anything.
Array spread(DType dtype, const Dims& shape, Random& random) {
    Array a = random_array(float64, shape, random, -0.4, 0.4);
    auto* x = static_cast<double*>(a.mutable_data());
    const std::int64_t n = shape.back();
    for (std::int64_t i = 0; i < a.size(); ++i)
        if (i % n == i / n % n) x[i] += 3 * static_cast<double>(i % n);
    return a.as(dtype);
}

}  // namespace

TEST_CASE("eigh of many sizes, behind and before maps") {
    PackedCases cases("cpu");
    Random random(1);
    for (const DType dtype : {float32, float64})
        for (const Dims& shape : {Dims{0, 0}, Dims{1, 1}, Dims{2, 2}, Dims{3, 3}, Dims{17, 17}, Dims{40, 40},
                                  Dims{3, 5, 5}, Dims{2, 0, 4, 4}, Dims{2, 3, 1, 1}})
            for (const bool known : {true, false}) {
                const Expr x =
                    known ? input(dtype, shape, "x") : input(dtype, static_cast<int>(shape.size()), "x");
                const Array value = spread(dtype, shape, random);
                const auto [w, v] = eigh(x * 0.5);
                const auto add = [&](const char* what, const Expr& y) {
                    cases.add(fmt::format("{} of {}", what, text_of(shape)), {x}, {value}, y);
                };
                add("values", w);
                add("maps of values", exp(-abs(w)) + 1);
                add("vectors", v);
                add("both", sum(sqr(v) * expand_dims(w, -2), {-1}));
            }
    cases.run(36);
}

TEST_CASE("eigh of products, its gradients, and eigh twice") {
    PackedCases cases("cpu", 2e-4);
    Random random(2);
    for (const DType dtype : {float32, float64}) {
        const Expr x = matrix("x", dtype), a = tensor3("a", dtype);
        const Array of_x = spread(dtype, {12, 12}, random), of_a = spread(dtype, {4, 6, 6}, random);
        const auto [w, v] = eigh(dot(x, transpose(x)));
        cases.add("root of a product", {x}, {of_x}, dot(v * sqrt(maximum(w, 0)), transpose(v)));
        cases.add("gradient of values", {x}, {of_x}, grad(sum(log(w + 1)), x));
        const Eigh own = eigh(x);
        cases.add("gradient of vectors", {x}, {of_x}, grad(sum(sqr(own.vectors) * own.values), x));
        const Eigh batch = eigh(a);
        cases.add("gradient of a batch", {a}, {of_a},
                  grad(sum(sqr(batch.vectors) * expand_dims(batch.values, -2)), a));
        cases.add("twice", {x}, {of_x}, eigh(sqr(own.vectors) + 1).values);
    }
    cases.run();
}
