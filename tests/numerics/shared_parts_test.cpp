// Values of which each is read twice by the next: expressions that share their parts. Whatever walks over one
// of them by every path takes 2^60 steps and does not end.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr int doublings = 60;

using Step = std::function<Expr(const Expr&)>;

Expr chain(Expr y, const Step& step) {
    for (int k = 0; k < doublings; ++k) y = step(y);
    return y;
}

// The chain before, behind and between what kernels are scheduled by.
void add_cases(PackedCases& cases, const std::string& name, const Step& step) {
    Random random(21);
    const Expr x = input(float32, {9, 35}, "x"), scalar = input(float32, {}, "scalar"),
               bytes = input(uint8, {9, 35}, "bytes"), image = input(float32, {2, 3, 17, 15}, "image"),
               last = input(float32, {2, 9, 8, 17}, "last"), w = input(float32, {4, 3, 3, 3}, "w");
    const Array x_value = random_array(float32, {9, 35}, random, 0.1, 0.9),
                scalar_value = random_array(float32, {}, random, 0.1, 0.9),
                bytes_value = random_array(uint8, {9, 35}, random, 0, 255),
                image_value = random_array(float32, {2, 3, 17, 15}, random, 0.1, 0.9),
                last_value = random_array(float32, {2, 9, 8, 17}, random, 0.1, 0.9),
                w_value = random_array(float32, {4, 3, 3, 3}, random, 0.1, 0.9);
    const auto after = [&](const Expr& y) { return chain(y, step); };
    const auto of_x = [&](const std::string& what, const Expr& y) {
        cases.add(name + what, {x}, {x_value}, y);
    };
    const Expr y = after(x);
    of_x(", alone", y);
    of_x(", all summed", sum(y));
    of_x(", rows summed", sum(y, {1}));
    of_x(", columns summed", sum(y, {0}));
    of_x(", of sums", after(mean(x, {1})));
    of_x(", of a softmax", after(softmax(x)));
    of_x(", positions", argmax(y, {1}));
    of_x(", transposed", transpose(y));
    of_x(", padded", pad(y, {{1, 2}, {0, 3}}));
    of_x(", a product", dot(y, transpose(x)));
    of_x(", of a product", after(dot(x, transpose(x)) / 40));
    of_x(", gradient", grad(sum(y * x), x));
    cases.add(name + ", a scalar", {scalar}, {scalar_value}, after(scalar));
    cases.add(name + ", bytes", {bytes}, {bytes_value}, after(cast(bytes, float32) / 300));
    const auto of_image = [&](const std::string& what, const Expr& z) {
        cases.add(name + what, {image, w}, {image_value, w_value}, z);
    };
    const auto pooled = [](const Expr& z) { return max_pool(z, 3, {.stride = 2}); };
    of_image(", pooled", pooled(after(image)));
    of_image(", of pooled", after(pooled(image)));
    of_image(", gradient of pooling", grad(sum(pooled(after(image)) * pooled(image)), image));
    of_image(", gradient behind pooling", grad(sum(after(pooled(image))), image));
    of_image(", convolved", conv2d(after(image), w));
    of_image(", of a convolution", after(relu(conv2d(image, w)) / 30));
    of_image(", gradient of filters", grad(sum(after(conv2d(image, w) / 30)), w));
    const Expr channels_first = transpose(last, {0, 3, 1, 2});
    cases.add(name + ", pooled over channels", {last}, {last_value}, max_pool(after(channels_first), 2));
    cases.add(name + ", gradient over channels", {last}, {last_value},
              grad(sum(after(max_pool(channels_first, 2))), last));
}

}  // namespace

TEST_CASE("values that the next one reads twice") {
    PackedCases cases(tested_device());
    add_cases(cases, "halves added", [](const Expr& y) {
        const Expr half = y * 0.5F;
        return half + half;
    });
    add_cases(cases, "parabolas", [](const Expr& y) { return y * (1.0F - y) + 0.5F * y; });
    add_cases(cases, "chosen", [](const Expr& y) { return where(y > 0.25F, y * 0.96875F, y + 0.125F); });
    cases.run();
}

TEST_CASE("sums of a value and itself") {
    PackedCases cases(tested_device());
    add_cases(cases, "doubled", [](const Expr& y) { return y + y; });
    cases.run();
}
