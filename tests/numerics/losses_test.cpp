// Generated CPU code of softmax and the losses against the oracle; training to saturation.
#include <fmt/format.h>

#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const std::vector<DType> label_dtypes = {int8, int16, int32, int64, uint8, uint16, uint32, uint64};

}  // namespace

TEST_CASE("softmax and log_softmax over every axis, with gradients") {
    PackedCases cases(tested_device());
    Random random(1);
    std::size_t turn = 0;
    for (const Dims& shape : {Dims{5, 10}, Dims{1, 1}, Dims{0, 3}, Dims{3, 200}, Dims{2, 3, 17}, Dims{7}})
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
            if (shape[static_cast<std::size_t>(axis)] == 0) continue;
            const DType dtype = turn++ % 4 == 3 ? float64 : float32;
            const Expr x = input(dtype, static_cast<int>(shape.size()), "x");
            const std::vector<Array> values = {random_array(dtype, shape, random, -5, 5)};
            const std::string what = fmt::format("{} {} axis {}", name_of(dtype), text_of(shape), axis);
            cases.add("softmax " + what, {x}, values, softmax(x, axis));
            cases.add("log_softmax " + what, {x}, values, log_softmax(x, axis));
            cases.add("softmax gradient " + what, {x}, values, grad(weighted(softmax(x, axis)), x));
            cases.add("log_softmax gradient " + what, {x}, values, grad(weighted(log_softmax(x, axis)), x));
        }
    // Far beyond what exp can take.
    const Expr x = matrix("x");
    const Array huge(std::vector<float>{1e30F, 0, -1e30F, 3e38F, 3e38F, -3e38F, -1e4F, -1e4F, -1e4F}, {3, 3});
    cases.add("softmax of huge values", {x}, {huge}, softmax(x));
    cases.add("log_softmax of huge values", {x}, {huge}, log_softmax(x));
    cases.add("crossentropy of huge values", {x}, {huge},
              softmax_crossentropy(x, constant(Array(std::vector<std::int32_t>{0, 1, 2}))));
    cases.run();
}

TEST_CASE("crossentropies with labels of every integer dtype and with distributions") {
    PackedCases cases(tested_device());
    Random random(2);
    const std::vector<Dims> shapes = {{5, 10}, {1, 3}, {64, 2}, {0, 4}, {3, 100}, {7, 1}};
    std::size_t turn = 0;
    const auto add = [&](const std::string& what, DType dtype, const Dims& shape, const Expr& target,
                         const Expr& given, const Array& value) {
        const Expr z = matrix("z", dtype);
        const std::vector<Expr> inputs = {z, given};
        const std::vector<Array> values = {random_array(dtype, shape, random, -8, 8), value};
        const Expr a = categorical_crossentropy(softmax(z), target), b = softmax_crossentropy(z, target);
        cases.add(what + ", of probabilities", inputs, values, a);
        cases.add(what + ", of logits", inputs, values, b);
        cases.add(what + ", gradient through softmax", inputs, values, grad(mean(a), z));
        cases.add(what + ", gradient of logits", inputs, values, grad(weighted(b), z));
    };
    for (const DType labels : label_dtypes)
        for (int twice = 0; twice < 2; ++twice) {
            const DType dtype = turn % 5 == 4 ? float64 : float32;
            const Dims shape = shapes[turn++ % shapes.size()];
            const std::string what =
                fmt::format("{} {}, labels {}", name_of(dtype), text_of(shape), name_of(labels));
            const Expr y = input(labels, 1, "labels");
            add(what, dtype, shape, y, y,
                random_array(labels, {shape[0]}, random, 0, static_cast<double>(shape[1] - 1)));
        }
    for (const Dims& shape : shapes) {
        const Expr t = matrix("t"), i = ivector("i");
        add(fmt::format("distribution {}", text_of(shape)), float32, shape, t, t,
            random_array(float32, shape, random, 0, 2.0 / static_cast<double>(shape[1])));
        add(fmt::format("one-hot {}", text_of(shape)), float32, shape, one_hot(i, shape[1]), i,
            random_array(int32, {shape[0]}, random, 0, static_cast<double>(shape[1] - 1)));
    }
    cases.run();
}

TEST_CASE("binary crossentropy of a sigmoid, at both ends too") {
    PackedCases cases(tested_device());
    const Expr z = vector("z"), t = vector("t"), k = input(uint8, 1, "k");
    const std::vector<Expr> inputs = {z, t, k};
    const std::vector<Array> values = {Array(std::vector<float>{-200, -20, -1, 0, 0.5, 3, 30, 500}),
                                       Array(std::vector<float>{0, 1, 0.25, 0.5, 1, 0, 1, 1}),
                                       Array(std::vector<std::uint8_t>{0, 1, 0, 1, 1, 0, 1, 0})};
    for (const Expr& target : {t, k}) {
        const Expr loss = binary_crossentropy(sigmoid(z), target), chosen = cast(target, float32);
        cases.add("loss", inputs, values, loss, softplus(z) - z * chosen);
        cases.add("gradient", inputs, values, grad(sum(loss), z), sigmoid(z) - chosen);
    }
    cases.run();
}

TEST_CASE("training to saturation: integer and one-hot targets have the same losses, and no NaN") {
    // Separable data and a huge rate: after some steps the probability of a label is 1 or 0 in float32.
    Random random(3);
    const std::int64_t n = 48, features = 12, classes = 5;
    const Array x = random_array(float32, {n, features}, random, -3, 3),
                labels = random_array(uint8, {n}, random, 0, classes - 1);
    std::vector<std::vector<double>> losses;
    for (const char* device : {tested_device(), "reference"})
        for (const bool one_hot_targets : {false, true})
            for (const bool through_softmax : {false, true}) {
                Shared w = shared(glorot_uniform({features, classes}, 1), "w"),
                       b = shared(zeros({classes}), "b");
                const Expr images = matrix("x"), y = input(uint8, 1, "y");
                const Expr z = dot(images, w) + b;
                const Expr target = one_hot_targets ? one_hot(y, classes) : y;
                const Expr each = through_softmax ? categorical_crossentropy(softmax(z), target)
                                                  : softmax_crossentropy(z, target);
                const Expr loss = mean(each);
                Function step =
                    function({images, y}, {loss, max(abs(z))},
                             {.updates = sgd(loss, {w, b}, 30), .name = "step", .device = device});
                std::vector<double> seen;
                double largest = 0;
                for (int i = 0; i < (std::string(device) != "reference" ? 120 : 12); ++i) {
                    const Results r = step(x, labels);
                    REQUIRE(std::isfinite(r[0].at(0)));
                    seen.push_back(r[0].at(0));
                    largest = std::max(largest, r[1].at(0));
                }
                CHECK(largest > 100);  // exp overflows in float32
                for (const double v : w.get_value().to_vector<double>()) REQUIRE(std::isfinite(v));
                losses.push_back(seen);
            }
    for (std::size_t k = 1; k < 4; ++k) CHECK(losses[k] == losses[0]);
    // The oracle's first steps: later ones drift apart as rounding does at such a rate.
    for (std::size_t k = 4; k < 8; ++k)
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(std::abs(losses[k][i] - losses[0][i]) <= 1e-4 * (1 + losses[k][i]));
}
