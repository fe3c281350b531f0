// Gradients through max-pooling into the convolutions before it: windows that lie apart, touch and overlap,
// lengths that they do not divide, channels that fill vector registers or leave lanes over; against the
// oracle, and with the same bits however they are computed.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Pooled {
    std::int64_t channels, filters, rows, columns;
    Size2 kernel, window, stride, pad;
    bool padded = false, flip = true;
};

const std::vector<Pooled>& pooled_cases() {
    static const std::vector<Pooled> list = {
        {8, 16, 11, 9, {3, 3}, {2, 2}, {2, 2}, {0, 0}},
        {9, 17, 10, 13, {3, 3}, {2, 2}, {2, 2}, {0, 0}, true, false},
        {33, 8, 8, 10, {2, 3}, {2, 2}, {2, 2}, {0, 0}, false, false},
        {40, 70, 7, 8, {3, 3}, {3, 3}, {2, 2}, {1, 1}, true},
        {16, 24, 12, 11, {5, 5}, {4, 4}, {2, 2}, {0, 0}},
        {12, 10, 14, 15, {5, 4}, {4, 4}, {4, 4}, {0, 0}, true},
        {8, 64, 9, 9, {3, 2}, {2, 3}, {2, 3}, {0, 0}},
        {10, 9, 6, 6, {4, 7}, {2, 2}, {2, 2}, {0, 0}, true},  // more taps than there are registers
    };
    return list;
}

// A factor of each element behind the pooling, and a relu.
Expr pooled(const Pooled& p, const Expr& x, const Expr& w) {
    const Expr y = conv2d(x, w, {.border_mode = p.padded ? half : valid, .filter_flip = p.flip});
    const Expr h = max_pool(relu(y), p.window, {.stride = p.stride, .pad = p.pad});
    return sum(h * cos(h));
}

struct PooledOperands {
    Expr x, w;
    std::vector<Array> values;
};

PooledOperands operands_of(const Pooled& p, Random& random) {
    const Dims image{3, p.channels, p.rows, p.columns},
        filters{p.filters, p.channels, p.kernel.h, p.kernel.w};
    return {input(float32, image, "x"),
            input(float32, filters, "w"),
            {random_array(float32, image, random, -1, 1), random_array(float32, filters, random, -0.2, 0.2)}};
}

std::vector<Array> gradients_with(const Options& chosen, const char* device) {
    const ScopedOptions scope(chosen);
    Random random(21);
    std::vector<Array> all;
    for (const Pooled& p : pooled_cases()) {
        const PooledOperands in = operands_of(p, random);
        const Expr cost = pooled(p, in.x * 2, in.w);
        Function f = function({in.x, in.w}, {grad(cost, in.x), grad(cost, in.w)}, {.device = device});
        const Results r = f.call(in.values);
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    }
    return all;
}

}  // namespace

TEST_CASE("gradients of images and filters through pooling") {
    constexpr double sums_that_cancel = 1e-4;
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(20);
    for (const Pooled& p : pooled_cases()) {
        const PooledOperands in = operands_of(p, random);
        const Expr cost = pooled(p, in.x, in.w);
        const std::string what = fmt::format("{} -> {}, {} x {}", p.channels, p.filters, p.rows, p.columns);
        cases.add(what + ", image", {in.x, in.w}, in.values, grad(cost, in.x));
        cases.add(what + ", filters", {in.x, in.w}, in.values, grad(cost, in.w));
    }
    cases.run();
}

TEST_CASE("pooling alone and its gradient, of planes and of channels last") {
    PackedCases cases(tested_device());
    Random random(22);
    for (const Pooled& p : pooled_cases()) {
        const Dims image{2, 5, 2 * p.rows + 1, p.columns + 20};
        const Expr x = input(float32, image, "x");
        const std::vector<Array> values = {random_array(float32, image, random, -1, 1)};
        const Expr y = max_pool(x, p.window, {.stride = p.stride, .pad = p.pad});
        const std::string what = fmt::format("windows of {} x {}", p.window.h, p.window.w);
        cases.add(what, {x}, values, y);
        cases.add(what + ", gradient", {x}, values, grad(sum(y * cos(y)), x));
    }
    cases.run();
}

TEST_CASE(
    "the same bits through pooling for every number of threads, vectors of every width and short text") {
    Options usual = options();
    usual.threads = 1;
    const std::vector<Array> expected = gradients_with(usual, "cpu");
    const auto check = [&](const std::string& name, const Options& chosen, const char* device) {
        const std::vector<Array> got = gradients_with(chosen, device);
        REQUIRE(got.size() == expected.size());
        for (std::size_t k = 0; k < got.size(); ++k) {
            INFO(name << ", result " << k << ": " << difference(got[k], expected[k]));
            CHECK(same(got[k], expected[k]));
        }
    };
    for (const int threads : {2, 3}) {
        Options chosen = usual;
        chosen.threads = threads;
        check(fmt::format("{} threads", threads), chosen, "cpu");
    }
    Options narrow = usual;
    narrow.cpu_target = "x86-64";
    check("vectors of 16 bytes", narrow, "cpu");
    Options fast = usual;
    fast.mode = Options::Mode::fast_compile;
    check("short text", fast, "cpu");
}

TEST_CASE("gradients of pooling between a convolution and the image, whose windows overlap") {
    struct Between {
        Dims image;
        std::int64_t filters;
        Size2 kernel, window, stride, pad;
    };
    Random random(22);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    for (const Between& b : std::vector<Between>{{{4, 48, 9, 11}, 16, {1, 1}, {3, 3}, {1, 1}, {1, 1}},
                                                 {{3, 16, 8, 10}, 24, {3, 3}, {3, 3}, {2, 2}, {1, 0}},
                                                 {{2, 9, 7, 6}, 8, {3, 2}, {4, 5}, {1, 1}, {0, 2}},
                                                 {{5, 8, 12, 12}, 40, {1, 1}, {2, 2}, {2, 2}, {0, 0}},
                                                 {{1, 33, 6, 40}, 12, {1, 3}, {2, 3}, {1, 2}, {0, 0}}})
        for (const bool known : {true, false}) {
            Dims declared = b.image;
            if (!known) declared[0] = -1;
            const Dims filters{b.filters, b.image[1], b.kernel.h, b.kernel.w};
            const Expr x = input(float32, declared, "x"), w = input(float32, filters, "w");
            inputs.insert(inputs.end(), {x, w});
            values.push_back(random_array(float32, b.image, random, -1, 1));
            values.push_back(random_array(float32, filters, random, -0.2, 0.2));
            const Expr pooled = max_pool(x, b.window, {.stride = b.stride, .pad = b.pad});
            const Expr y = conv2d(pooled, w, {.border_mode = half, .filter_flip = false});
            const auto name = [&](const char* what) {
                return fmt::format("{} of {} {}", what, known ? "known" : "unknown", text_of(b.image));
            };
            const Tolerance close{.ulps = 8, .of_largest = 1e-5};
            cases.push_back({name("gradient"), grad(sum(sqr(y)), x), close});
            cases.push_back({name("behind a map"), grad(sum(sqr(y)), x) + 2 * x, close});
            cases.push_back({name("of the filters beside it"), grad(sum(sqr(y)), w), close});
            cases.push_back({name("of pooled values"), grad(sum(sqr(y)), pooled), close});
        }
    OnTwoDevices run(inputs, cases, "between");
    REQUIRE(run(values) == "");
}
