// The order of steps: gradients are applied while what they read is at hand, where that takes less memory.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

enum class Rule : std::uint8_t { sgd, adam, clipped, crossed };

// Dense layers, each as wide as the input.
struct DenseLayers {
    DenseLayers(int count, std::int64_t width) : x(input(float32, {-1, width}, "x")) {
        Random random(7);
        const double size = std::sqrt(3.0 / static_cast<double>(width));
        h = x;
        for (int k = 0; k < count; ++k) {
            parameters.push_back(
                shared(random_array(float32, {width, width}, random, -size, size), "w" + std::to_string(k)));
            h = tanh(dot(h, parameters.back()));
        }
        loss = mean(sqr(h - 0.1F));
    }
    Updates updates(Rule rule) const {
        if (rule == Rule::adam) return adam(loss, parameters, 0.01);
        if (rule == Rule::clipped) return sgd(clip_by_global_norm(gradients(loss, parameters), 0.01), 1);
        Updates list = sgd(loss, parameters, 0.5);
        // Each new value reads the old one of the layer behind it.
        if (rule == Rule::crossed)
            for (std::size_t k = 0; k < list.size(); ++k)
                list[k].value = list[k].value + 0.001F * transpose(parameters[(k + 1) % parameters.size()]);
        return list;
    }
    Function step(const std::string& device, Rule rule) const {
        return function({x}, loss, {.updates = updates(rule), .name = "step", .device = device});
    }
    std::vector<Array> after(const std::string& device, Rule rule, const Array& rows) {
        std::vector<Array> before, all;
        for (const Shared& p : parameters) before.push_back(p.get_value());
        Function f = step(device, rule);
        all.push_back(f(rows));
        all.push_back(f(rows));
        for (std::size_t k = 0; k < parameters.size(); ++k) {
            all.push_back(parameters[k].get_value());
            parameters[k].set_value(before[k]);
        }
        return all;
    }

    std::vector<Shared> parameters;
    Expr x, h, loss;
};

}  // namespace

TEST_CASE("gradients are applied while what they read is at hand", "[core][runtime][peak]") {
    constexpr std::int64_t layers = 10, width = 512, rows = 2048;
    const DenseLayers net(layers, width);
    for (const std::string& device : cpu_and_emulator())
        for (const Rule rule : {Rule::sgd, Rule::adam, Rule::clipped}) {
            const MemoryPlan plan = net.step(device, rule).memory_plan({{net.x, {rows, width}}});
            INFO(device << ", rule " << static_cast<int>(rule) << "\n" << plan);
            // Activations, the cotangents of two layers, and gradients that wait for their norm.
            const std::int64_t activation = rows * width * 4, parameter = width * width * 4;
            const std::int64_t most =
                (layers + 2) * activation + (rule == Rule::clipped ? layers * parameter : parameter);
            CHECK(plan.least_arena_bytes < most + most / 20);
            CHECK(plan.arena_bytes <= plan.least_arena_bytes + plan.least_arena_bytes / 20);
        }
}

TEST_CASE("in any order of steps, updates read the old values", "[core][runtime][peak]") {
    DenseLayers net(4, 96);
    Random random(8);
    const Array rows = random_array(float32, {5, 96}, random);
    for (const Rule rule : {Rule::sgd, Rule::adam, Rule::clipped, Rule::crossed}) {
        const std::vector<Array> expected = net.after("reference", rule, rows);
        for (const std::string& device : cpu_and_emulator()) {
            INFO(device << ", rule " << static_cast<int>(rule));
            CHECK(differences(net.after(device, rule, rows), expected, rule == Rule::adam ? 1e-3 : 1e-5) ==
                  "");
        }
    }
}

TEST_CASE("small updates share their kernels still", "[core][runtime][peak]") {
    const DenseLayers net(3, 4);
    const Function f = net.step("cpu", Rule::sgd);
    const MemoryPlan plan = f.memory_plan({{net.x, {16, 4}}});
    INFO(plan);
    CHECK(plan.steps.size() <= 7);
}

namespace {

// Seven convolutions, the last six in residual blocks, without batch normalisation: every value is of one
// image, so one task can walk an image through all layers and back.
struct PlainResidual {
    PlainResidual(std::int64_t images, std::int64_t channels, std::int64_t size)
        : x(input(float32, {images, 3, size, size}, "x")) {
        Random random(8);
        rows = random_array(float32, {images, 3, size, size}, random, -1, 1);
        const auto layer = [&](const Expr& h, std::int64_t from) {
            parameters.push_back(shared(random_array(float32, {channels, from, 3, 3}, random, -0.2, 0.2)));
            return conv2d(h, parameters.back(), {.border_mode = half});
        };
        Expr h = relu(layer(x, 3));
        for (int k = 0; k < 3; ++k) h = relu(layer(relu(layer(h, channels)), channels) + h);
        loss = mean(sqr(mean(h, {2, 3}) - 0.3F));
    }
    Function step(const std::string& device, std::int64_t rows_at_a_time = 0) const {
        return function(
            {x}, loss,
            {.updates = sgd(loss, parameters, 0.05), .device = device, .micro_batch = rows_at_a_time});
    }
    std::vector<Array> after(Function f) {
        std::vector<Array> before, all;
        for (const Shared& p : parameters) before.push_back(p.get_value());
        for (int k = 0; k < 2; ++k) all.push_back(f(rows));
        for (std::size_t k = 0; k < parameters.size(); ++k) {
            all.push_back(parameters[k].get_value());
            parameters[k].set_value(before[k]);
        }
        return all;
    }

    Expr x, loss;
    Array rows;
    std::vector<Shared> parameters;
};

}  // namespace

TEST_CASE("a task's values take turns at memory, and a group of all layers ends where others are ready",
          "[core][runtime][peak]") {
    constexpr std::int64_t images = 96, channels = 8, size = 40;
    PlainResidual net(images, channels, size);
    const Function f = net.step("cpu");
    const MemoryPlan plan = f.memory_plan();
    INFO(plan);
    // What gradients read of seven layers, the cotangents of two, and copies with a border.
    constexpr std::int64_t value = images * channels * size * size * 4;
    CHECK(plan.arena_bytes < 12 * value);
    CHECK(plan.steps.size() > 4);
    std::int64_t copies = 0;
    for (const MemoryPlan::Buffer& b : plan.buffers) copies += b.kind == MemoryPlan::Kind::task_rows;
    CHECK(copies <= 3 * static_cast<std::int64_t>(plan.steps.size()));
    // Parts of eight images are small enough for one group.
    const std::vector<Array> got = net.after(f), expected = net.after(net.step("cpu", 8));
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO(k);
        CHECK(difference(got[k], expected[k], {.of_largest = 1e-5}) == "");
    }
    // A small batch stays in one group: 4 launches.
    const Function small = PlainResidual(8, channels, size).step("cpu");
    INFO(small.memory_plan());
    CHECK(small.memory_plan().steps.size() <= 4);
}

TEST_CASE("also the kernel of very many layers ends early", "[core][runtime][peak]") {
    const auto peak_of = [](int blocks) {
        const Expr x = input(float32, {128, 16, 32, 32}, "x");
        std::vector<Shared> filters;
        const auto convolved = [&](const Expr& of) {
            filters.push_back(shared(zeros({16, 16, 3, 3}), "w" + std::to_string(filters.size())));
            return conv2d(of, filters.back(), {.border_mode = half});
        };
        Expr h = x;
        for (int k = 0; k < blocks; ++k) h = relu(convolved(relu(convolved(h))) + h);
        const Expr loss = mean(sqr(h));
        return function({x}, loss, {.updates = sgd(loss, filters, 0.1), .device = "null"})
            .memory_plan()
            .arena_bytes;
    };
    const std::int64_t less = peak_of(20), more = peak_of(40);
    INFO(less << " and " << more);
    CHECK(more < 2.2 * static_cast<double>(less));
}
