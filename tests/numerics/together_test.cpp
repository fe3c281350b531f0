// Sums that share what takes long to compute, in one loop: on each device the same bits, close to the oracle,
// for lengths that fill no vector, known and unknown, and where one loop must not compute them.
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Points {
    Expr x, y, z;
    std::vector<Input> inputs() const { return {x, y, z}; }
};

Points points(std::int64_t n) {
    return {input(float32, Dims{n}, "x"), input(float32, Dims{n}, "y"), input(float32, Dims{n}, "z")};
}

Expr apart(const Expr& p) { return expand_dims(p, 0) - expand_dims(p, 1); }

// Weighted sums of rows, means and variances, best elements, and sums of which one needs another.
std::vector<Expr> sums_of(const Points& p) {
    const Expr cx = apart(p.x), cy = apart(p.y), cz = apart(p.z), d2 = sqr(cx) + sqr(cy) + sqr(cz) + 0.01F,
               w = 1 / (d2 * sqrt(d2));
    const Expr k = exp(-d2), e = exp(-sqr(cx) * 2), t = tanh(cx * cy), s = tanh(cy + cz),
               u = sin(cz) * cos(cx);
    const Expr centre = mean(t, {1}, {.keepdims = true});
    return {sum(w * cx, 1),
            sum(w * cy, 1),
            sum(w * cz, 1),
            sum(k * expand_dims(p.y, 0), 1) / sum(k, 1),
            sum(e, 1),
            sum(sqr(e), 1),
            max(e * cx, {1}),
            mean(t, 1),
            mean(sqr(t - centre), 1),
            sum(s, {1}, {.keepdims = true}),
            sum(s * cx, 1),
            sum(s * cy, 1),
            sum(s * cz, 1),
            sum(s * s, 1),
            sum(u, 0),
            sum(u * cx, 0),
            sum(u * cy, 1)};
}

}  // namespace

TEST_CASE("sums in one loop have the same bits on every device") {
    Random random(21);
    for (const std::int64_t n : {1, 3, 16, 37, 128, 300}) {
        const std::vector<Array> arguments{random_array(float32, {n}, random),
                                           random_array(float32, {n}, random),
                                           random_array(float32, {n}, random)};
        for (const std::int64_t length : {n, std::int64_t{-1}}) {
            const Points p = points(length);
            const std::vector<Expr> all = sums_of(p);
            const Results got = function(p.inputs(), all, here()).call(arguments),
                          emulated = function(p.inputs(), all, {.device = "emulator"}).call(arguments),
                          expected = function(p.inputs(), all, {.device = "reference"}).call(arguments);
            for (std::size_t k = 0; k < all.size(); ++k) {
                INFO(n << " points, length " << length << ", number " << k);
                CHECK(difference(got[k], emulated[k], {}).empty());
                CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}).empty());
            }
        }
    }
}

TEST_CASE("what sums share is not stored") {
    const Points p = points(2048);
    const Expr cx = apart(p.x), cy = apart(p.y), cz = apart(p.z), d2 = sqr(cx) + sqr(cy) + sqr(cz) + 0.01F,
               w = 1 / (d2 * sqrt(d2));
    Function f = function(p.inputs(), {sum(w * cx, 1), sum(w * cy, 1), sum(w * cz, 1)});
    CHECK(f.memory_plan().peak_bytes < 1 << 20);
    CHECK(f.kernels().size() == 1);
}

TEST_CASE("a sum that one loop computes with another one follows what it reads") {
    Random random(22);
    for (const bool known : {true, false}) {
        INFO((known ? "known" : "unknown"));
        const Expr x = known ? input(float32, Dims{5, 1}, "x") : input(float32, {-1, 1}, "x"),
                   y = known ? input(float32, Dims{1, 4}, "y") : input(float32, {1, -1}, "y");
        const Expr e = exp(x) * y / (exp(x) + y + 9), first = grad(sum(e), x);
        const Expr second = grad(sum(first * 0.37F), x);
        const Expr shares = exp(x) / (abs(exp(x)) + abs(y / (exp(x) + 9)) + 1),
                   mixed = exp(x) + sum(sum(shares, {1}, {.keepdims = true}) * shares * y);
        const Tolerance near{.absolute = 1e-6, .relative = 1e-5};
        OnTwoDevices both({x, y}, {{"first", first, near},
                                   {"second", second, near},
                                   {"mixed", grad(sum(sin(mixed * 0.1F)), x), near}});
        CHECK(both({random_array(float32, {5, 1}, random), random_array(float32, {1, 4}, random)}) == "");
    }
}

// A task makes copies of what the later sums read, which are computed from earlier ones.
TEST_CASE("products of second derivatives of normalised rows") {
    Random random(23);
    const ReduceOptions kept{.keepdims = true};
    for (const DType dtype : {float32, float64})
        for (const Dims& shape : {Dims{4, 5}, Dims{3, 20}, Dims{100, 5}})
            for (const bool known : {true, false}) {
                INFO(name_of(dtype) << " " << shape[0] << " x " << shape[1]
                                    << (known ? ", known" : ", unknown"));
                const Expr x = known ? input(dtype, shape, "x") : input(dtype, 2, "x"),
                           u = known ? input(dtype, shape, "u") : input(dtype, 2, "u");
                std::vector<Expr> all;
                for (const Expr& y : {x / sum(sqr(x), 1, kept), exp(x) / (sum(exp(x), 1, kept) + 0.5F),
                                      x / (mean(sqr(x), 1, kept) + 0.1F), x * sum(x, 1, kept)}) {
                    const Expr first = grad(sum(sqr(y)), x);
                    all.push_back(grad(sum(first * u), x));
                    all.push_back(grad(sum(sin(first)), x));
                }
                const std::vector<Array> arguments{random_array(dtype, shape, random, 0.5, 2),
                                                   random_array(dtype, shape, random, -1, 1)};
                const Results got = function({x, u}, all, here()).call(arguments),
                              expected = function({x, u}, all, {.device = "reference"}).call(arguments);
                for (std::size_t k = 0; k < all.size(); ++k) {
                    INFO("number " << k);
                    CHECK(difference(got[k], expected[k], {.of_largest = dtype == float32 ? 1e-3 : 1e-10}) ==
                          "");
                }
            }
}

// Each part reads the one before in several places: composed, the reductions would read it 3^14 times.
TEST_CASE("several reductions of a long chain of concatenations") {
    const Expr x = matrix("x");
    Expr largest = x;
    for (int k = 1; k < 1 << 14; k *= 2)
        largest = concatenate(
            {largest[Index{colon, Slice{{}, Expr(k)}}],
             maximum(largest[Index{colon, Slice{Expr(k), {}}}], largest[Index{colon, Slice{{}, Expr(-k)}}])},
            1);
    Function f =
        function({x}, {max(largest, {1}), min(largest, {1}), mean(largest)}, {.device = tested_device()});
    std::vector<float> values(3 * 40);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 101);
    const Results got = f(Array(values, {3, 40}));
    double sum = 0;
    for (std::size_t row = 0; row < 3; ++row) {
        float most = values[row * 40];
        for (std::size_t i = 0; i < 40; ++i) sum += most = std::max(most, values[row * 40 + i]);
        CHECK(got[0].at(static_cast<std::int64_t>(row)) == most);
        CHECK(got[1].at(static_cast<std::int64_t>(row)) == values[row * 40]);
    }
    CHECK(got[2].at(0) == Approx(sum / 120));
}
