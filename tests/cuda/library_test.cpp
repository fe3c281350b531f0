// What libraries compute on a GPU: which products and convolutions, with which bias and relu, how exactly.
// On the emulator, where the CPU stands for the libraries, and on a GPU if
// there is one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/pool.h"
#include "runtime/exec/device.h"
#include "runtime/exec/program_io.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// On the emulator oneDNN stands for cuBLASLt.
bool no_products() {
    if (gemm_library().present) return false;
    WARN("no oneDNN: " << gemm_library().name);
    return true;
}

template <class Operation>
std::vector<const Operation*> steps_of(const Function& f) {
    std::vector<const Operation*> list;
    for (const Step& step : f.state().program->body.steps)
        if (const auto* operation = std::get_if<Operation>(&step.operation)) list.push_back(operation);
    return list;
}

ConvSizes sizes(std::array<std::int64_t, 4> shape, bool channel_last) {
    ConvSizes t;
    t.shape = shape;
    std::int64_t stride = 1;
    for (const std::size_t d :
         channel_last ? std::array<std::size_t, 4>{1, 3, 2, 0} : std::array<std::size_t, 4>{3, 2, 1, 0}) {
        t.strides[d] = stride;
        stride *= shape[d];
    }
    return t;
}

float& element(std::vector<float>& values, const ConvSizes& t, std::int64_t a, std::int64_t b, std::int64_t y,
               std::int64_t x) {
    return values.at(
        static_cast<std::size_t>(a * t.strides[0] + b * t.strides[1] + y * t.strides[2] + x * t.strides[3]));
}

// One product of the sum after another, straight from the definition.
void define(const ConvShape& s, std::vector<float>& image, std::vector<float>& filters,
            std::vector<float>& output, std::vector<double>& result) {
    const auto [n, k, oh, ow] = s.output.shape;
    for (std::int64_t a = 0; a < n; ++a)
        for (std::int64_t o = 0; o < k; ++o)
            for (std::int64_t oy = 0; oy < oh; ++oy)
                for (std::int64_t ox = 0; ox < ow; ++ox)
                    for (std::int64_t c = 0; c < s.filters.shape[1]; ++c)
                        for (std::int64_t r = 0; r < s.filters.shape[2]; ++r)
                            for (std::int64_t q = 0; q < s.filters.shape[3]; ++q) {
                                const std::int64_t ty = s.flip ? s.filters.shape[2] - 1 - r : r,
                                                   tx = s.flip ? s.filters.shape[3] - 1 - q : q,
                                                   y = oy * s.stride[0] - s.pad[0] + ty * s.dilation[0],
                                                   x = ox * s.stride[1] - s.pad[1] + tx * s.dilation[1];
                                if (y < 0 || y >= s.image.shape[2] || x < 0 || x >= s.image.shape[3])
                                    continue;
                                const std::int64_t channel = o / (k / s.groups) * s.filters.shape[1] + c;
                                float &i = element(image, s.image, a, channel, y, x),
                                      &f = element(filters, s.filters, o, c, r, q),
                                      &g = element(output, s.output, a, o, oy, ox);
                                const auto add = [&](const std::vector<float>& to, const float& at,
                                                     double v) {
                                    result[static_cast<std::size_t>(&at - to.data())] += v;
                                };
                                if (s.kind == ConvCall::Kind::forward) add(output, g, double(i) * f);
                                if (s.kind == ConvCall::Kind::image_gradient) add(image, i, double(g) * f);
                                if (s.kind == ConvCall::Kind::filter_gradient) add(filters, f, double(g) * i);
                            }
}

std::vector<float> random_floats(const ConvSizes& t, Random& random) {
    std::vector<float> values(static_cast<std::size_t>(t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]));
    for (float& v : values) v = static_cast<float>(random.real(-1, 1));
    return values;
}

}  // namespace

TEST_CASE("convolutions by plain loops follow the definition in every memory order") {
    Random random(1);
    Pool& pool = process_pool(options().threads);
    int turn = 0;
    for (const auto& stride : {std::array<std::int64_t, 2>{1, 1}, {2, 1}, {3, 2}})
        for (const auto& pad : {std::array<std::int64_t, 2>{0, 0}, {1, 2}, {4, 0}})
            for (const auto& dilation : {std::array<std::int64_t, 2>{1, 1}, {2, 3}})
                for (const auto kind : {ConvCall::Kind::forward, ConvCall::Kind::image_gradient,
                                        ConvCall::Kind::filter_gradient}) {
                    ConvShape s;
                    s.kind = kind;
                    s.stride = stride;
                    s.pad = pad;
                    s.dilation = dilation;
                    s.flip = turn % 2 == 0;
                    s.groups = std::array{1, 2, 4}[static_cast<std::size_t>(turn / 3 % 3)];
                    const std::array<std::int64_t, 4> image{2, s.groups == 1 ? 3 : 4, 9, 11},
                        filters{4, image[1] / s.groups, 3, 2};
                    std::array<std::int64_t, 4> output{2, 4, 0, 0};
                    for (std::size_t a = 0; a < 2; ++a)
                        output[2 + a] =
                            (image[2 + a] + 2 * pad[a] - (filters[2 + a] - 1) * dilation[a] - 1) / stride[a] +
                            1;
                    s.image = sizes(image, turn % 3 == 0);
                    s.filters = sizes(filters, turn % 5 == 0);
                    s.output = sizes(output, turn % 4 == 0);
                    const bool fused = kind == ConvCall::Kind::forward && turn % 3 == 1;
                    s.bias = s.relu = fused;
                    ++turn;
                    std::vector<float> x = random_floats(s.image, random),
                                       w = random_floats(s.filters, random),
                                       y = random_floats(s.output, random), bias{0.5f, -0.5f, 0, 1};
                    std::vector<float>& to = kind == ConvCall::Kind::forward          ? y
                                             : kind == ConvCall::Kind::image_gradient ? x
                                                                                      : w;
                    std::vector<double> expected(to.size());
                    define(s, x, w, y, expected);
                    convolve(pool, s, {x.data(), w.data(), y.data(), bias.data()});
                    if (fused)
                        for (std::int64_t o = 0; o < 4; ++o)
                            for (std::int64_t a = 0; a < 2; ++a)
                                for (std::int64_t i = 0; i < output[2]; ++i)
                                    for (std::int64_t j = 0; j < output[3]; ++j) {
                                        double& v = expected[static_cast<std::size_t>(
                                            &element(y, s.output, a, o, i, j) - y.data())];
                                        v = std::max(0.0, v + double(bias[static_cast<std::size_t>(o)]));
                                    }
                    double worst = 0;
                    for (std::size_t i = 0; i < to.size(); ++i)
                        worst = std::max(worst, std::abs(to[i] - expected[i]));
                    INFO(turn);
                    CHECK(worst < 1e-5);
                }
}

TEST_CASE("convolutions of a graph go to the library: strides, padding, dilation, flips") {
    if (emulator_left_out()) return;
    Random random(2);
    struct Layer {
        Dims image, filters;
        ConvOptions options;
    };
    const std::vector<Layer> layers = {
        {{16, 8, 24, 20}, {16, 8, 3, 3}, {}},
        {{9, 16, 17, 23}, {24, 16, 5, 3}, {.border_mode = half, .filter_flip = false}},
        {{32, 5, 33, 29}, {31, 5, 3, 4}, {.border_mode = Border(2, 0), .subsample = Size2(2, 1)}},
        {{8, 12, 27, 31}, {20, 12, 3, 3}, {.border_mode = full, .subsample = Size2(1, 2), .dilation = 2}},
        {{64, 64, 7, 7}, {32, 64, 1, 1}, {.subsample = 1, .filter_flip = false}},
    };
    for (const Layer& layer : layers) {
        const Expr x = input(float32, layer.image, "x"), w = input(float32, layer.filters, "w");
        const Expr y = conv2d(x, w, layer.options), cost = sum(y * cos(y));
        const std::vector<Expr> outputs = {y, grad(cost, x), grad(cost, w)};
        Function cpu = function({x, w}, outputs, {.device = "cpu"});
        const std::vector<Array> arguments = {random_array(float32, layer.image, random, -1, 1),
                                              random_array(float32, layer.filters, random, -1, 1)};
        const Results expected = cpu.call(arguments);
        for (const std::string& device : gpus()) {
            Function f = function({x, w}, outputs, {.device = device});
            INFO(f.report(Detail::complete));
            CHECK(steps_of<ConvStep>(f).size() == 3);
            const Results got = f.call(arguments);
            for (std::size_t k = 0; k < outputs.size(); ++k)
                CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
        }
    }
}

TEST_CASE("a network of generated and library convolutions trains as on the CPU") {
    if (emulator_left_out()) return;
    NetOptions options{.device = "cpu", .images = 8, .batch = 4, .test_batch = 8, .storage = int8, .seed = 3};
    Net cpu = make_net("keras", options);
    const Results a = cpu.step.loop(0, 2), c = cpu.evaluation.loop(0, 1);
    for (const std::string& device : gpus()) {
        options.device = device;
        Net net = make_net("keras", options);
        CHECK(steps_of<ConvStep>(net.step).size() == 3);
        const Results b = net.step.loop(0, 2), d = net.evaluation.loop(0, 1);
        CHECK(difference(b[0], a[0], {.relative = 1e-4}) == "");
        for (std::size_t p = 0; p < cpu.params.size(); ++p) {
            INFO(cpu.params[p].name());
            CHECK(difference(net.params[p].get_value(), cpu.params[p].get_value(), {.of_largest = 1e-3}) ==
                  "");
        }
        CHECK(difference(d[0], c[0], {.relative = 1e-3}) == "");
    }
}

TEST_CASE("the first convolution is generated, and the report says why") {
    const auto report = [](const Expr& x, const Dims& filters, DType dtype = float32) {
        const Expr w = input(dtype, filters, "w");
        const Function f = function({x, w}, conv2d(cast(x, dtype) * 2, w), {.device = "emulator"});
        CHECK(steps_of<ConvStep>(f).empty());
        return f.report(Detail::complete);
    };
    if (emulator_skipped()) return;
    CHECK_THAT(report(input(float32, {128, 3, 32, 32}, "x"), {64, 3, 5, 5}),
               ContainsSubstring("generated, because its input has 3 channels"));
    CHECK_THAT(report(input(float32, {128, 1, 32, 32}, "x"), {64, 1, 5, 5}),
               ContainsSubstring("generated, because its input has 1 channel"));
    CHECK_THAT(report(input(uint8, {128, 4, 32, 32}, "x"), {64, 4, 5, 5}),
               ContainsSubstring("generated, because its input is uint8"));
    CHECK_THAT(report(input(float32, {1, 4, 9, 9}, "x"), {4, 4, 3, 3}),
               ContainsSubstring("generated, because it is too small for a library"));
    CHECK_THAT(report(input(float64, {128, 4, 32, 32}, "x"), {64, 4, 5, 5}, float64),
               ContainsSubstring("generated, because it is float64"));
    Options without = options();
    without.disabled.insert("cudnn");
    const ScopedOptions scope(without);
    CHECK_THAT(report(input(float32, {128, 4, 32, 32}, "x"), {64, 4, 5, 5}),
               ContainsSubstring("generated, because there is no library for convolutions"));
}

TEST_CASE("minibatches of a float data set are not copied for the library") {
    if (emulator_skipped()) return;
    const Shared images = shared(Array(float32, {512, 4, 32, 32}), "images"),
                 w = shared(Array(float32, {32, 4, 5, 5}), "w");
    const Expr i = lscalar("i");
    const Expr y = conv2d(images[Slice{i * 128, (i + 1) * 128}] / 255, w);
    const Function f =
        function({i}, {sum(y)}, {.updates = {{w, w - grad(sum(sqr(y)), w)}}, .device = "emulator"});
    CHECK(steps_of<ConvStep>(f).empty());
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("generated, because its input is a minibatch of a data set"));
}

TEST_CASE("a bias and a relu are computed by the library that makes their product") {
    if (emulator_skipped() || no_products()) return;
    Random random(4);
    const Expr x = input(float32, {-1, 96}, "x"), b = vector("b");
    const Expr w = input(float32, {96, 80}, "w");
    const std::vector<Array> arguments = {random_array(float32, {70, 96}, random, -1, 1),
                                          random_array(float32, {96, 80}, random, -1, 1),
                                          random_array(float32, {80}, random, -1, 1)};
    struct Wanted {
        bool bias, relu;
    };
    const auto check = [&](const Expr& y, std::vector<Expr> more, Wanted wanted) {
        std::vector<Expr> outputs{y};
        outputs.insert(outputs.end(), more.begin(), more.end());
        Function cpu = function({x, w, b}, outputs, {.device = "cpu", .on_unused_input = OnUnused::ignore});
        const Results expected = cpu.call(arguments);
        for (const std::string& device : gpus()) {
            Function f =
                function({x, w, b}, outputs, {.device = device, .on_unused_input = OnUnused::ignore});
            const std::vector<const GemmStep*> calls = steps_of<GemmStep>(f);
            INFO(f.report(Detail::complete));
            REQUIRE(!calls.empty());
            CHECK(calls[0]->call.bias == wanted.bias);
            CHECK(calls[0]->call.relu == wanted.relu);
            const Results got = f.call(arguments);
            for (std::size_t k = 0; k < outputs.size(); ++k)
                CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
        }
    };
    const Expr product = dot(x, w), total = product + b, y = relu(total);
    for (const bool finite : {false, true}) {  // else relu is generated: nan_test.cpp
        Options chosen = options();
        chosen.assume_finite = finite;
        const ScopedOptions scope(chosen);
        check(y, {}, {true, finite});
        check(total, {}, {true, false});
        check(tanh(total), {}, {true, false});
        check(y, {total}, {true, false});                  // the sum itself is wanted
        check(y, {product}, {false, false});               // the product itself is wanted
        check(y, {grad(sum(sqr(y)), w)}, {true, finite});  // the gradient is content with the result
        check(y, {grad(sum(sqr(y)), b), grad(sum(sqr(y)), x)}, {true, finite});
        check(relu(product * 2), {}, {false, false});
    }
}

TEST_CASE("a bias and a relu are computed by the library that makes their convolution") {
    if (emulator_left_out()) return;
    Options finite = options();
    finite.assume_finite = true;  // else relu is generated: nan_test.cpp
    const ScopedOptions scope(finite);
    Random random(5);
    const Expr x = input(float32, {16, 8, 20, 20}, "x"), v = input(float32, {16, 8, 3, 3}, "v"),
               w = input(float32, {16, 16, 3, 3}, "w"), b = vector("b");
    const Expr h = relu(conv2d(x, v) + channel(b));
    const Expr y = sum(sqr(conv2d(h, w)));
    const std::vector<Expr> outputs = {y, grad(y, v), grad(y, w), grad(y, b)};
    const std::vector<Array> arguments = {random_array(float32, {16, 8, 20, 20}, random, -1, 1),
                                          random_array(float32, {16, 8, 3, 3}, random, -1, 1),
                                          random_array(float32, {16, 16, 3, 3}, random, -1, 1),
                                          random_array(float32, {16}, random, -1, 1)};
    Function cpu = function({x, v, w, b}, outputs, {.device = "cpu"});
    const Results expected = cpu.call(arguments);
    for (const std::string& device : gpus()) {
        Function f = function({x, v, w, b}, outputs, {.device = device});
        const std::vector<const ConvStep*> calls = steps_of<ConvStep>(f);
        INFO(f.report(Detail::complete));
        REQUIRE(calls.size() == 5);
        CHECK(calls[0]->call.bias);
        CHECK(calls[0]->call.relu);
        CHECK(calls[0]->bias.has_value());
        CHECK_THAT(f.report(Detail::complete), ContainsSubstring("whose bias and relu the library applies"));
        const Results got = f.call(arguments);
        for (std::size_t k = 0; k < outputs.size(); ++k)
            CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
        // A program with such calls survives its text.
        const std::string text = program_to_json(*f.state().program);
        CHECK(program_to_json(program_from_json(text)) == text);
    }
}

TEST_CASE("where tensor cores are asked for, images between convolutions are channel-last") {
    if (emulator_left_out()) return;
    Random random(7);
    const Expr x = input(float32, {16, 8, 20, 20}, "x"), v = input(float32, {16, 8, 3, 3}, "v"),
               w = input(float32, {24, 16, 3, 3}, "w"), b = vector("b");
    const Expr h = relu(conv2d(x, v) + channel(b));
    const Expr y = sum(sqr(max_pool(conv2d(tanh(h), w), 2)));
    const std::vector<Expr> outputs = {y, grad(y, v), grad(y, w), grad(y, b)};
    const std::vector<Array> arguments = {random_array(float32, {16, 8, 20, 20}, random, -1, 1),
                                          random_array(float32, {16, 8, 3, 3}, random, -1, 1),
                                          random_array(float32, {24, 16, 3, 3}, random, -1, 1),
                                          random_array(float32, {16}, random, -1, 1)};
    Function cpu = function({x, v, w, b}, outputs, {.device = "cpu"});
    const Results expected = cpu.call(arguments);
    const auto check = [&](const std::string& device, Precision precision) {
        Function f = function({x, v, w, b}, outputs, {.device = device, .precision = precision});
        const std::vector<const ConvStep*> calls = steps_of<ConvStep>(f);
        INFO(f.report(Detail::complete));
        REQUIRE(calls.size() == 5);
        const bool rounded = precision != Precision::float32;
        // The second convolution; x, v and w are arguments and lie as they were given.
        CHECK((calls[1]->call.image.strides[1] == Int(1)) == rounded);
        CHECK((calls[1]->call.output.strides[1] == Int(1)) == rounded);
        CHECK(calls[1]->call.filters.strides[3] == Int(1));
        CHECK(calls[0]->call.image.strides[3] == Int(1));
        const Results got = f.call(arguments);
        const double tolerance = rounded && device != "emulator" ? 1e-2 : 1e-5;
        for (std::size_t k = 0; k < outputs.size(); ++k)
            CHECK(difference(got[k], expected[k], {.of_largest = tolerance}) == "");
    };
    for (const std::string& device : gpus())
        for (const Precision precision : {Precision::float32, Precision::tf32}) check(device, precision);
}

TEST_CASE("the precision that is asked for reaches every call") {
    if (emulator_skipped() || no_products()) return;
    for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bf16}) {
        const Net net = make_net("keras", {.device = "emulator", .images = 256, .precision = precision});
        const std::vector<const GemmStep*> products = steps_of<GemmStep>(net.step);
        const std::vector<const ConvStep*> convolutions = steps_of<ConvStep>(net.step);
        REQUIRE(products.size() >= 3);
        REQUIRE(convolutions.size() == 3);
        for (const GemmStep* step : products) CHECK(step->call.precision == precision);
        for (const ConvStep* step : convolutions) CHECK(step->call.precision == precision);
        CHECK_THAT(net.step.report(Detail::complete),
                   ContainsSubstring(fmt::format(", {}; because", name_of(precision))));
    }
    // A device may be more exact than asked.
    const Expr x = input(float32, {64, 64}, "x");
    Function exact = function({x}, dot(x, x), {.device = "cpu"}),
             rough = function({x}, dot(x, x), {.device = "cpu", .precision = Precision::bf16});
    Random random(6);
    const Array value = random_array(float32, {64, 64}, random, -1, 1);
    CHECK(difference(rough(value), exact(value)) == "");
}
