// Recurrences that are written step by step: their steps are equal parts of few functions.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr std::int64_t batch = 8, width = 12, hidden = 48;

struct Recurrence {
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    std::vector<Array> values;
};

// h = tanh(x[t] w + h u), with the gradients of the sum of all h.
Recurrence recurrence(std::int64_t steps, bool known, std::uint64_t seed) {
    Random random(seed);
    const Dims dims = known ? Dims{steps, batch, width} : Dims{steps, -1, width};
    const Expr x = input(float32, dims, "x"), w = input(float32, Dims{width, hidden}, "w"),
               u = input(float32, Dims{hidden, hidden}, "u"), b = input(float32, Dims{hidden}, "b");
    Recurrence r{{x, w, u, b}, {}, {}};
    r.values = {random_array(float32, {steps, batch, width}, random),
                random_array(float32, {width, hidden}, random, -0.3, 0.3),
                random_array(float32, {hidden, hidden}, random, -0.3, 0.3),
                random_array(float32, {hidden}, random)};
    Expr h = dot(x[0], w), total = sum(h);
    for (std::int64_t t = 1; t < steps; ++t) {
        h = tanh(dot(x[t], w) + dot(h, u) + b);
        total = total + sum(sqr(h), {0, 1});
    }
    r.outputs = {h, grad(total, w), grad(total, u), grad(total, b), grad(total, x)};
    return r;
}

std::string differences(const Recurrence& r, const Tolerance& near) {
    Function f = function(r.inputs, r.outputs, {.device = tested_device()});
    const Results got = f.call(r.values),
                  expected = function(r.inputs, r.outputs, {.device = "reference"}).call(r.values);
    for (std::size_t k = 0; k < r.outputs.size(); ++k)
        if (const std::string d = difference(got[k], expected[k], near); !d.empty())
            return fmt::format("output {}: {}", k, d);
    return "";
}

std::size_t characters(const Recurrence& r) {
    Function f = function(r.inputs, r.outputs, {.device = "cpu"});
    std::size_t all = 0;
    std::vector<std::string> names;
    for (const Kernel& k : f.kernels()) {
        if (std::find(names.begin(), names.end(), k.name) != names.end()) continue;
        names.push_back(k.name);
        all += k.source.size();
    }
    return all;
}

}  // namespace

TEST_CASE("recurrences written step by step, and their gradients") {
    for (const std::int64_t steps : {2, 3, 5, 14})
        for (const bool known : {true, false}) {
            INFO(steps << " steps, " << (known ? "known" : "unknown"));
            CHECK(differences(recurrence(steps, known, 40 + static_cast<std::uint64_t>(steps)),
                              {.of_largest = 2e-5}) == "");
        }
}

TEST_CASE("the text of a recurrence grows by calls, not by steps") {
    if (std::string(tested_device()) != "cpu") return;
    Options usual = options();
    usual.mode = Options::Mode::fast_run;
    const ScopedOptions scope(usual);
    const std::size_t some = characters(recurrence(8, true, 50)),
                      twice = characters(recurrence(16, true, 50));
    INFO(some << " and " << twice << " characters");
    CHECK(2 * twice < 3 * some);
}
