// Values saved for gradients in half types: the rounding, what stays as it is, and what that saves.
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT
using Kind = MemoryPlan::Kind;

namespace {

double rounded(double x, DType dtype) { return Array(x).as(dtype).as(float64).at(0); }

bool same_bits(const Array& a, const Array& b) { return difference(a, b) == ""; }

// Convolution, batch normalisation by hand, pooling, dropout, and dense layers.
struct NormalisedNetwork {
    NormalisedNetwork() {
        const auto add = [&](const Dims& shape, double size) {
            parameters.push_back(shared(random_array(float32, shape, random, -size, size),
                                        "p" + std::to_string(parameters.size())));
            return parameters.back();
        };
        Expr h = conv2d(x, add({8, 1, 3, 3}, 0.5), {.border_mode = half});
        const Expr centred = h - mean(h, {0, 2, 3}, {.keepdims = true});
        const Expr norm = centred / sqrt(mean(sqr(centred), {0, 2, 3}, {.keepdims = true}) + 1e-3F);
        h = max_pool(relu(norm * add({1, 8, 1, 1}, 1) + add({1, 8, 1, 1}, 0.5)), 2);
        h = relu(conv2d(h, add({8, 8, 3, 3}, 0.2), {.border_mode = half})) + h;
        h = dropout(relu(dot(flatten(h, 2), add({288, 64}, 0.1)) + add({64}, 0.1)), 0.25, stream);
        h = tanh(dot(h, add({64, 32}, 0.2)));
        loss = mean(categorical_crossentropy(softmax(dot(h, add({32, 5}, 0.3))), y));
    }
    Function step(const std::string& device, DType activations, std::int64_t rows = 0) const {
        std::vector<Expr> outputs{loss};
        for (const Expr& g : grad(loss, std::vector<Expr>(parameters.begin(), parameters.end())))
            outputs.push_back(g);
        return function({x, y}, outputs,
                        {.name = "step",
                         .device = device,
                         .hold_streams = true,
                         .micro_batch = rows,
                         .activations = activations});
    }
    std::vector<Array> batch(std::int64_t n) {
        return {random_array(float32, {n, 1, 12, 12}, random, -1, 1), random_array(int32, {n}, random, 0, 4)};
    }
    Random random{3};
    RandomStream stream{5};
    std::vector<Shared> parameters;
    Expr x = input(float32, {-1, 1, 12, 12}, "x"), y = ivector("y"), loss;
};

// Dense layers of 64, the memory of which is activations.
struct Dense {
    Dense() {
        Random random(9);
        Expr h = x;
        for (int k = 0; k < 16; ++k) {
            parameters.push_back(
                shared(random_array(float32, {64, 64}, random, -0.2, 0.2), "w" + std::to_string(k)));
            h = tanh(dot(h, parameters.back()));
        }
        loss = mean(sqr(h));
    }
    Function step(const std::string& device, DType activations, ByteCount limit = {}) const {
        return function({x}, loss,
                        {.updates = sgd(loss, parameters, 0.1),
                         .device = device,
                         .memory_limit = limit,
                         .activations = activations});
    }
    std::vector<Shared> parameters;
    Expr x = input(float32, {-1, 64}, "x"), loss;
};

}  // namespace

TEST_CASE("saved activations are rounded once, the same on every device", "[core][runtime][activations]") {
    // All sums are of integers and exact. The loss depends on what is rounded linearly.
    Random random(1);
    const std::int64_t rows = 7, columns = 5, hidden = 9;
    const auto integers = [&](const Dims& shape, std::int64_t most) {
        std::vector<float> values;
        for (std::int64_t k = 0; k < count_of(shape); ++k)
            values.push_back(static_cast<float>(random.between(-most, most)));
        return Array(values, shape);
    };
    const Array a = integers({rows, columns}, 99), w = integers({columns, hidden}, 99),
                v = integers({hidden, 3}, 9), t = integers({rows, 3}, 9);
    const auto at = [](const Array& m, std::int64_t i, std::int64_t j) { return m.at(i * m.shape()[1] + j); };
    for (const DType dtype : {float32, bfloat16, float16}) {
        std::vector<double> h, of_v, of_w;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t k = 0; k < hidden; ++k) {
                double sum = 0;
                for (std::int64_t j = 0; j < columns; ++j) sum += at(a, i, j) * at(w, j, k);
                h.push_back(rounded(std::max(sum, 0.0), dtype));
            }
        for (std::int64_t k = 0; k < hidden; ++k)
            for (std::int64_t c = 0; c < 3; ++c) {
                double sum = 0;
                for (std::int64_t i = 0; i < rows; ++i)
                    sum += h[static_cast<std::size_t>(i * hidden + k)] * at(t, i, c);
                of_v.push_back(sum);
            }
        for (std::int64_t j = 0; j < columns; ++j)
            for (std::int64_t k = 0; k < hidden; ++k) {
                double sum = 0;
                for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t c = 0; c < 3; ++c)
                        if (h[static_cast<std::size_t>(i * hidden + k)] > 0)
                            sum += at(a, i, j) * at(v, k, c) * at(t, i, c);
                of_w.push_back(sum);
            }
        for (const std::string& device : all_devices()) {
            INFO(name_of(dtype) << " on " << device);
            const Shared sw = shared(w, "w"), sv = shared(v, "v");
            const Expr x = matrix("x"), target = matrix("t");
            const Expr loss = sum(dot(relu(dot(x, sw)), sv) * target);
            Function f = function({x, target}, {grad(loss, sv), grad(loss, sw)},
                                  {.device = device, .activations = dtype});
            const Results r = f(a, t);
            CHECK(same_bits(r[0], Array(of_v, {hidden, 3}).as(float32)));
            CHECK(same_bits(r[1], Array(of_w, {columns, hidden}).as(float32)));
        }
    }
}

TEST_CASE("with half activations the loss has the same bits and gradients are near",
          "[core][runtime][activations]") {
    NormalisedNetwork net;
    const std::vector<Array> batch = net.batch(19);
    const std::vector<Array> exact = list_of(net.step("reference=wide", float32).call(batch));
    for (const auto& [dtype, share] : {std::pair{bfloat16, 0.02}, std::pair{float16, 0.003}}) {
        const std::vector<Array> expected = list_of(net.step("reference=wide", dtype).call(batch));
        CHECK(differences(expected, exact, share) == "");
        CHECK(differences(expected, exact, share / 1000) != "");
        for (const std::string& device : cpu_and_emulator()) {
            INFO(device << ", " << name_of(dtype));
            const std::vector<Array> plain = list_of(net.step(device, float32).call(batch)),
                                     got = list_of(net.step(device, dtype).call(batch));
            CHECK(same_bits(got[0], plain[0]));
            // Where float32 rounds to the other neighbour, one element of a sum differs.
            CHECK(differences(got, expected, share / 10) == "");
        }
        const std::vector<Array> parts = list_of(net.step("cpu", dtype, 6).call(batch));
        CHECK(differences(parts, expected, share / 10) == "");
    }
}

TEST_CASE("half activations take half the memory until gradients read them", "[core][runtime][activations]") {
    const Dense net;
    const ExampleShapes rows{{net.x, {3000, 64}}};
    for (const std::string& device : cpu_and_emulator()) {
        const auto saved = [&](const MemoryPlan& plan, DType dtype) {
            std::int64_t bytes = 0;
            for (const MemoryPlan::Buffer& b : plan.buffers)
                if (b.kind == Kind::saved && b.dtype == dtype) bytes += b.bytes;
            return bytes;
        };
        const Function plain = net.step(device, float32), narrow = net.step(device, bfloat16);
        const MemoryPlan before = plain.memory_plan(rows), after = narrow.memory_plan(rows);
        INFO(device << before << after);
        CHECK(saved(before, bfloat16) == 0);
        CHECK(saved(after, bfloat16) > 0);
        CHECK(saved(after, float32) * 20 < saved(before, float32));
        CHECK(after.peak_bytes * 10 < before.peak_bytes * 8);
        for (const MemoryPlan::Buffer& b : after.buffers)
            if (b.kind == Kind::saved && b.dtype == bfloat16)
                CHECK(b.reason == "saved for gradients as bfloat16");
        CHECK_THAT(narrow.report(Detail::complete), ContainsSubstring("saved for gradients as bfloat16"));
        CHECK_THAT(after.json(), ContainsSubstring("saved for gradients as bfloat16"));
    }
}

TEST_CASE("what half activations leave as it is", "[core][runtime][activations]") {
    Random random(4);
    const Array a = random_array(float32, {6, 5}, random, -2, 2);
    for (const std::string& device : all_devices()) {
        INFO(device);
        const auto gradients = [&](const Expr& x, const Expr& cost, DType dtype) {
            return list_of(function({x}, {cost, grad(cost, x)},
                                    {.device = device, .activations = dtype})(a.as(x.dtype())));
        };
        const auto unchanged = [&](const Expr& x, const Expr& cost) {
            const std::vector<Array> plain = gradients(x, cost, float32), half = gradients(x, cost, bfloat16);
            return same_bits(half[0], plain[0]) && same_bits(half[1], plain[1]);
        };
        const Expr x = input(float32, {-1, 5}, "x"), d = matrix("d", float64);
        // Inputs and what is computed from them alone, vectors, numbers, and other dtypes.
        CHECK(unchanged(x, sum(sqr(x * 3 + 1))));
        CHECK(unchanged(x, sum(sqr(sum(x, {0})))));
        CHECK(unchanged(x, sqr(sum(exp(sum(x, {1}))))));
        CHECK(unchanged(d, sum(exp(dot(d, transpose(d)) / 9))));
        // Conditions that rounding would change: close to each other and to a bound.
        const Expr p = dot(x, transpose(x));
        CHECK(unchanged(x, sum(maximum(p, p + 1e-5F * (x[{Slice{}, Slice{0, 1}}])))));
        CHECK(unchanged(x, sum(max(p, {1}))));
        CHECK(unchanged(x, sum(where(gt(p, 1.0001F), p, -p))));
        // Without a gradient there is nothing to save.
        const auto text = [&](DType dtype) {
            return debugprint(function({x}, sum(exp(p)), {.device = device, .activations = dtype}));
        };
        CHECK(text(float16) == text(float32));
    }
}

TEST_CASE("half activations with checkpoints, specialised lengths, limits and empty batches",
          "[core][runtime][activations]") {
    Random random(6);
    const Array a = random_array(float32, {33, 24}, random, -1, 1);
    const Array w0 = random_array(float32, {24, 24}, random, -0.3, 0.3);
    for (const std::string& device : all_devices()) {
        const auto step = [&](const Expr& x, bool keeps, DType dtype) {
            const Shared w = shared(w0, "w");
            Expr h = x;
            for (int k = 0; k < 4; ++k) {
                h = tanh(dot(h, w));
                if (!keeps && k % 2 == 1) h = checkpoint(h);
            }
            const Expr cost = sum(sqr(h));
            return function({x}, {cost, grad(cost, w)}, {.device = device, .activations = dtype});
        };
        const Expr known = input(float32, {-1, 24}, "x"), open = matrix("x");
        const std::vector<Array> exact = list_of(step(known, true, float32)(a)),
                                 half = list_of(step(known, true, bfloat16)(a)),
                                 of_open = list_of(step(open, true, bfloat16)(a)),
                                 again = list_of(step(known, false, bfloat16)(a));
        INFO(device);
        CHECK(same_bits(half[0], exact[0]));
        CHECK(same_bits(of_open[1], half[1]));
        CHECK(!same_bits(half[1], exact[1]));
        CHECK(differences(half, exact, 0.02) == "");
        CHECK(differences(again, exact, 0.02) == "");
        const std::vector<Array> none = list_of(step(known, true, float16)(Array(float32, {0, 24})));
        CHECK(none[0].at(0) == 0);
    }
    // A limit that float32 keeps in parts alone.
    const Dense net;
    const Array rows = random_array(float32, {2000, 64}, random, -1, 1);
    const std::int64_t whole = net.step("cpu", bfloat16).memory_plan({{net.x, {2000, 64}}}).peak_bytes;
    for (const DType dtype : {float32, bfloat16}) {
        Function f = net.step("cpu", dtype, {whole});
        f(rows);
        CHECK((f.memory_plan().micro_batch == 0) == (dtype == bfloat16));
    }
}

TEST_CASE("activations of other dtypes are refused", "[core][runtime][activations]") {
    const Expr x = matrix("x");
    for (const DType dtype : {float64, int8, boolean}) {
        const std::string text =
            error_of([&] { function({x}, sum(x), {.name = "step", .activations = dtype}); });
        CHECK_THAT(text, ContainsSubstring("activations_test.cpp:"));
        CHECK_THAT(text,
                   ContainsSubstring("function \"step\": activations = " + std::string(name_of(dtype)) +
                                     "; values of float32 can be saved for gradients as bfloat16, float16 "
                                     "or, as they are, float32"));
    }
}
