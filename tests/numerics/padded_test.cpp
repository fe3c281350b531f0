// Borders of arrays whose last axes are few elements, as interleaved colours are, and lookups in them.
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("borders of interleaved channels") {
    Random random(1);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    for (const DType dtype : {uint8, float32})
        for (const Dims& shape : std::vector<Dims>{{2, 5, 7, 1},
                                                   {3, 9, 40, 3},
                                                   {2, 3, 150, 4},
                                                   {1, 6, 33, 6},
                                                   {2, 1, 1, 8},
                                                   {0, 3, 4, 3},
                                                   {17, 2}})
            for (const bool known : {true, false}) {
                Dims declared = shape;
                if (!known) std::fill(declared.begin(), declared.end() - 1, -1);
                const Expr x = input(dtype, declared, "x");
                inputs.push_back(x);
                values.push_back(random_array(dtype, shape, random, 0, 100));
                const auto name = [&](const char* what) {
                    return fmt::format("{} of {} {} {}", what, known ? "known" : "unknown", name_of(dtype),
                                       text_of(shape));
                };
                std::vector<std::pair<int, int>> one(shape.size(), {0, 0}), two = one, both = one;
                one[shape.size() - 2] = {4, 3};
                two[0] = {1, 0};
                two[shape.size() - 2] = {0, 5};
                both.back() = {1, 2};
                both[shape.size() - 2] = {2, 1};
                cases.push_back({name("one axis"), pad(x, one), {}});
                cases.push_back({name("two axes"), pad(x, two, 7), {}});
                cases.push_back({name("the channels too"), pad(x, both), {}});
                cases.push_back({name("rolled"), roll(x, 2, static_cast<int>(shape.size()) - 2), {}});
                if (dtype == float32)
                    cases.push_back({name("gradient"), grad(sum(sqr(pad(x, one) + 1)), x), {.ulps = 2}});
            }
    OnTwoDevices run(inputs, cases, "borders of channels");
    REQUIRE(run(values) == "");
}

TEST_CASE("random crops of images with a border, some of them flipped") {
    constexpr std::int64_t images = 6, side = 9, border = 2, wide = side + 2 * border;
    Random random(2);
    for (const bool known : {true, false}) {
        const Expr x = known ? input(uint8, {images, side, side, 3}, "x") : tensor4("x", uint8);
        const Expr top = ivector("top"), left = ivector("left"), flipped = ivector("flipped");
        const Expr padded = pad(x, {{0, 0}, {border, border}, {border, border}, {0, 0}});
        const Expr at = cast(range(0, side), int32), row = expand_dims(top, 1) + at,
                   column = expand_dims(left, 1) + where(expand_dims(flipped, 1) > 0, side - 1 - at, at);
        const Expr image = expand_dims(expand_dims(cast(range(0, images), int32), 1), 2);
        const Expr number = (image * wide + expand_dims(row, 2)) * wide + expand_dims(column, 1);
        const Expr crops = reshape(padded, {-1, 3})[number];
        OnTwoDevices run(
            {x, top, left, flipped},
            {{"crops", crops, {}},
             {"normalised", transpose((cast(crops, float32) - 100) / 50, {0, 3, 1, 2}), {.ulps = 2}},
             {"beside the whole", sum(cast(padded, int32)), {}}},
            "crops");
        REQUIRE(run({random_array(uint8, {images, side, side, 3}, random, 0, 255),
                     random_array(int32, {images}, random, 0, 2 * border),
                     random_array(int32, {images}, random, 0, 2 * border),
                     random_array(int32, {images}, random, 0, 1)}) == "");
    }
}

TEST_CASE("a copy of shuffled channels has these channels, and no border of others") {
    const Dims shape{4, 58, 28, 28};
    for (const bool known : {true, false}) {
        const Expr x = known ? input(float32, shape, "x") : tensor4("x"),
                   target = known ? input(float32, shape, "target") : tensor4("target");
        const auto variable = [](const Dims& of, const char* name) { return Expr(shared(zeros(of), name)); };
        const Expr w = variable({29, 29, 1, 1}, "w"), depthwise = variable({29, 1, 3, 3}, "depthwise"),
                   v = variable({29, 29, 1, 1}, "v"), squeeze = variable({29, 8}, "squeeze"),
                   excite = variable({8, 29}, "excite");
        const auto normal = [](const Expr& z) {
            const Expr c = z - mean(z, {0, 2, 3}, {.keepdims = true});
            return c / sqrt(mean(sqr(c), {0, 2, 3}, {.keepdims = true}) + 1e-5F);
        };
        const Expr first = relu(normal(conv2d(x[{colon, Slice{29, 58}}], w)));
        const Expr deep =
            normal(conv2d(first, depthwise, {.border_mode = half, .filter_flip = false, .groups = 29}));
        const Expr last = relu(normal(conv2d(deep, v)));
        const Expr gate = sigmoid(dot(relu(dot(mean(last, {2, 3}), squeeze)), excite));
        const Expr joined =
            concatenate({x[{colon, Slice{0, 29}}], last * expand_dims(expand_dims(gate, 2), 3)}, 1);
        const Expr shuffled =
            reshape(transpose(reshape(joined, {x.length(0), 2, 29, 28, 28}), {0, 2, 1, 3, 4}),
                    {x.length(0), 58, 28, 28});
        const Expr loss = mean(sqr(shuffled - target));
        std::vector<Expr> outputs = grad(loss, {w, depthwise, v, squeeze, excite});
        outputs.push_back(loss);
        Function f = function({x, target}, outputs);
        f(zeros(shape), zeros(shape));
        CHECK(f.memory_plan().peak_bytes < 10'000'000);  // of which the arguments take 1.5 MB
    }
}

// Row i shifted by i, as relative places of attention and diagonals of a table of distances are.
TEST_CASE("rows of a padded array that are looked at as rows of another length") {
    Random random(5);
    for (const bool known : {true, false})
        for (const std::int64_t n : {1, 2, 7, 24}) {
            const Expr d = known ? input(float32, Dims{3, n, n}, "d") : tensor3("d");
            const Expr b = known ? Expr(std::int64_t{3}) : d.length(0), m = known ? Expr(n) : d.length(1);
            const Expr next = reshape(
                reshape(pad(d, {{0, 0}, {0, 0}, {1, 0}}), {b, m * (m + 1)})[{colon, Slice{m, m * (m + 1)}}],
                {b, m, m});
            const Expr skewed = reshape(reshape(pad(sqr(d), {{0, 0}, {0, 0}, {0, n}}),
                                                {b, m * (m + n)})[{colon, Slice{0, m * (m + n - 1)}}],
                                        {b, m, m + n - 1});
            std::vector<Expr> diagonals;
            for (std::int64_t k = 0; k < 2 * n - 1; ++k)
                diagonals.push_back(sum(skewed[{colon, colon, k}], 1));
            const Tolerance near{.absolute = 1e-6, .relative = 1e-5};
            OnTwoDevices both({d}, {{"softmax", softmax(next + d), near},
                                    {"product", next * skewed[{colon, colon, Slice{0, n}}], near},
                                    {"diagonals", stack(diagonals, 1), near},
                                    {"gradient", grad(sum(sqr(softmax(next + d))), d), near}});
            INFO(n << " columns, " << (known ? "known" : "unknown"));
            CHECK(both({random_array(float32, {3, n, n}, random)}) == "");
        }
}
