// Convolutions in groups of channels on a GPU: which of them a library computes, that it reads and writes the
// tensors of four axes as they lie in memory, and the numbers of both ways. On the emulator, where plain
// loops stand for the library, and on a GPU if there is one.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "bitale/bitale.h"
#include "codegen/library/conv_cost.h"
#include "graph/base/options.h"
#include "runtime/exec/device.h"
#include "runtime/exec/program_io.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/conv_definition.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::vector<const ConvCall*> convolutions_of(const Program& program) {
    std::vector<const ConvCall*> list;
    for (const Step& step : program.body.steps)
        if (const auto* conv = std::get_if<ConvStep>(&step.operation)) list.push_back(&conv->call);
    return list;
}
std::vector<const ConvCall*> convolutions_of(const Function& f) {
    return convolutions_of(*f.state().program);
}

Options without_cudnn() {
    Options o = options();
    o.disabled.insert("cudnn");
    return o;
}

struct Grouped {
    ConvLayer layer;
    std::size_t calls;  // of the library, for the convolution and its two gradients
    const char* why;
};

const std::vector<Grouped>& cases() {
    static const std::vector<Grouped> all = {
        {{{16, 16, 17, 15}, {24, 16, 3, 3}, {1, 0}},
         3,
         "float32 convolution of stored tensors, 16 channels\n"},
        {{{16, 16, 17, 15}, {24, 8, 3, 3}, {1, 0}},
         3,
         "16 channels in 2 groups, which fill 38 % of the library's tiles"},
        {{{16, 32, 31, 29}, {64, 8, 5, 3}, {0, 1}, {2, 2}, 1, false},
         3,
         "32 channels in 4 groups, which fill 50 % of the library's tiles"},
        {{{19, 24, 17, 23}, {36, 8, 3, 3}, {2, 2}, {2, 1}, 2}, 3, "24 channels in 3 groups"},
        {{{16, 32, 31, 29}, {64, 8, 5, 3}, {0, 1}, {3, 3}}, 3, "32 channels in 4 groups"},
        // A filter for each channel; several for each, of a larger window; four by four.
        {{{20, 32, 33, 31}, {32, 1, 3, 3}, {1, 1}, {1, 1}, 1, false},
         0,
         "generated, because its 32 groups compute 2.2 operations a byte, and generated code moves fewest"},
        {{{12, 16, 25, 23}, {32, 1, 7, 7}, {3, 3}, {1, 1}, 2},
         0,
         "generated, because its 16 groups fill 6 % of a library's tiles"},
        {{{16, 32, 29, 31}, {32, 4, 3, 3}, {1, 1}, {1, 1}},
         0,
         "generated, because its 8 groups fill 12 % of a library's tiles"},
        {{{2, 8, 9, 7}, {8, 2, 3, 3}, {1, 1}, {3, 2}}, 0, "generated, because it is too small for a library"},
    };
    return all;
}

}  // namespace

TEST_CASE("convolutions in groups and their gradients follow the definition, by the library and generated") {
    if (emulator_left_out()) return;
    Random random(11);
    for (const Grouped& c : cases()) {
        const ConvLayer& l = c.layer;
        const Expr x = input(float32, l.image, "x"), w = input(float32, l.filters, "w"),
                   g = input(float32, l.output(), "g");
        const Expr y = conv2d(x, w, l.options()), cost = sum(y * g);
        const std::vector<Array> arguments{random_array(float32, l.image, random, -1, 1),
                                           random_array(float32, l.filters, random, -1, 1),
                                           random_array(float32, l.output(), random, -1, 1)};
        const ConvExpected expected = define_conv(l, arguments[0], arguments[1], arguments[2]);
        for (const std::string& device : gpus())
            for (const bool library : {true, false}) {
                if (!library && c.calls == 0) continue;
                const ScopedOptions scope(library ? options() : without_cudnn());
                Function f = function({x, w, g}, {y, grad(cost, x), grad(cost, w)}, {.device = device});
                const std::string report = f.report(Detail::complete);
                INFO(report);
                CHECK(convolutions_of(f).size() == (library ? c.calls : 0));
                for (const ConvCall* call : convolutions_of(f)) CHECK(call->groups == l.groups());
                CHECK_THAT(report,
                           ContainsSubstring(library ? c.why : "there is no library for convolutions"));
                // The library works on arguments and results themselves: nothing is copied.
                if (library && c.calls == 3) CHECK(f.state().program->body.steps.size() == 3);
                const Results got = f.call(arguments);
                CHECK(error_of_largest(got[0], expected.y) < 2e-6);
                CHECK(error_of_largest(got[1], expected.dx) < 2e-6);
                CHECK(error_of_largest(got[2], expected.dw) < 2e-6);
            }
    }
}

TEST_CASE(
    "bias and relu of convolutions in groups are the library's, and channels are last for tensor cores") {
    if (emulator_left_out()) return;
    Options finite = options();
    finite.assume_finite = true;  // else relu is generated
    const ScopedOptions scope(finite);
    Random random(12);
    const Expr x = input(float32, {16, 32, 14, 15}, "x"), v = input(float32, {32, 16, 3, 3}, "v"),
               w = input(float32, {48, 8, 3, 3}, "w"), b = vector("b");
    const Expr h = relu(conv2d(x, v, {.border_mode = half, .groups = 2}) + channel(b));
    const Expr y = sum(sqr(max_pool(conv2d(h, w, {.groups = 4}), 2)));
    const std::vector<Expr> outputs = {y, grad(y, v), grad(y, w), grad(y, b)};
    const std::vector<Array> arguments = {random_array(float32, {16, 32, 14, 15}, random, -1, 1),
                                          random_array(float32, {32, 16, 3, 3}, random, -1, 1),
                                          random_array(float32, {48, 8, 3, 3}, random, -1, 1),
                                          random_array(float32, {32}, random, -1, 1)};
    const Results expected = function({x, v, w, b}, outputs, {.device = "cpu"}).call(arguments);
    for (const std::string& device : gpus())
        for (const Precision precision : {Precision::float32, Precision::tf32}) {
            Function f = function({x, v, w, b}, outputs, {.device = device, .precision = precision});
            const std::vector<const ConvCall*> calls = convolutions_of(f);
            INFO(f.report(Detail::complete));
            REQUIRE(calls.size() == 5);
            CHECK(calls[0]->bias);
            CHECK(calls[0]->relu);
            CHECK(calls[0]->groups == 2);
            CHECK(calls[1]->groups == 4);
            CHECK_THAT(f.report(Detail::complete),
                       ContainsSubstring("with filters [32, 16, 3, 3] in 2 groups + bias, relu") &&
                           ContainsSubstring("whose bias and relu the library applies"));
            // Between the convolutions; x, v and w are arguments and lie as they were given.
            const bool rounded = precision != Precision::float32;
            CHECK((calls[1]->image.strides[1] == Int(1)) == rounded);
            CHECK((calls[1]->output.strides[1] == Int(1)) == rounded);
            CHECK(calls[1]->filters.strides[3] == Int(1));
            CHECK(calls[0]->image.strides[3] == Int(1));
            const Results got = f.call(arguments);
            const double tolerance = rounded && device != "emulator" ? 1e-2 : 1e-5;
            for (std::size_t k = 0; k < outputs.size(); ++k)
                CHECK(difference(got[k], expected[k], {.of_largest = tolerance}) == "");
            const std::string text = program_to_json(*f.state().program);
            CHECK(program_to_json(program_from_json(text)) == text);
        }
}

// What reads the result before its reshape, or its groups by themselves, and images of a length known at the
// call only.
TEST_CASE("results of convolutions in groups are read in any form") {
    if (emulator_left_out()) return;
    Random random(13);
    const Expr x = input(float32, {-1, 32 * 16 * 16}, "x"), w = input(float32, {32, 8, 3, 3}, "w"),
               v = input(float32, {32, 8, 3, 3}, "v"), b = input(float32, {4}, "b"),
               c = input(float32, {16}, "c"), m = input(float32, {32 * 14 * 14, 40}, "m");
    const Expr image = reshape(x, {-1, 32, 16, 16});
    const Expr y = conv2d(image, w, {.border_mode = half, .groups = 4});
    const Expr z = conv2d(y, v, {.groups = 4});
    const Expr of_groups = reshape(y, {-1, 4, 8, 16, 16}) + reshape(b, {1, 4, 1, 1, 1});
    const Expr flat = dot(reshape(z, {-1, 32 * 14 * 14}), m);
    // Twice as many images of half the channels, in front and behind.
    const Expr halves = tanh(reshape(x, {-1, 16, 16, 16}));
    const Expr joined = conv2d(reshape(halves, {-1, 32, 16, 16}), v, {.groups = 4});
    const Expr apart = relu(reshape(joined, {-1, 16, 14, 14}) + channel(c));
    const Expr loss = sum(sqr(flat)) + sum(sin(of_groups)) + sum(sqr(apart));
    const std::vector<Expr> outputs = {flat,          of_groups,     mean(y, {0, 2, 3}), apart,
                                       grad(loss, w), grad(loss, v), grad(loss, b),      grad(loss, c)};
    const std::vector<Array> arguments = {random_array(float32, {19, 32 * 16 * 16}, random, -1, 1),
                                          random_array(float32, {32, 8, 3, 3}, random, -1, 1),
                                          random_array(float32, {32, 8, 3, 3}, random, -1, 1),
                                          random_array(float32, {4}, random, -1, 1),
                                          random_array(float32, {16}, random, -1, 1),
                                          random_array(float32, {32 * 14 * 14, 40}, random, -0.1, 0.1)};
    const Results expected = function({x, w, v, b, c, m}, outputs, {.device = "cpu"}).call(arguments);
    for (const std::string& device : gpus())
        for (const Precision precision : {Precision::float32, Precision::tf32}) {
            Function f = function({x, w, v, b, c, m}, outputs, {.device = device, .precision = precision});
            INFO(f.report(Detail::complete));
            CHECK(convolutions_of(f).size() == 7);
            const Results got = f.call(arguments);
            const double tolerance = precision != Precision::float32 && device != "emulator" ? 1e-2 : 1e-5;
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                INFO(k);
                CHECK(difference(got[k], expected[k], {.of_largest = tolerance}) == "");
            }
        }
}

TEST_CASE("groups of channels in the text of a program") {
    if (emulator_skipped()) return;
    const auto text_for = [](int groups) {
        const Expr x = input(float32, {16, 32, 20, 20}, "x"),
                   w = input(float32, {64, 32 / groups, 3, 3}, "w");
        return program_to_json(
            *function({x, w}, conv2d(x, w, {.groups = groups}), {.device = "emulator"}).state().program);
    };
    const std::string one = text_for(1);
    std::string two = text_for(2);
    CHECK_THAT(one, !ContainsSubstring("\"groups\""));  // as programs without groups were written before
    CHECK(convolutions_of(program_from_json(one)).at(0)->groups == 1);
    const std::string field = "\"groups\": 2";
    REQUIRE(two.find(field) != std::string::npos);
    CHECK(convolutions_of(program_from_json(two)).at(0)->groups == 2);
    two.replace(two.find(field), field.size(), "\"groups\": 0");
    CHECK_THAT(error_of([&] { program_from_json(two); }), ContainsSubstring("has no groups of channels"));
}

TEST_CASE("the library is chosen by what its tiles leave idle and by what the memory takes") {
    const auto cost = [](std::int64_t channels, std::int64_t filters, std::int64_t groups,
                         std::int64_t window, ConvCall::Kind kind, Precision precision = Precision::float32) {
        ConvCall call;
        call.kind = kind;
        call.image.shape = {64, channels, 28, 28};
        call.filters.shape = {filters, channels / groups, window, window};
        call.output.shape = {64, filters, 28, 28};
        call.groups = groups;
        call.precision = precision;
        return cost_of_groups(call);
    };
    const auto chosen = [](const GroupedCost& c) { return c.library < c.generated; };
    for (const auto kind :
         {ConvCall::Kind::forward, ConvCall::Kind::image_gradient, ConvCall::Kind::filter_gradient}) {
        CHECK(chosen(cost(256, 256, 2, 3, kind)));
        CHECK(chosen(cost(256, 256, 8, 3, kind)));
        CHECK(chosen(cost(256, 256, 32, 3, kind)));  // eight by eight
        CHECK(!chosen(cost(256, 256, 64, 3, kind)));
        CHECK(!chosen(cost(256, 256, 256, 3, kind)));
        CHECK(!chosen(cost(256, 256, 256, 7, kind)));
        // Tensor cores have more to give, but take the channels of one place at a time.
        CHECK(chosen(cost(256, 256, 64, 3, kind, Precision::tf32)));
        CHECK(!chosen(cost(256, 256, 256, 3, kind, Precision::tf32)));
        CHECK(!chosen(cost(256, 256, 256, 7, kind, Precision::tf32)));
    }
    const GroupedCost full = cost(256, 256, 2, 3, ConvCall::Kind::forward);
    CHECK(full.filled == 1);
    CHECK(full.library < full.generated);
    const GroupedCost depthwise = cost(256, 256, 256, 3, ConvCall::Kind::forward);
    CHECK(depthwise.generated == 1);  // as fast as memory
    CHECK(depthwise.operations_per_byte < 2.25);
    CHECK(depthwise.library > 3);
}
