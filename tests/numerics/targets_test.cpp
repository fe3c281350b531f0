// Kernels compiled for narrower vectors than the machine has, and by mode=fast_compile: the same bits.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "runtime/cpu/features.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Workload {
    std::vector<Input> inputs;
    std::vector<Array> values;
    std::vector<Expr> outputs;

    Expr add(DType dtype, const Dims& shape, Random& random, double low = -1, double high = 1) {
        const Expr x = input(dtype, shape, "x" + std::to_string(inputs.size()));
        inputs.emplace_back(x);
        values.push_back(random_array(dtype, shape, random, low, high));
        return x;
    }
};

// Sums of products in vector registers, with tiles, rests of rows and of lanes, and channels as lanes.
Workload products() {
    Workload w;
    Random random(3);
    for (const Dims& s : {Dims{17, 33, 19}, Dims{5, 70, 10}, Dims{64, 12, 128}}) {
        const Expr a = w.add(float32, {s[0], s[1]}, random), b = w.add(float32, {s[1], s[2]}, random);
        w.outputs.push_back(relu(dot(a, b)));
        w.outputs.push_back(dot(transpose(b), transpose(a)));
    }
    const Expr a = w.add(float64, {9, 21}, random), b = w.add(float64, {21, 11}, random);
    w.outputs.push_back(dot(a, b));
    for (const int channels : {3, 16, 20}) {
        const Expr x = w.add(float32, {3, 2, 13, 14}, random),
                   f = w.add(float32, {channels, 2, 3, 3}, random);
        const Expr loss = sum(sqr(max_pool(relu(conv2d(x, f)), 2)));
        w.outputs.push_back(loss);
        for (const Expr& g : grad(loss, std::vector<Expr>{x, f})) w.outputs.push_back(g);
    }
    return w;
}

Workload elements() {
    Workload w;
    Random random(4);
    for (const std::int64_t length : {7, 64, 103}) {
        const Expr x = w.add(float32, {5, length}, random, -4, 4),
                   y = w.add(float32, {5, length}, random, 0.1, 3);
        w.outputs.push_back(exp(x) + log(y) * tanh(x));
        w.outputs.push_back(sigmoid(x) / sqrt(y) + sin(x) * erf(y));
        w.outputs.push_back(softmax(x));
        w.outputs.push_back(sum(x * y, {0}) + 1.0);
        w.outputs.push_back(max(x, {1}));
        w.outputs.push_back(argmax(x, {1}));
        w.outputs.push_back(transpose(x) * 2.0);
        const Expr bytes = w.add(uint8, {6, length}, random, 0, 255),
                   wide = w.add(float64, {3, length}, random);
        w.outputs.push_back(mean(cast(bytes, float32)));
        w.outputs.push_back(sum(bytes, {1}));
        w.outputs.push_back(exp(wide) + sum(wide * wide));
        w.outputs.push_back(cast(cast(x, float16), float32) + cast(cast(y, bfloat16), float32));
    }
    return w;
}

std::vector<Array> results_with(const Options& chosen, const Workload& w) {
    const ScopedOptions scope(chosen);
    Function f = function(w.inputs, w.outputs, {.name = "targets", .device = "cpu"});
    const Results r = f.call(w.values);
    std::vector<Array> all;
    for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    return all;
}

void require_same_bits(const Options& chosen, const std::string& name) {
    Options usual = options();
    usual.disabled.insert("onednn");
    Options other = chosen;
    other.disabled.insert("onednn");
    for (const Workload& w : {products(), elements()}) {
        const std::vector<Array> expected = results_with(usual, w), got = results_with(other, w);
        REQUIRE(got.size() == expected.size());
        for (std::size_t k = 0; k < got.size(); ++k) {
            INFO(name << ", result " << k << ": " << difference(got[k], expected[k]));
            CHECK(same(got[k], expected[k]));
        }
    }
}

bool runs_here(const Options& chosen) {
    const ScopedOptions scope(chosen);
    try {
        return !target_features().architecture.empty();
    } catch (const Error& e) {
        CHECK_THAT(e.what(), ContainsSubstring("cpu_target=" + chosen.cpu_target));
        CHECK_THAT(e.what(), ContainsSubstring("it can run native, " + cpu_features().architecture));
        return false;
    }
}

}  // namespace

TEST_CASE("the same bits from vectors of every width") {
    int run = 0;
    for (const char* target : {"x86-64-v4", "x86-64-v3", "x86-64", "aarch64"}) {
        Options chosen = options();
        chosen.cpu_target = target;
        if (!runs_here(chosen)) continue;
        require_same_bits(chosen, target);
        ++run;
    }
    CHECK(run > 0);
}

TEST_CASE("the same bits when compiled fast") {
    Options chosen = options();
    chosen.mode = Options::Mode::fast_compile;
    require_same_bits(chosen, "fast_compile");
}
