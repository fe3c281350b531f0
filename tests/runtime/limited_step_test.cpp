// Training steps and evaluations of the deep network for MNIST under a limit, against those at once; and what
// the system counts of such an evaluation.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "runtime/storage/host_memory.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Convolutions of 5x5, each with max-pooling, a hidden layer and one for ten classes.
struct Deep {
    Deep(DType dtype, std::int64_t first, std::int64_t second, std::int64_t hidden) {
        const auto add = [&](const Dims& shape, double size) {
            parameters.push_back(shared(random_array(dtype, shape, random, -size, size),
                                        "p" + std::to_string(parameters.size())));
            return parameters.back();
        };
        x = input(dtype, {-1, 1, 28, 28}, "x");
        Expr h = (x - mean(x)) / 128;
        h = relu(max_pool(conv2d(h, add({first, 1, 5, 5}, 0.2)), 2) + channel(add({first}, 0.1)));
        h = relu(max_pool(conv2d(h, add({second, first, 5, 5}, 0.1)), 2) + channel(add({second}, 0.1)));
        h = relu(dot(flatten(h, 2), add({second * 16, hidden}, 0.1)) + add({hidden}, 0.1));
        const Expr scores = dot(h, add({hidden, 10}, 0.1)) + add({10}, 0.1);
        loss = mean(categorical_crossentropy(softmax(scores), y));
        wrong = sum(cast(neq(argmax(scores, {1}), cast(y, int64)), int64));
    }
    // Of images that are an argument, or bytes in a variable.
    Function step(const std::string& device, const Updates& updates, ByteCount limit,
                  const Array& images) const {
        std::vector<Expr> outputs{loss};
        for (const Expr& g : grad(loss, std::vector<Expr>(parameters.begin(), parameters.end())))
            outputs.push_back(g);
        FunctionOptions options{.updates = updates, .name = "step", .device = device, .memory_limit = limit};
        if (images.dtype() != uint8) return function({x, y}, outputs, options);
        options.givens = {{x, cast(shared(images, "images"), x.dtype())}};
        return function({y}, outputs, options);
    }
    Array images(std::int64_t count, DType dtype) {
        return random_array(dtype, {count, 1, 28, 28}, random, 0, 255);
    }
    Array labels(std::int64_t count) { return random_array(int32, {count}, random, 0, 9); }

    Random random{4};
    std::vector<Shared> parameters;
    Expr x, y = ivector("y"), loss, wrong;
};

// What a step gives, then the new parameters; these are put back.
std::vector<Array> after_step(const Deep& net, Function f, const Array& images, const Array& labels) {
    std::vector<Array> before, all;
    for (const Shared& p : net.parameters) before.push_back(p.get_value());
    const Results r = images.dtype() == uint8 ? f(labels) : f(images, labels);
    for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    for (const Shared& p : net.parameters) all.push_back(p.get_value());
    for (std::size_t k = 0; k < before.size(); ++k) {
        Shared p = net.parameters[k];
        p.set_value(before[k]);
    }
    return all;
}

struct LimitedStep {
    std::string device;
    DType images;  // uint8: in a variable
    std::int64_t count;
    ByteCount limit;
    bool fits_at_once = false;  // perhaps
};

void check_step(Deep& net, const LimitedStep& step) {
    const auto& [device, dtype, count, limit, fits_at_once] = step;
    const double tolerance = net.x.dtype() == float64 ? 1e-12 : 1e-5;
    const Array images = net.images(count, dtype), labels = net.labels(count);
    const auto updates = [&](bool with_adam) {
        return with_adam ? adam(net.loss, net.parameters, 0.01) : sgd(net.loss, net.parameters, 0.01);
    };
    const std::vector<Array> expected =
        after_step(net, net.step(device, updates(false), {}, images), images, labels);
    for (const bool with_adam : {false, true}) {
        Function f = net.step(device, updates(with_adam), limit, images);
        const std::vector<Array> got = after_step(net, f, images, labels);
        const MemoryPlan plan = f.memory_plan();
        INFO(device << ", " << count << " images of " << name_of(dtype) << ", "
                    << (with_adam ? "adam" : "sgd") << ": " << plan.micro_batch << " at a time, "
                    << plan.peak_bytes << " bytes");
        CHECK(plan.peak_bytes <= limit.bytes);
        CHECK((fits_at_once || plan.micro_batch > 0 || !plan.recomputed.empty()));
        CHECK(plan.micro_batch < count);
        const std::size_t compared = with_adam ? 1 + net.parameters.size() : expected.size();
        for (std::size_t k = 0; k < compared; ++k) {
            INFO(k);
            CHECK(difference(got[k], expected[k], {.of_largest = tolerance}) == "");
        }
        if (count >= 2000)
            std::cout << fmt::format("{}, {}: {} images of {}, {} at a time, peak {} bytes\n", device,
                                     with_adam ? "adam" : "sgd", count, name_of(dtype), plan.micro_batch,
                                     plan.peak_bytes);
    }
}

std::int64_t status_bytes(const std::string& field) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, field.size(), field) == 0)
            return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
    return 0;
}

}  // namespace

TEST_CASE("a step under a limit is the step of the whole batch") {
    for (const DType dtype : {float64, float32}) {
        Deep net(dtype, 4, 6, 24);
        const ByteCount limit = dtype == float64 ? 700_KiB : 370_KiB;
        check_step(net, {"cpu", dtype, 50, limit});
        check_step(net, {"cpu", uint8, 60, limit});
        if (!emulator_skipped() && dtype == float32) check_step(net, {"emulator", uint8, 20, 220_KiB});
    }
}

// Floats that are added up in parts have another mean by a rounding, which in float32 may turn some of
// millions of maxima: they are compared in float64. The mean of bytes is the same.
TEST_CASE("a step of 2,000 images under 256 MiB is the step of the whole batch", "[slow]") {
    for (const DType dtype : {float32, float64}) {
        Deep net(dtype, 32, 64, 1024);
        check_step(net, {"cpu", dtype, 2000, 256_MiB, true});
        if (dtype == float64) check_step(net, {"cpu", dtype, 2000, 200_MiB});
        for (const ByteCount limit : {110_MiB, 80_MiB})
            check_step(net, {"cpu", uint8, 2000, dtype == float64 ? ByteCount{2 * limit.bytes} : limit});
    }
}

TEST_CASE("the system counts no more than the limit of an evaluation, and 16 MiB", "[slow]") {
    // Code and heap of the compiler's libraries are there before.
    {
        const Expr a = matrix("a"), i = tensor4("i");
        const Shared w = shared(full_of({3, 1, 5, 5}, 1));
        function({a, i}, {dot(a, a), conv2d(i, w)})(full_of({8, 8}, 1), full_of({2, 1, 9, 9}, 1));
    }
    std::vector<double> losses;
    for (const ByteCount limit : {64_MiB, 256_MiB}) {
        trim_host_memory();
        std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM begins anew
        const std::int64_t before = status_bytes("VmRSS:");
        std::int64_t most = 0;
        {
            Deep net(float32, 32, 64, 1024);
            const Shared images =
                shared(random_array(uint8, {10000, 1, 28, 28}, net.random, 0, 255), "images");
            Function f = function({net.y}, {net.loss, net.wrong},
                                  {.givens = {{net.x, cast(images, float32)}}, .memory_limit = limit});
            const Results r = f(net.labels(10000));
            most = status_bytes("VmHWM:");
            losses.push_back(r[0].at(0));
            std::cout << fmt::format("limit {}: plan {}, {} at a time, VmHWM {} more than before\n",
                                     limit.bytes, f.memory_plan().peak_bytes, f.memory_plan().micro_batch,
                                     most - before);
        }
        CHECK(most - before <= limit.bytes + (std::int64_t{16} << 20));
    }
    CHECK(losses[0] == Approx(losses[1]).epsilon(1e-6));
}
