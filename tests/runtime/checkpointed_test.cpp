// Gradients that compute values between checkpoints again: the same numbers, less memory.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Blocks of a residual network with dropout, a checkpoint after each `every` of them; 0: none.
struct Chain {
    Chain(int blocks, std::int64_t width, int every, DType dtype, double rate = 0.25)
        : x(input(dtype, {-1, width}, "x")) {
        Random random(5);
        Expr h = x;
        for (int k = 0; k < blocks; ++k) {
            const auto weights = [&] {
                const double size = 1 / std::sqrt(static_cast<double>(width));
                return shared(random_array(dtype, {width, width}, random, -size, size),
                              "w" + std::to_string(parameters.size()));
            };
            parameters.push_back(weights());
            parameters.push_back(weights());
            Expr inside = tanh(dot(h, parameters[parameters.size() - 2]));
            if (rate > 0) inside = dropout(inside, rate, stream);
            h = tanh(dot(inside, parameters.back())) + 0.5 * h;
            if (every > 0 && (k + 1) % every == 0) h = checkpoint(h);
        }
        loss = mean(sqr(h - 0.3));
    }
    // The loss and the new parameters of a step.
    std::vector<Array> step(const std::string& device, const Array& argument, std::int64_t rows = 0) {
        Function f = function({x}, loss,
                              {.updates = sgd(loss, parameters, 0.5), .device = device, .micro_batch = rows});
        std::vector<Array> all{Array(f(argument))};
        all.push_back(f(argument));
        for (const Shared& p : parameters) all.push_back(p.get_value());
        return all;
    }
    Expr x, loss;
    std::vector<Shared> parameters;
    RandomStream stream{9};
};

}  // namespace

TEST_CASE("a step with checkpoints is the step without", "[core][runtime][checkpointed]") {
    Random random(1);
    const Array argument = random_array(float64, {11, 8}, random);
    const std::vector<Array> expected = Chain(5, 8, 0, float64).step("reference", argument);
    for (const int every : {1, 2, 5}) {
        CHECK(differences(Chain(5, 8, every, float64).step("reference", argument), expected, 1e-13) == "");
        for (const std::string& device : cpu_and_emulator()) {
            INFO(device << ", a checkpoint after " << every);
            CHECK(differences(Chain(5, 8, every, float64).step(device, argument), expected, 1e-12) == "");
        }
    }
    for (const std::string& device : cpu_and_emulator()) {
        INFO(device << ", in parts");
        CHECK(differences(Chain(5, 8, 2, float64).step(device, argument, 4), expected, 1e-12) == "");
    }
}

TEST_CASE("checkpoints of convolutions, skips and shared operands", "[core][runtime][checkpointed]") {
    Random random(2);
    const Expr x = input(float64, {-1, 3, 8, 8}, "x");
    const Shared w1 = shared(random_array(float64, {4, 3, 3, 3}, random, -1, 1)),
                 w2 = shared(random_array(float64, {4, 4, 3, 3}, random, -1, 1)),
                 scale = shared(random_array(float64, {1, 4, 1, 1}, random, 0.5, 1));
    const auto cost = [&](bool with) {
        const auto border = [&](const Expr& h) { return with ? checkpoint(h) : h; };
        const Expr a = border(max_pool(conv2d(x, w1, {.border_mode = half}), 2));
        const Expr centred = a - mean(a, {0, 2, 3}, {.keepdims = true});
        const Expr norm = centred / sqrt(mean(sqr(centred), {0, 2, 3}, {.keepdims = true}) + 1e-3);
        const Expr skip = relu(norm * scale);
        const Expr b = border(conv2d(skip, w2, {.border_mode = half}) + skip);
        // Read behind the last checkpoint too: skip is kept.
        const Expr c = border(exp(0.1 * b)) + skip;
        return mean(sqr(softmax(flatten(c, 2)))) + mean(border(cast(gt(b, 0), float64)) * c);
    };
    const std::vector<Expr> wrt{w1, w2, scale, x};
    const auto gradients_of = [&](bool with, const std::string& device) {
        // Of each by itself, as gradients are often written.
        std::vector<Expr> outputs{cost(with)};
        for (const Expr& v : wrt) outputs.push_back(grad(outputs[0], v));
        for (const Expr& g : grad(outputs[0], wrt)) outputs.push_back(g);
        return function({x}, outputs, {.device = device});
    };
    const Array argument = random_array(float64, {5, 3, 8, 8}, random);
    const Results expected = gradients_of(false, "reference")(argument);
    std::vector<std::string> all = cpu_and_emulator();
    all.emplace_back("reference");
    for (const std::string& device : all) {
        INFO(device);
        const Results got = gradients_of(true, device)(argument);
        for (std::size_t k = 0; k < expected.size(); ++k) {
            INFO(k);
            CHECK(difference(got[k], expected[k], {.of_largest = 1e-11}) == "");
        }
    }
}

TEST_CASE("second derivatives pass checkpoints", "[core][runtime][checkpointed]") {
    const Expr x = vector("x", float64);
    const auto outputs = [&](bool with) {
        const Expr h = tanh(x * x), k = with ? checkpoint(h) : h;
        const Expr m = exp(sin(k) * x), cost = sum(with ? checkpoint(m) : m);
        const Expr g = grad(cost, x);
        return std::vector<Expr>{g, grad(sum(sqr(g)), x)};
    };
    const Array a = std::vector<double>{-1.5, -0.25, 0, 0.5, 2};
    for (const std::string& device : cpu_and_emulator()) {
        const Results got = function({x}, outputs(true), {.device = device})(a),
                      expected = function({x}, outputs(false), {.device = "reference"})(a);
        for (std::size_t k = 0; k < 2; ++k) CHECK(difference(got[k], expected[k], {.relative = 1e-12}) == "");
    }
}

TEST_CASE("without a gradient a checkpoint is its operand", "[core][runtime][checkpointed]") {
    const Expr x = vector("x"), n = ivector("n");
    Function f = function({x, n}, {checkpoint(x) * 2, checkpoint(n)});
    const Results r = f(std::vector<float>{1, 2}, std::vector<std::int32_t>{3});
    CHECK(r[0].at(1) == 4);
    CHECK(r[1].at(0) == 3);
    CHECK(debugprint(function({x}, checkpoint(x) + 1)) == debugprint(function({x}, x + 1)));
    CHECK_THAT(error_of([&] { checkpoint(Expr()); }), ContainsSubstring("checkpoint"));
}

TEST_CASE("a chain of 16 blocks with a checkpoint after each four takes less memory",
          "[core][runtime][checkpointed]") {
    for (const std::string& device : cpu_and_emulator())
        for (const bool step : {true, false}) {
            const auto planned = [&](int every, std::int64_t rows) {
                const Chain chain(16, 32, every, float32, 0);
                const Expr g = sum(sqr(grad(chain.loss, chain.x)));
                const Function f =
                    step ? function({chain.x}, chain.loss,
                                    {.updates = sgd(chain.loss, chain.parameters, 0.5), .device = device})
                         : function({chain.x}, {chain.loss, g}, {.device = device});
                return f.memory_plan({{chain.x, {rows, 32}}});
            };
            const MemoryPlan plain = planned(0, 4096), four = planned(4, 4096);
            INFO(device << (step ? ", a step" : ", a gradient") << "\n" << plain << four);
            CHECK(four.arena_bytes * 10 < plain.arena_bytes * 6);
        }
}
