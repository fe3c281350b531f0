// A set of images that fits in memory only as bytes: a hundred times the test images of MNIST.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/memory.h"
#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr std::int64_t copies = 100, images_of_copy = 10000, pixels = 784, batch = 1000;
constexpr ByteCount limit{std::int64_t{1} << 30};

// A layer of ten classes, trained on minibatches of images in a variable.
struct Training {
    explicit Training(const Shared& images) : images(images) {}
    Shared images, labels, w = shared(zeros({pixels, 10}), "w");
    Function step(const Array& classes, const FunctionOptions& with) {
        labels = shared(classes, "labels");
        const Expr i = lscalar("i"), x = matrix("x"), y = ivector("y");
        const Slice rows{i * batch, (i + 1) * batch};
        const Expr loss = mean(categorical_crossentropy(softmax(dot((x - mean(x)) / 128, w)), y));
        FunctionOptions options = with;
        options.updates = sgd(loss, {w}, 0.05);
        options.givens = {{x, cast(images[rows], float32)}, {y, labels[rows]}};
        options.name = "step";
        return function({i}, loss, options);
    }
};

void check_trains(Function& step) {
    const std::int64_t last = copies * images_of_copy / batch - 1;
    const double first_loss = double(step(last));
    CHECK(first_loss == Approx(std::log(10.0)));
    double loss = first_loss;
    for (int k = 0; k < 20; ++k) loss = double(step(last));
    CHECK(loss < first_loss - 0.1);
}

}  // namespace

TEST_CASE("a set of 784 MB as bytes trains under 1 GiB, and its 3.1 GB as floats are refused", "[slow]") {
    Random random(1);
    const Array one = random_array(uint8, {images_of_copy, pixels}, random, 0, 255),
                classes = random_array(int32, {copies * images_of_copy}, random, 0, 9);
    Array all(uint8, {copies * images_of_copy, pixels});
    auto* to = static_cast<std::uint8_t*>(all.mutable_data());
    for (std::int64_t k = 0; k < copies; ++k)
        std::copy_n(one.view<std::uint8_t>().begin(), one.bytes(), to + k * one.bytes());
    Training bytes(shared(std::move(all), "images"));

    SECTION("of a function") {
        Function step = bytes.step(classes, {.memory_limit = limit});
        CHECK(step.memory_plan({}).peak_bytes <= limit.bytes);
        check_trains(step);
        Training floats(shared(Array(float32, {copies * images_of_copy, pixels}), "images"));
        const Array before = floats.w.get_value();
        const std::string said = error_of([&] { floats.step(classes, {.memory_limit = limit})(0); });
        INFO(said);
        CHECK_THAT(said, ContainsSubstring("function \"step\"") &&
                             ContainsSubstring("its memory_limit is 1.1 GB (1073741824 bytes)") &&
                             ContainsSubstring("float32 [1000000, 784] = 3.1 GB") &&
                             ContainsSubstring("data kept as bytes and not as floats"));
        CHECK(same(floats.w.get_value(), before));
    }
    SECTION("of the device") {
        Options o = options();
        o.memory_limit = limit.bytes;
        const ScopedOptions scope(o);
        Function step = bytes.step(classes, {.device = "cpu"});
        check_trains(step);
        CHECK(host_ledger().now() <= limit.bytes);
    }
}
