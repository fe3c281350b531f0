// Parts of computed arrays side by side, as wrapped and rolled ones are: of the same function in all parts,
// of several, of parts that overlap, and of windows of them.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/oracles.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct WrappedGraph {
    std::vector<Expr> inputs, outputs;
    std::vector<Array> values;

    Expr input(DType dtype, const Dims& dims, Random& random) {
        inputs.push_back(bitale::input(dtype, dims, fmt::format("x{}", inputs.size())));
        values.push_back(random_array(dtype, dims, random));
        return inputs.back();
    }

    void check() const {
        Function f =
            function(std::vector<Input>(inputs.begin(), inputs.end()), outputs, {.device = tested_device()});
        const Results results = f.call(values);
        const std::vector<WidePtr> expected = evaluated_wide(outputs, inputs, values);
        for (std::size_t k = 0; k < outputs.size(); ++k) {
            INFO("output " << k << " of shape " << results[k].shape().size());
            CHECK(difference(results[k], *expected[k]) == "");
        }
    }
};

Expr part(const Expr& x, std::size_t axis, std::int64_t begin, std::int64_t end) {
    Index index(colon);
    index.items.assign(axis, colon);
    index.items.push_back(Slice{begin, end});
    return x[index];
}

Expr wrapped(const Expr& x, std::size_t axis, std::int64_t length) {
    return concatenate({part(x, axis, length - 1, length), x, part(x, axis, 0, 1)}, static_cast<int>(axis));
}

Expr function_of(const Expr& x, int which) {
    switch (which) {
        case 0: return exp(x);
        case 1: return 1 / (1 + x * x);
        case 2: return tanh(x) * x + 0.5;
        case 3: return x * 3;
        default: return where(x > 0, sqrt(abs(x) + 1), cos(x));
    }
}

// So many parts, of one function or of several, that may overlap.
Expr parts_of(const Expr& x, const Dims& dims, Random& random) {
    const auto axis = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(dims.size()) - 1));
    const bool one_function = random.chance(2);
    const int which = static_cast<int>(random.between(0, 4));
    std::vector<Expr> parts;
    for (std::int64_t k = random.between(2, 5); k > 0; --k) {
        const std::int64_t begin = random.between(0, dims[axis] - 1),
                           end = random.between(begin + 1, dims[axis]);
        const Expr y = function_of(x, one_function ? which : static_cast<int>(random.between(0, 4)));
        parts.push_back(part(y, axis, begin, end));
    }
    if (random.chance(6)) parts.push_back(parts[0] * 0);
    return concatenate(parts, static_cast<int>(axis));
}

std::size_t count(const std::string& text, const std::string& of) {
    std::size_t n = 0;
    for (std::size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++n;
    return n;
}

// With mode=fast_compile loops are not cut.
std::string source_of(const Expr& x, const Expr& y) {
    Options fast_run = options();
    fast_run.mode = Options::Mode::fast_run;
    const ScopedOptions scope(fast_run);
    std::string all;
    const Function f = function({x}, y, {.device = "cpu"});
    for (const Kernel& k : f.kernels()) all += k.source;
    return all;
}

}  // namespace

TEST_CASE("functions are wrapped and rolled along rows of all lengths") {
    Random random(3);
    WrappedGraph graph;
    for (const std::int64_t length : {1, 2, 5, 16, 23, 24, 25, 63, 64, 100, 256, 515})
        for (const DType dtype : {float32, float64}) {
            const std::int64_t rows = length % 2 == 0 ? 7 : 1;
            const Expr x = graph.input(dtype, {rows, length}, random), y = exp(x), z = tanh(x) * x;
            graph.outputs.push_back(wrapped(y, 1, length));
            graph.outputs.push_back(wrapped(wrapped(z, 1, length), 0, rows));
            graph.outputs.push_back(roll(y, 1, 1) + roll(y, -1, 1));
            graph.outputs.push_back(roll(roll(z, 1, 0), 3, 1));
            graph.outputs.push_back(sum(roll(y, 2, 1) * x, {1}));
        }
    graph.check();
}

TEST_CASE("parts of random functions are put together") {
    Random random(4);
    WrappedGraph graph;
    for (const Dims& dims : {Dims{9, 31}, Dims{3, 40, 6}, Dims{130}, Dims{2, 3, 70}, Dims{33, 1, 2}})
        for (int k = 0; k < 8; ++k) {
            const Expr x = graph.input(random.chance(3) ? float64 : float32, dims, random);
            const Expr y = parts_of(x, dims, random);
            graph.outputs.push_back(y);
            graph.outputs.push_back(sum(y * y + 1));
            graph.outputs.push_back(grad(sum(sqr(y)), x));
        }
    graph.check();
}

TEST_CASE("stencils of two steps are rolled") {
    Random random(5);
    WrappedGraph graph;
    for (const Dims& dims : {Dims{12, 40}, Dims{5, 9, 33}, Dims{4, 4, 4}, Dims{2, 300}}) {
        const Expr x = graph.input(float32, dims, random);
        const auto step = [&](const Expr& u) {
            Expr sum = -2.0 * static_cast<double>(dims.size()) * u;
            for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis)
                sum = sum + roll(u, 1, axis) + roll(u, -1, axis);
            return u + sum * 0.1;
        };
        graph.outputs.push_back(step(step(x)));
        graph.outputs.push_back(step(1 / (1 + sqr(x))));
    }
    graph.check();
}

TEST_CASE("windows of rolled images, and their product") {
    Random random(6);
    WrappedGraph graph;
    for (const std::int64_t channels : {5, 24, 96}) {
        const Expr x = graph.input(float32, {2, 16, 16, channels}, random);
        const Expr w = graph.input(float32, {channels, 11}, random);
        const auto windows = [&](const Expr& r) {
            return reshape(transpose(reshape(r, {2, 4, 4, 4, 4, channels}), {0, 1, 3, 2, 4, 5}),
                           {512, channels});
        };
        const Expr y = windows(roll(roll(x, -3, 1), 2, 2));
        graph.outputs.push_back(y);
        graph.outputs.push_back(dot(y, w));
        graph.outputs.push_back(grad(sum(sqr(y)), x));
    }
    graph.check();
}

TEST_CASE("a function of short rows that are put together is computed once") {
    const Expr x = input(float32, {4096, 16}, "x");
    const std::string text = source_of(x, wrapped(exp(x), 1, 16));
    CHECK(count(text, "b_exp(") <= 2);  // whole vectors, and the rest of a row
    const std::string rolls = source_of(x, roll(exp(x), 1, 1));
    CHECK(count(rolls, "b_exp(") == 1);
}

TEST_CASE("no lane asks for what all lanes of a row know") {
    const Expr x = input(float32, {4, 32, 32, 96}, "x");
    const Expr rolled = reshape(roll(roll(x, -4, 1), -4, 2), {4, 4, 8, 4, 8, 96});
    const std::string text = source_of(x, transpose(rolled, {0, 1, 3, 2, 4, 5}));
    // A choice inside of a loop would be an assignment with a condition.
    CHECK(count(text, "? p0[") == 0);
}

TEST_CASE("the step of a stencil that many places of the next one read is stored") {
    const Expr x = input(float32, {64, 64, 64}, "x");
    const auto step = [](const Expr& u) {
        return u + (roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) + roll(u, 1, 2) +
                    roll(u, -1, 2) - 6 * u) *
                       0.1;
    };
    const std::string report = function({x}, step(step(x)), {.device = "cpu"}).report(Detail::complete);
    CHECK(report.find("costs too much to compute more than once") != std::string::npos);
}

TEST_CASE("stencils by rolls along the first axis of arrays of unknown lengths") {
    PackedCases cases(tested_device());
    Random random(6);
    for (const Dims& shape : {Dims{1, 40, 30}, Dims{2, 7, 19}, Dims{9, 33, 40}}) {
        const Expr x = tensor3("x"), y = tensor3("y");
        const std::vector<Array> one{random_array(float32, shape, random)},
            two{one[0], random_array(float32, shape, random)};
        const std::string of = text_of(shape);
        const Expr centred = x - mean(x, {1, 2}, {.keepdims = true});
        cases.add(of + ", difference", {x}, one, tanh(x - roll(x, 1, 0)));
        cases.add(of + ", of centred ones", {x}, one, centred - roll(centred, 1, 0));
        cases.add(of + ", second", {x, y}, two, roll(x, 1, 0) + roll(y, -1, 0) - 2 * x);
        cases.add(of + ", gradient", {x}, one, grad(sum(sqr(x - roll(x, 1, 0))), x));
    }
    cases.run();
}
