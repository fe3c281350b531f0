// Eigenvalues and whitening by the oracles: known spectra, conventions, gradients, messages.
#include "ops/linear/eigh.h"

#include <cmath>
#include <limits>

#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array matrix_of(std::vector<double> v) {
    const auto n = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(v.size()))));
    return Array(v, {n, n});
}

// Symmetric, with eigenvalues that are well apart.
Array symmetric(std::int64_t n, std::uint64_t seed = 1) {
    Array a(float64, {n, n});
    auto* x = static_cast<double*>(a.mutable_data());
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const double value = static_cast<double>(seed >> 40) / static_cast<double>(1 << 24) - 0.5;
            x[i * n + j] = x[j * n + i] = value * 0.5 + (i == j ? static_cast<double>(i) : 0);
        }
    return a;
}

void check_near(const Array& got, const std::vector<double>& expected, double margin = 1e-12) {
    const std::vector<double> x = numbers(got);
    REQUIRE(x.size() == expected.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        INFO("element " << i);
        CHECK(x[i] == Approx(expected[i]).margin(margin));
    }
}

}  // namespace

TEST_CASE("known spectra, by both oracles") {
    const Expr a = matrix("a", float64);
    const double half = std::sqrt(0.5);
    struct Known {
        Array matrix;
        std::vector<double> values, vectors;  // the columns of a row-major matrix
    };
    for (const Known& known : {
             Known{matrix_of({}), {}, {}},
             Known{matrix_of({-3}), {-3}, {1}},
             Known{matrix_of({2, 1, 1, 2}), {1, 3}, {half, half, -half, half}},
             Known{matrix_of({0, 0, 0, 0}), {0, 0}, {1, 0, 0, 1}},
             Known{matrix_of({5, 0, 0, 0, -1, 0, 0, 0, 2}), {-1, 2, 5}, {0, 0, 1, 1, 0, 0, 0, 1, 0}},
             Known{matrix_of({1e300, 0, 0, 1e-300}), {1e-300, 1e300}, {0, 1, 1, 0}},
         }) {
        const Array& value = known.matrix;
        INFO(value.text());
        const auto [w, v] = eigh(a);
        for (const bool wide : {false, true}) {
            const auto of = [&](const Expr& y) {
                return wide ? evaluated(y, {a}, {value}) : evaluated_typed(y, {a}, {value});
            };
            check_near(of(w), known.values);
            check_near(of(v), known.vectors);
            CHECK(of(v).shape() == value.shape());
        }
    }
}

TEST_CASE("the lower triangle is read, vectors are orthogonal and have their sign") {
    const Array a = symmetric(7);
    Array lower = a, upper = a;
    for (std::int64_t i = 0; i < 7; ++i)
        for (std::int64_t j = i + 1; j < 7; ++j) {
            static_cast<double*>(lower.mutable_data())[i * 7 + j] = std::nan("");
            static_cast<double*>(upper.mutable_data())[i * 7 + j] = 100;
        }
    const Expr x = matrix("x", float64);
    const auto [w, v] = eigh(x);
    const Expr rebuilt = dot(v * w, transpose(v)), products = dot(transpose(v), v);
    for (const Array& given : {a, lower, upper}) {
        check_near(evaluated_typed(rebuilt, {x}, {given}), numbers(a));
        check_near(evaluated(rebuilt, {x}, {given}), numbers(a));
    }
    const std::vector<double> values = numbers(evaluated_typed(w, {x}, {a}));
    CHECK(std::is_sorted(values.begin(), values.end()));
    std::vector<double> one(49, 0);
    for (std::size_t i = 0; i < 7; ++i) one[i * 8] = 1;
    check_near(evaluated_typed(products, {x}, {a}), one);
    const std::vector<double> vectors = numbers(evaluated_typed(v, {x}, {a}));
    for (std::size_t k = 0; k < 7; ++k) {
        double largest = 0;
        for (std::size_t i = 0; i < 7; ++i)
            if (std::abs(vectors[i * 7 + k]) > std::abs(largest)) largest = vectors[i * 7 + k];
        CHECK(largest > 0);
    }
    // The first of several largest components, also where rounding makes another one larger.
    const Array tied = evaluated_typed(v, {x}, {matrix_of({0, -1, -1, 0})});
    check_near(tied, {std::sqrt(0.5), std::sqrt(0.5), std::sqrt(0.5), -std::sqrt(0.5)});
}

TEST_CASE("several matrices, and lengths that are known or not") {
    const Array a = symmetric(3, 5), b = symmetric(3, 6);
    Array both(float64, {2, 1, 3, 3});
    for (std::int64_t i = 0; i < 9; ++i) {
        static_cast<double*>(both.mutable_data())[i] = a.at(i);
        static_cast<double*>(both.mutable_data())[9 + i] = b.at(i);
    }
    for (const bool known : {true, false}) {
        const Expr x = known ? input(float64, Dims{2, 1, 3, 3}, "x") : tensor4("x", float64);
        const auto [w, v] = eigh(x);
        const Array values = evaluated_typed(w, {x}, {both}), vectors = evaluated_typed(v, {x}, {both});
        CHECK(values.shape() == Dims{2, 1, 3});
        CHECK(vectors.shape() == Dims{2, 1, 3, 3});
        const Expr single = matrix("single", float64);
        const std::vector<double> second = numbers(evaluated_typed(eigh(single).values, {single}, {b}));
        for (std::size_t i = 0; i < 3; ++i) CHECK(values.at(static_cast<std::int64_t>(3 + i)) == second[i]);
        check_near(evaluated_typed(matmul(v * expand_dims(w, -2), transpose(v, {0, 1, 3, 2})), {x}, {both}),
                   numbers(both));
    }
    const Expr none = tensor3("none", float64);
    CHECK(evaluated_typed(eigh(none).vectors, {none}, {Array(float64, {0, 2, 2})}).shape() == Dims{0, 2, 2});
    CHECK(evaluated_typed(eigh(none).values, {none}, {Array(float64, {2, 0, 0})}).shape() == Dims{2, 0});
}

TEST_CASE("what is not finite is not a number") {
    const Expr x = matrix("x", float64);
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
        for (const Expr& y : {eigh(x).values, eigh(x).vectors})
            for (const double got : numbers(evaluated_typed(y, {x}, {matrix_of({1, 0, bad, 1})})))
                CHECK(std::isnan(got));
}

TEST_CASE("gradients of eigenvalues and eigenvectors") {
    const Array a = symmetric(4), b = symmetric(3, 9);
    for (const bool symbolic : {false, true}) {
        require_gradient([](const auto& x) { return eigh(x[0]).values; }, {a}, symbolic, 1e-5);
        require_gradient([](const auto& x) { return eigh(x[0]).vectors; }, {a}, symbolic, 1e-5);
    }
    require_gradient(
        [](const auto& x) {
            const auto [w, v] = eigh(dot(transpose(x[0]), x[0]));
            return dot(v * exp(-w), transpose(v)) + expand_dims(w, 0);
        },
        {b}, true, 1e-5);
    require_gradient(
        [](const auto& x) {
            const auto [w, v] = eigh(reshape(x[0], {2, 2, 2}));
            return expand_dims(w, -1) * v;
        },
        {Array(std::vector<double>{1, 0.5, 0.5, 3, -2, 0.25, 0.25, 1})}, false, 1e-5);
    // The second derivative.
    require_gradient(
        [](const auto& x) {
            const auto [w, v] = eigh(x[0]);
            return grad(sum(w * w * w) + sum(v * constant(symmetric(3, 4))), x[0]);
        },
        {b}, false, 1e-4);
}

TEST_CASE("equal eigenvalues: what depends on them alone has its gradient") {
    const Expr x = matrix("x", float64);
    const Array one = matrix_of({1, 0, 0, 0, 1, 0, 0, 0, 1});
    const auto [w, v] = eigh(x);
    // d sum(w^2) = 2 trace(a da), of an element off the diagonal and its mirror image.
    check_near(evaluated_typed(grad(sum(w * w), x), {x}, {one}), {2, 0, 0, 0, 2, 0, 0, 0, 2});
    for (const double g : numbers(evaluated_typed(grad(sum(w) + 0 * sum(v), x), {x}, {one})))
        CHECK(std::isfinite(g));
}

TEST_CASE("messages of eigh and zca") {
    const Expr bytes = matrix("bytes", uint8), row = vector("row"), flat = input(float32, Dims{3, 4}, "flat");
    CHECK_THAT(message_of<TypeError>([&] { eigh(bytes); }),
               ContainsSubstring("\"bytes\"") && ContainsSubstring("write cast(bytes, float32)"));
    CHECK_THAT(message_of<ShapeError>([&] { eigh(row); }), ContainsSubstring("it takes a matrix"));
    CHECK_THAT(message_of<ShapeError>([&] { eigh(flat); }),
               ContainsSubstring("3 is not 4") && ContainsSubstring("dot(transpose(x), x)"));
    CHECK_THAT(message_of<ShapeError>([&] { zca(tensor4("images", uint8), 0.1); }),
               ContainsSubstring("flatten(x, 2)"));
    for (const double bad : {-0.5, std::nan(""), std::numeric_limits<double>::infinity()})
        CHECK_THAT(message_of<Error>([&] { zca(flat, bad); }), ContainsSubstring("epsilon"));
    const Expr open = matrix("open");
    std::string message;
    try {
        evaluated_typed(eigh(open).values, {open}, {Array(float32, {2, 3})});
    } catch (const ShapeError& e) {
        message = e.what();
    }
    CHECK_THAT(message, ContainsSubstring("eigh_test.cpp") && ContainsSubstring("square matrices"));
}

TEST_CASE("zca makes variances 1 where they are large beside epsilon, and drops what has none") {
    // Items in a plane of four dimensions.
    std::vector<double> data;
    for (int i = 0; i < 60; ++i) {
        const double a = (i * 37 % 60) - 29.5, b = 20 * std::sin(i * 1.7);
        for (const double x : {a + b, a - b, 2 * a, 3 + 0 * b}) data.push_back(x);
    }
    const Array items(data, {60, 4});
    const Expr x = matrix("x", float64);
    for (const double epsilon : {0.0, 1e-9}) {
        const Zca z = zca(x, epsilon);
        const Expr white = dot(x - z.mean, z.matrix),
                   covariance = dot(transpose(white), white) / cast(x.length(0), float64);
        const auto spectrum = numbers(evaluated_typed(eigh(covariance).values, {x}, {items}));
        CHECK(spectrum[0] == Approx(0).margin(1e-6));
        CHECK(spectrum[1] == Approx(0).margin(1e-6));
        CHECK(spectrum[2] == Approx(1).epsilon(1e-9));
        CHECK(spectrum[3] == Approx(1).epsilon(1e-9));
    }
    // With a large epsilon, the formula.
    const Zca z = zca(x, 50);
    const Expr centred = x - mean(x, {0});
    const auto [w, v] = eigh(dot(transpose(centred), centred) / 60.0);
    check_near(evaluated_typed(z.matrix, {x}, {items}),
               numbers(evaluated_typed(dot(v / sqrt(w + 50.0), transpose(v)), {x}, {items})), 1e-9);
    check_near(evaluated_typed(z.mean, {x}, {items}), numbers(evaluated_typed(mean(x, {0}), {x}, {items})));
    CHECK(zca(matrix("b", uint8), 1).matrix.dtype() == float32);
    CHECK(zca(matrix("h", float16), 1).mean.dtype() == float32);
    CHECK(z.matrix.dtype() == float64);
}
