// Maps whose reads are guarded, as the gradients of slices and shifts are: the points where all guards hold
// are a loop of their own (codegen/kernel/guarded.h). One function of unknown lengths serves all of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/oracles.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Slice from(std::int64_t first) { return {Expr(first), {}}; }
Slice until(std::int64_t last) { return {{}, Expr(last)}; }
Slice between(std::int64_t first, std::int64_t last) { return {Expr(first), Expr(last)}; }

// Of a matrix with at least three rows and columns.
std::vector<Expr> maps_of(const Expr& x) {
    const Expr inner = x[Index{between(1, -1), between(1, -1)}];
    return {
        x[Index{from(1), colon}] * x[Index{until(-1), colon}],
        x[Index{colon, from(1)}] * x[Index{colon, until(-1)}],
        x[Index{from(2), from(1)}] * x[Index{until(-2), until(-1)}],
        x[Index{until(-2), between(1, -1)}] * inner + x[Index{from(2), between(1, -1)}] +
            x[Index{between(1, -1), until(-2)}] * x[Index{between(1, -1), from(2)}],
        x[Index{Slice{Expr(1), {}, 2}, Slice{{}, {}, 3}}] * 3,
        concatenate({x, x * 2, x[Index{until(1), colon}]}, 0),
        concatenate({x[Index{colon, from(2)}], x}, 1),
    };
}

std::vector<Expr> maps_and_gradients(const Expr& x) {
    std::vector<Expr> results;
    for (const Expr& y : maps_of(x)) {
        results.push_back(y);
        if (is_float(x.dtype())) results.push_back(grad(sum(y * y), x));
    }
    return results;
}

std::string differences(Function& f, const std::vector<Expr>& inputs, const std::vector<Expr>& outputs,
                        const std::vector<Array>& values) {
    const Results results = f.call(values);
    const std::vector<WidePtr> expected = evaluated_wide(outputs, inputs, values);
    std::string all;
    for (std::size_t k = 0; k < outputs.size(); ++k)
        if (const std::string one = difference(results[k], *expected[k]); !one.empty())
            all += fmt::format("result {}: {}\n", k, one);
    return all;
}

}  // namespace

TEST_CASE("maps with guards, of lengths that are known at the call alone") {
    std::vector<Expr> inputs, outputs;
    for (const DType dtype : {float32, float64, uint8, int64, boolean}) {
        inputs.push_back(input(dtype, {-1, -1}, fmt::format("of_{}", name_of(dtype))));
        const Expr x = dtype == boolean ? cast(inputs.back(), int32) : inputs.back();
        const std::vector<Expr> results = maps_and_gradients(x);
        outputs.insert(outputs.end(), results.begin(), results.end());
    }
    Function f =
        function(std::vector<Input>(inputs.begin(), inputs.end()), outputs, {.device = tested_device()});
    Random random(1);
    for (const Dims& size :
         {Dims{3, 3}, Dims{4, 17}, Dims{16, 5}, Dims{33, 16}, Dims{3, 1030}, Dims{70, 515}}) {
        std::vector<Array> values;
        for (const Expr& x : inputs) {
            const bool is_signed = x.dtype() != uint8 && x.dtype() != boolean;
            values.push_back(
                random_array(x.dtype(), size, random, is_signed ? -3 : 0, x.dtype() == boolean ? 1 : 3));
        }
        INFO(size[0] << " x " << size[1]);
        CHECK(differences(f, inputs, outputs, values) == "");
    }
}

// Rolled by so many places along an axis of a known length.
Expr rolled(const Expr& x, std::int64_t places, std::size_t axis, std::int64_t length) {
    const std::int64_t cut = ((-places) % length + length) % length;
    if (axis == 0) return concatenate({x[Index{from(cut), colon}], x[Index{until(cut), colon}]}, 0);
    return concatenate({x[Index{colon, from(cut)}], x[Index{colon, until(cut)}]}, 1);
}

// Conditions that mostly fail, or hold in one of several parts; some of what is read costs a copy.
TEST_CASE("maps of rolled, padded and turned rows") {
    Random random(5);
    std::vector<Expr> inputs, outputs;
    std::vector<Array> values;
    for (const Dims& size : {Dims{5, 600}, Dims{3, 1025}, Dims{40, 2}, Dims{1, 700}}) {
        const std::int64_t rows = size[0], columns = size[1];
        inputs.push_back(input(float32, size, "x"));
        values.push_back(random_array(float32, size, random));
        const Expr& x = inputs.back();
        for (const Expr& y : {x, x / 3}) {
            outputs.push_back(rolled(y, 1, 0, rows) + rolled(y, -1, 0, rows) + rolled(y, 1, 1, columns) +
                              rolled(y, -1, 1, columns) - 4 * y);
            const Expr p = pad(y, {{1, 1}, {2, 1}}, 2);
            outputs.push_back(p[Index{until(-2), from(3)}] * flip(p, 1)[Index{from(2), until(-3)}] + y);
            outputs.push_back(concatenate({y * 2, flip(y, 1), exp(y)}, 1) +
                              concatenate({flip(y, 0), y, y + 1}, 1));
        }
    }
    Function f =
        function(std::vector<Input>(inputs.begin(), inputs.end()), outputs, {.device = tested_device()});
    CHECK(differences(f, inputs, outputs, values) == "");
}

TEST_CASE("maps with guards, of long rows") {
    Random random(2);
    std::vector<Expr> inputs, outputs;
    std::vector<Array> values;
    for (const Dims& size : {Dims{3, 1100}, Dims{1040, 3}, Dims{9, 2049}}) {
        inputs.push_back(input(float32, size, "x"));
        values.push_back(random_array(float32, size, random));
        const std::vector<Expr> results = maps_and_gradients(inputs.back());
        outputs.insert(outputs.end(), results.begin(), results.end());
    }
    Function f =
        function(std::vector<Input>(inputs.begin(), inputs.end()), outputs, {.device = tested_device()});
    CHECK(differences(f, inputs, outputs, values) == "");
}

TEST_CASE("pooling of images whose size is known at the call alone, and its gradient") {
    const Expr x = input(float32, {-1, 2, -1, -1}, "x");
    std::vector<Expr> outputs;
    for (const auto& [window, options] : {std::pair<Size2, PoolOptions>{2, {}},
                                          {3, {.stride = Size2(2)}},
                                          {Size2(2, 3), {.stride = Size2(3, 1)}},
                                          {4, {.stride = Size2(2), .pad = 1}},
                                          {3, {.stride = Size2(9)}}}) {
        const Expr y = max_pool(x, window, options);
        outputs.push_back(y);
        outputs.push_back(grad(sum(y * cos(y)), x));
    }
    Function f = function({x}, outputs, {.device = tested_device()});
    Random random(3);
    for (const Dims& size : {Dims{2, 9, 12}, Dims{1, 4, 5}, Dims{0, 8, 8}, Dims{3, 5, 30}, Dims{1, 41, 37}}) {
        const Array images = random_array(float32, {size[0], 2, size[1], size[2]}, random);
        INFO(size[0] << " x 2 x " << size[1] << " x " << size[2]);
        CHECK(differences(f, {x}, outputs, {images}) == "");
    }
}

// What lies outside of a guard may be NaN: it is not read into the result.
TEST_CASE("what a guard keeps out does not count") {
    const Expr x = input(float32, {-1, -1}, "x");
    const Expr y = concatenate({x[Index{until(2), colon}], x[Index{from(2), colon}] * 0 + 1}, 0);
    Function f = function({x}, y, {.device = tested_device()});
    std::vector<float> numbers(5 * 600, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < 2 * 600; ++i) numbers[i] = static_cast<float>(i);
    const Results results = f.call(std::vector<Array>{Array(numbers, Dims{5, 600})});
    CHECK(results[0].at(0) == 0);
    CHECK(results[0].at(2 * 600 - 1) == 2 * 600 - 1);
    CHECK(std::isnan(results[0].at(2 * 600)));
}

// Each generation reads the one before at two places or more: neither kernels nor planning may grow with
// every path.
TEST_CASE("rows rearranged generation after generation, of a length that is known at the call alone") {
    constexpr int generations = 12;
    const Expr x = input(float32, {-1}, "x"), k = lscalar("k");
    Expr rolls = x, flips = x, halves = x, cuts = x;
    for (int i = 0; i < generations; ++i) {
        rolls = concatenate({rolls[from(3)], rolls[until(3)]}, 0);
        if (i < 4) flips = concatenate({flip(flips[until(5 + i)], 0), flips[from(5 + i)]}, 0);
        if (i < 6) halves = concatenate({halves[Slice{{}, {}, 2}], halves[Slice{Expr(1), {}, 2}]}, 0);
        cuts = cuts[Slice{{}, k}] + cuts[Slice{{}, k}] * 2;
    }
    Function f = function({x, k}, {rolls, flips, halves, cuts}, {.device = tested_device()});
    for (const std::int64_t n : {40, 301}) {
        std::vector<float> values(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) - 18;
        std::vector<float> rolled = values, flipped = values, halved = values;
        for (int i = 0; i < generations; ++i) {
            std::rotate(rolled.begin(), rolled.begin() + 3, rolled.end());
            if (i < 4) std::reverse(flipped.begin(), flipped.begin() + 5 + i);
            if (i >= 6) continue;
            const std::vector<float> before = halved;
            const std::size_t first = (before.size() + 1) / 2;
            for (std::size_t j = 0; j < before.size(); ++j)
                halved[j] = before[j < first ? 2 * j : 2 * (j - first) + 1];
        }
        const Results r = f(Array(values), Array(std::int64_t{33}));
        INFO(n);
        CHECK(r[0].to_vector<float>() == rolled);
        CHECK(r[1].to_vector<float>() == flipped);
        CHECK(r[2].to_vector<float>() == halved);
        const auto cut = r[3].to_vector<float>();
        REQUIRE(cut.size() == 33);
        for (std::size_t i = 0; i < cut.size(); ++i) CHECK(cut[i] == values[i] * 531441);
    }
}

TEST_CASE("bounds that choose among lengths of a call, and leave guards open") {
    const Expr x = matrix("x"), i = lscalar("i"), j = lscalar("j");
    const Slice first{{}, i};
    const std::vector<std::pair<int, int>> below{{0, 4}, {0, 0}};
    const std::vector<Expr> results{
        set_subtensor(pad(x, below), {first}, Expr(7.0F)),
        set_subtensor(concatenate({x, x[Slice{j, {}}]}, 0), {first}, Expr(7.0F)),
        pad(pad(x, below)[Slice{{}, j}], below) + 1,
        pad(concatenate({x, x[Slice{{}, j}]}, 0)[first], below),
    };
    FunctionOptions o{.device = tested_device(), .specialise = false}, expected{.device = "reference"};
    Function f = function({x, i, j}, results, o), g = function({x, i, j}, results, expected);
    Random random(9);
    for (const Dims& shape : {Dims{1, 1}, Dims{5, 3}, Dims{4, 40}, Dims{40, 33}})
        for (const std::int64_t a : {0, 1, 3, 44})
            for (const std::int64_t b : {0, 2, 50}) {
                const Array value = random_array(float32, shape, random);
                const Results got = f(value, Array(a), Array(b)), want = g(value, Array(a), Array(b));
                INFO(text_of(shape) << " " << a << " " << b);
                for (std::size_t k = 0; k < results.size(); ++k) CHECK(difference(got[k], want[k]) == "");
            }
}
