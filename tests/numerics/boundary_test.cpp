// Convolutions of tensors whose channels the user keeps apart in memory, and those whose results have to lie
// so.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/base/options.h"
#include "graph/ir/node.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr double sums_that_cancel = 1e-4;

struct ConvolutionSizes {
    std::int64_t images, channels, height, width, filters;
    Dims kernel;
    ConvOptions options;
};

// Enough channels on the one side, the other, both; rows of tiles and lanes left over.
const std::vector<ConvolutionSizes>& sizes() {
    static const std::vector<ConvolutionSizes> list = {
        {12, 1, 19, 17, 8, {3, 3}, {}},
        {9, 8, 13, 14, 1, {3, 3}, {.border_mode = half}},
        {11, 17, 12, 11, 33, {3, 2}, {.border_mode = Border(2, 1), .subsample = Size2(2, 1)}},
        {10, 33, 9, 15, 19, {1, 1}, {}},
        {8, 9, 16, 13, 11, {3, 3}, {.border_mode = full, .dilation = Size2(1, 2), .filter_flip = false}},
        {2, 64, 47, 46, 24, {3, 3}, {.border_mode = half}},
        {3, 40, 61, 58, 16, {2, 2}, {.subsample = 2}},
    };
    return list;
}

Dims image_of(const ConvolutionSizes& s) { return {s.images, s.channels, s.height, s.width}; }
Dims filters_of(const ConvolutionSizes& s) { return {s.filters, s.channels, s.kernel[0], s.kernel[1]}; }

std::string sizes_text(const ConvolutionSizes& s) {
    return fmt::format("{}x{}x{}x{}, {} filters", s.images, s.channels, s.height, s.width, s.filters);
}

// The maps, and both gradients from a tensor of the maps' shape that is given too.
struct Passes {
    Expr x, w, g;
    std::vector<Array> values;
    std::vector<Expr> results;
};

Passes passes(const ConvolutionSizes& s, std::int64_t images, Random& random) {
    Passes p;
    p.x = input(float32, {-1, s.channels, s.height, s.width}, "x");
    p.w = input(float32, filters_of(s), "w");
    const Expr y = conv2d(p.x, p.w, s.options);
    Dims maps{-1, s.filters, y.node()->type.shape[2].constant(), y.node()->type.shape[3].constant()};
    p.g = input(float32, maps, "g");
    const Expr cost = sum(y * p.g);
    p.results = {y, grad(cost, p.w), grad(cost, p.x)};
    Dims image = image_of(s);
    maps[0] = image[0] = images;
    p.values = {random_array(float32, image, random, -1, 1),
                random_array(float32, filters_of(s), random, -0.1, 0.1),
                random_array(float32, maps, random, -1, 1)};
    return p;
}

}  // namespace

TEST_CASE("convolutions between tensors with their channels apart") {
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(1);
    for (const ConvolutionSizes& s : sizes()) {
        const Passes p = passes(s, s.images, random);
        for (const Expr& result : p.results) cases.add(sizes_text(s), {p.x, p.w, p.g}, p.values, result);
    }
    cases.run();
}

TEST_CASE("channels apart: gradients of filters from few images, and of many filters") {
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(4);
    for (const ConvolutionSizes& s :
         {ConvolutionSizes{2, 12, 14, 13, 21, {3, 3}, {}},
          ConvolutionSizes{3, 20, 9, 10, 9, {3, 2}, {.border_mode = full}},
          ConvolutionSizes{1, 9, 12, 12, 17, {3, 3}, {}}, ConvolutionSizes{2, 520, 7, 7, 512, {2, 2}, {}}}) {
        const Expr x = input(float32, image_of(s), "x"), w = input(float32, filters_of(s), "w");
        const Expr y = conv2d(x, w, s.options);
        Dims maps;
        for (const Int& n : y.node()->type.shape) maps.push_back(n.constant());
        const Expr g = input(float32, maps, "g");
        const std::vector<Array> values = {random_array(float32, image_of(s), random, -1, 1),
                                           random_array(float32, filters_of(s), random, -0.1, 0.1),
                                           random_array(float32, maps, random, -1, 1)};
        cases.add(sizes_text(s), {x, w, g}, values, grad(sum(y * g), w));
    }
    cases.run();
}

TEST_CASE("channels apart: results that are read on, images that are computed, views of given ones") {
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(2);
    const Dims image{9, 12, 14, 13}, first{16, 12, 3, 3}, second{9, 16, 3, 3};
    const Expr x = input(float32, image, "x"), v = input(float32, first, "v"),
               w = input(float32, second, "w");
    const std::vector<Array> values = {random_array(float32, image, random, -1, 1),
                                       random_array(float32, first, random, -0.1, 0.1),
                                       random_array(float32, second, random, -0.1, 0.1)};
    const std::vector<Expr> in{x, v, w};
    const Expr y = conv2d(x, v), z = conv2d(y, w, {.border_mode = half});
    cases.add("a result that is read on", in, values, y);
    cases.add("what reads it", in, values, z);
    cases.add("its mask", in, values, relu(y) + y);
    cases.add("through both, filters", in, values, grad(sum(z * cos(z)), v));
    cases.add("through both, images", in, values, grad(sum(z * cos(z)), x));
    const Expr some = x[Slice{3, 8}], turned = transpose(x, {0, 1, 3, 2}),
               last = reshape(transpose(x, {0, 2, 3, 1}), {9, 12, 14, 13});
    for (const auto& [what, part] :
         {std::pair<std::string, Expr>{"rows", some}, {"turned", turned}, {"other channels", last}}) {
        const Expr maps = conv2d(part, v, {.border_mode = half});
        cases.add(what, in, values, maps);
        cases.add(what + ", filters", in, values, grad(sum(maps * cos(maps)), v));
    }
    cases.run();
}

TEST_CASE("channels apart: no images, few and many, the same bits for any threads and on the emulator") {
    const auto made = [](const Passes& p, int threads, const std::string& device) {
        Options chosen = options();
        chosen.threads = threads;
        chosen.disabled.insert("cudnn");
        const ScopedOptions scope(chosen);
        return function({p.x, p.w, p.g}, p.results, {.device = device}).call(p.values);
    };
    for (const std::size_t k : {1, 2, 4})
        for (const std::int64_t images : {0, 1, 37}) {
            Random random(3);
            const Passes p = passes(sizes()[k], images, random);
            const Results one = made(p, 1, "cpu");
            std::vector<Results> others;
            for (const int threads : {2, 3}) others.push_back(made(p, threads, "cpu"));
            if (!emulator_left_out()) others.push_back(made(p, 2, "emulator"));
            for (std::size_t o = 0; o < others.size(); ++o)
                for (std::size_t r = 0; r < one.size(); ++r) {
                    INFO(sizes_text(sizes()[k])
                         << ", " << images << " images, result " << r << ", run " << o);
                    CHECK(same(others[o][r], one[r]));
                }
        }
}
