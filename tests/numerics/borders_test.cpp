// Convolutions whose image with its border is larger than the scratch of one task: copies in memory.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Of many thousand products of float32 one after another, whose total is far smaller than its parts: what is
// wrong by an element or a border differs by far more.
constexpr double long_sums_that_cancel = 1e-3;

struct LargeImages {
    std::int64_t images, channels, height, width, filters, kernel;
    ConvOptions options;
};

// One image has more than half a megabyte, with its border.
const std::vector<LargeImages>& large() {
    static const std::vector<LargeImages> list = {
        {2, 36, 62, 60, 9, 3, {.border_mode = half}},
        {3, 40, 57, 61, 7, 3, {.border_mode = Border(2, 1), .subsample = Size2(2, 3)}},
        {1, 3, 214, 215, 8, 7, {.border_mode = Border(3), .subsample = 2}},
        {2, 1, 370, 371, 5, 3, {.border_mode = full, .subsample = 4}},
        {2, 35, 61, 64, 6, 3, {.border_mode = Border(2), .dilation = 2, .filter_flip = false}},
    };
    return list;
}

Dims image_of(const LargeImages& s) { return {s.images, s.channels, s.height, s.width}; }
Dims filters_of(const LargeImages& s) { return {s.filters, s.channels, s.kernel, s.kernel}; }

// The maps, and both gradients.
std::vector<Expr> maps_and_gradients(const Expr& x, const Expr& w, const ConvOptions& options) {
    const Expr y = conv2d(is_float(x.dtype()) ? x : (cast(x, float32) - 120) / 256, w, options);
    std::vector<Expr> results = {y, grad(weighted(y), w)};
    if (is_float(x.dtype())) results.push_back(grad(weighted(y), x));
    return results;
}

}  // namespace

TEST_CASE("borders of images that are larger than the scratch of a task") {
    PackedCases cases(tested_device(), long_sums_that_cancel);
    Random random(1);
    for (const LargeImages& s : large())
        for (const DType dtype : {DType::float32, DType::uint8}) {
            const bool bytes = dtype == DType::uint8;
            const Expr x = input(dtype, image_of(s), "x"), w = input(float32, filters_of(s), "w");
            const std::vector<Array> values = {
                random_array(dtype, image_of(s), random, bytes ? 0 : -1, bytes ? 255 : 1),
                random_array(float32, filters_of(s), random, -0.1, 0.1)};
            for (const Expr& result : maps_and_gradients(x, w, s.options))
                cases.add(fmt::format("{} {}", bitale::name_of(dtype), text_of(image_of(s))), {x, w}, values,
                          result);
        }
    cases.run();
}

TEST_CASE("large images with borders, no image at all and then some, and the same bits for any threads") {
    Random random(2);
    const LargeImages& s = large()[0];
    const Array filters = random_array(float32, filters_of(s), random, -0.1, 0.1);
    const auto made = [&](int threads, const Array& images, const std::string& device) {
        Options chosen = options();
        chosen.threads = threads;
        chosen.disabled.insert("cudnn");
        const ScopedOptions scope(chosen);
        const Expr x = input(float32, Dims{-1, s.channels, s.height, s.width}, "x"),
                   w = input(float32, filters_of(s), "w");
        const std::vector<Array> arguments = {images, filters};
        return function({x, w}, maps_and_gradients(x, w, s.options), {.device = device}).call(arguments);
    };
    for (const std::int64_t count : {0, 1, 5}) {
        const Array images = random_array(float32, {count, s.channels, s.height, s.width}, random, -1, 1);
        const Results one = made(1, images, "cpu");
        for (const int threads : {2, 3}) {
            const Results other = made(threads, images, "cpu");
            for (std::size_t k = 0; k < one.size(); ++k) {
                INFO(count << " images, result " << k << ", " << threads << " threads");
                CHECK(same(other[k], one[k]));
            }
        }
        if (count > 1 || emulator_left_out()) continue;
        const Results other = made(2, images, "emulator");
        for (std::size_t k = 0; k < one.size(); ++k) {
            INFO(count << " images, result " << k << ", emulator");
            CHECK(same(other[k], one[k]));
        }
    }
}

TEST_CASE("borders of images whose size is known at the call alone") {
    struct Form {
        std::int64_t channels, filters, kernel;
        ConvOptions options;
    };
    const std::vector<Form> forms = {
        {5, 17, 3, {.border_mode = half}},
        {6, 9, 3, {.border_mode = half, .subsample = 2}},
        {4, 16, 3, {.border_mode = valid, .subsample = 2}},
        {9, 8, 5, {.border_mode = full, .subsample = Size2(3, 2)}},
        {3, 33, 2, {.border_mode = Border(0, 3), .subsample = Size2(1, 4), .dilation = Size2(2, 1)}},
        {8, 5, 3, {.border_mode = Border(2), .dilation = 2, .filter_flip = false}},
        {7, 12, 1, {.border_mode = Border(1, 0), .subsample = 3}},
        {1, 1, 3, {.border_mode = half}},
    };
    Random random(3);
    std::vector<Input> inputs;
    std::vector<Expr> outputs, variables;
    for (const Form& f : forms)
        for (const DType dtype : {DType::float32, DType::uint8}) {
            const Expr x = input(dtype, {-1, f.channels, -1, -1}, "x"),
                       w = input(float32, {f.filters, f.channels, f.kernel, f.kernel}, "w");
            for (const Expr& v : {x, w}) {
                inputs.emplace_back(v);
                variables.push_back(v);
            }
            const std::vector<Expr> results = maps_and_gradients(x, w, f.options);
            outputs.insert(outputs.end(), results.begin(), results.end());
        }
    Function f = function(inputs, outputs, {.device = tested_device()});
    for (const Dims& size : {Dims{2, 9, 12}, {1, 16, 5}, {0, 8, 8}, {3, 5, 30}, {1, 41, 37}}) {
        std::vector<Array> values;
        for (const Expr& v : variables) {
            Dims shape;
            for (const Int& n : v.node()->type.shape) shape.push_back(n.is_constant() ? n.constant() : -1);
            const bool filters = shape[0] != -1, bytes = v.dtype() == DType::uint8;
            if (!filters) shape = {size[0], shape[1], size[1], size[2]};
            values.push_back(random_array(v.dtype(), shape, random, bytes ? 0 : -1, bytes ? 255 : 1));
        }
        const Results results = f.call(values);
        const std::vector<WidePtr> expected = evaluated_wide(outputs, variables, values);
        for (std::size_t k = 0; k < outputs.size(); ++k) {
            INFO(text_of(size) << ", result " << k);
            REQUIRE(results[k].shape() == expected[k]->shape);
            CHECK(difference(results[k], *expected[k]) == "");
        }
    }
}

TEST_CASE("gradients of images that are nothing but border") {
    PackedCases cases(tested_device());
    Random random(4);
    for (const Dims& shape : {Dims{8, 4, 3, 0}, Dims{8, 4, 0, 3}, Dims{0, 4, 3, 3}})
        for (const bool known : {true, false}) {
            const Dims filters = shape[3] == 0 ? Dims{1, 4, 4, 2} : Dims{1, 4, 2, 4};
            const Border border = shape[3] == 0 ? Border(3, 1) : Border(1, 3);
            const Expr x = known ? input(float32, shape, "x") : tensor4("x"),
                       w = input(float32, filters, "w");
            const Expr cost = sum(sqr(conv2d(x, w, {.border_mode = border})));
            const std::vector<Array> values{zeros(shape), random_array(float32, filters, random)};
            const std::string of = text_of(shape) + (known ? ", known" : ", unknown");
            cases.add(of + ", of the image", {x, w}, values, grad(cost, x));
            cases.add(of + ", of the filters", {x, w}, values, grad(cost, w));
        }
    cases.run();
}
