// Loops in which a turn of the WHILE node has several steps: every number of steps; errors and requests at
// every place of a turn.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/slices.h"
#include "runtime/cuda/step_cache.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr std::int64_t turn = 8;  // of steps of few nodes

// However slow the machine is, turns are whole.
class SlicesOf {
  public:
    explicit SlicesOf(std::chrono::nanoseconds time) { cuda::set_longest_launch(time); }
    ~SlicesOf() { cuda::set_longest_launch(before_); }
    SlicesOf(const SlicesOf&) = delete;
    SlicesOf& operator=(const SlicesOf&) = delete;

  private:
    const std::chrono::nanoseconds before_ = cuda::longest_launch();
};
constexpr std::chrono::hours uncut{1000};

// Results of every size, the state that each step reads and writes, and a check that a value may fail.
struct Walk {
    static constexpr std::int64_t rows = 40;
    Shared count, mean, trace;
    Function step;
    explicit Walk(const char* device, DType index = int64, std::int64_t width = 3) {
        Random random(11);
        const Shared table = shared(random_array(float32, {rows, width}, random), "table"),
                     bytes = shared(random_array(uint8, {rows, 3}, random, 0, 255), "bytes");
        count = shared(Array(std::int64_t{0}), "count");
        mean = shared(zeros({width}), "mean");
        trace = shared(zeros({rows}), "trace");
        const Expr i = scalar("i", index);
        const Expr row = gather(table, i), old = mean * 0.5f;
        const Updates updates = {{count, count + 1},
                                 {mean, old + row},
                                 {trace, trace + cast(eq(range(0, rows), cast(i, int64)), float32)}};
        step = function({i}, {count, old - row, sum(row * mean), gather(bytes, i)},
                        {.updates = updates, .name = "walk", .device = device});
    }
    void restart() {
        count.set_value(Array(std::int64_t{0}));
        mean.set_value(zeros(mean.get_value().shape()));
        trace.set_value(zeros({rows}));
    }
};

void check_state(const Walk& got, const Walk& expected) {
    CHECK(difference(got.count.get_value(), expected.count.get_value()) == "");
    CHECK(difference(got.mean.get_value(), expected.mean.get_value()) == "");
    CHECK(difference(got.trace.get_value(), expected.trace.get_value()) == "");
}

void check_results(const Results& got, const Results& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO("result " << k);
        CHECK(difference(got[k], expected[k]) == "");
    }
}

std::vector<std::int64_t> shuffled(std::int64_t steps) {
    std::vector<std::int64_t> values;
    for (std::int64_t k = 0; k < steps; ++k) values.push_back((k * 7 + steps) % Walk::rows);
    return values;
}

// Steps of a turn, as the report says.
std::int64_t turn_in(const std::string& report) {
    std::smatch found;
    return std::regex_search(report, found, std::regex("a graph with a WHILE node of (\\d+) steps a turn"))
               ? std::stoi(found[1])
               : 1;
}

}  // namespace

TEST_CASE("loops of every number of steps run each step once") {
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    Walk cpu("cpu"), there(tested_gpu());
    for (const std::int64_t steps : {0, 1, 2, 7, 8, 9, 10, 15, 16, 17, 18, 19, 24, 31, 33}) {
        INFO(steps << " steps");
        check_results(there.step.loop(0, steps), cpu.step.loop(0, steps));
        CHECK(there.step.steps_done() == steps);
        check_state(there, cpu);
        check_results(there.step.loop(shuffled(steps)), cpu.step.loop(shuffled(steps)));
        check_state(there, cpu);
        check_results(there.step.loop(3, 3 + steps), cpu.step.loop(3, 3 + steps));
        check_state(there, cpu);
        // The first loop of a function begins with a step that is no part of a turn.
        Walk other_cpu("cpu"), other(tested_gpu());
        check_results(other.step.loop(shuffled(steps)), other_cpu.step.loop(shuffled(steps)));
        CHECK(other.step.steps_done() == steps);
        check_state(other, other_cpu);
    }
    CHECK(turn_in(there.step.report(Detail::complete)) == turn);
}

TEST_CASE("turns take indices of any integer type, and share out large results") {
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    for (const DType index : {int8, int16, int32, uint8}) {
        INFO(name_of(index));
        Walk cpu("cpu", index), there(tested_gpu(), index);
        for (int twice = 0; twice < 2; ++twice)
            check_results(there.step.loop(shuffled(2 * turn + 3)), cpu.step.loop(shuffled(2 * turn + 3)));
        check_state(there, cpu);
    }
    constexpr std::int64_t wide = 20000;  // 80 KB a step
    Walk cpu("cpu", int64, wide), there(tested_gpu(), int64, wide);
    for (int twice = 0; twice < 2; ++twice) {
        const Results got = there.step.loop(shuffled(2 * turn + 3)),
                      expected = cpu.step.loop(shuffled(2 * turn + 3));
        CHECK(difference(got[1], expected[1]) == "");
        CHECK(difference(got[3], expected[3]) == "");
    }
    CHECK(difference(there.mean.get_value(), cpu.mean.get_value()) == "");
}

TEST_CASE("a loop is a launch of whole turns, and one of the steps that are left over") {
    if (left_out()) return;
    const SlicesOf scope(uncut);
    Walk walk("emulator");
    const auto launches = [&](std::int64_t steps) {
        const cuda::LaunchCount before = cuda::launches_so_far();
        walk.step.loop(0, steps);
        const cuda::LaunchCount after = cuda::launches_so_far();
        CHECK(after.kernels == before.kernels);
        return after.graphs - before.graphs;
    };
    walk.step.loop(0, 3);
    for (const std::int64_t steps : {1, 2, 7, 8, 16, 32}) CHECK(launches(steps) == 1);
    for (const std::int64_t steps : {9, 15, 17, 39}) CHECK(launches(steps) == 2);
}

TEST_CASE("a step that fails ends the loop at every place of a turn") {
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    constexpr std::int64_t steps = 3 * turn + 5;
    const auto with_error = [](std::int64_t at) {
        std::vector<std::int64_t> values = shuffled(steps);
        values[static_cast<std::size_t>(at)] = Walk::rows + 2;
        return values;
    };
    Walk there(tested_gpu());
    for (bool first = true; const std::int64_t at : {3, 0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 28}) {
        INFO("step " << at);
        Walk cpu("cpu");
        there.restart();
        std::vector<std::int64_t> before = shuffled(steps);
        before.resize(static_cast<std::size_t>(at));
        cpu.step.loop(before);
        const std::string words = "in step " + std::to_string(at) + " of the loop, whose first argument is " +
                                  std::to_string(Walk::rows + 2);
        CHECK_THROWS_WITH(there.step.loop(with_error(at)), ContainsSubstring(words));
        CHECK(there.step.steps_done() == at);
        check_state(there, cpu);
        // And the loop after it has all its steps, of which the second is the first of a turn at first.
        check_results(there.step.loop(shuffled(steps)), cpu.step.loop(shuffled(steps)));
        check_state(there, cpu);
        if (first) CHECK(turn_in(there.step.report(Detail::complete)) == turn);
        first = false;
    }
}

TEST_CASE("the value of a library's result is the one before the step that fails") {
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    Random random(12);
    const Array start = random_array(float32, {64, 64}, random, -0.1, 0.1);
    const Shared a = shared(random_array(float32, {64, 64}, random, -0.1, 0.1), "a");
    const Shared table = shared(Array(std::vector<float>{1, 2, 3}), "table");
    const Expr i = lscalar("i");
    const auto make = [&](const Shared& w, const char* device) {
        return function({i}, {gather(table, i)},
                        {.updates = {{w, dot(a, w) + w}}, .name = "product", .device = device});
    };
    const Shared w = shared(start, "w"), by_cpu = shared(start, "w");
    Function there = make(w, tested_gpu()), cpu = make(by_cpu, "cpu");
    for (const std::size_t at : {11, 5, 16, 17}) {
        INFO("step " << at);
        Shared(w).set_value(start);
        Shared(by_cpu).set_value(start);
        std::vector<std::int64_t> values(2 * turn + 3, 1);
        cpu.loop(std::vector<std::int64_t>(at, 1));
        values[at] = 3;
        CHECK_THROWS_WITH(there.loop(values), ContainsSubstring("in step " + std::to_string(at) + " of"));
        CHECK(difference(w.get_value(), by_cpu.get_value(), on_emulator() ? Tolerance{} : by_library) == "");
    }
}

TEST_CASE("a copy at the end of a step changes nothing after an error in the same turn") {
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    constexpr std::int64_t n = 64;
    Random random(13);
    const Shared data = shared(random_array(float32, {300, n}, random), "data"),
                 b = shared(random_array(float32, {n, n}, random), "b");
    Array places = permutation(4 * n, 2);  // those of the third minibatch are out of range
    auto* place = static_cast<std::int64_t*>(places.mutable_data());
    for (int k = 0; k < 4 * n; ++k) place[k] = k / n == 2 ? 290 + k % 20 : place[k];
    const Shared order = shared(places, "order"), w = shared(zeros({n, n}), "w"),
                 by_cpu = shared(zeros({n, n}), "w");
    const Expr i = lscalar("i");
    const auto make = [&](const Shared& to, const char* device) {
        const Expr rows = gather(data, order[Slice{i * n, (i + 1) * n}]);
        return function({i}, {}, {.updates = {{to, dot(rows, b)}}, .name = "product", .device = device});
    };
    Function there = make(w, tested_gpu()), cpu = make(by_cpu, "cpu");
    const auto& steps = there.state().program->body.steps;
    REQUIRE(std::any_of(steps.begin(), steps.end(), [](const Step& step) {
        return std::holds_alternative<CopyStep>(step.operation) && step.commits;
    }));
    for (const std::size_t at : {11, 5, 15, 16, 17}) {
        INFO("step " << at);
        std::vector<std::int64_t> values(2 * turn + 3);
        for (std::size_t k = 0; k < values.size(); ++k) values[k] = k == at ? 2 : k % 3 == 2 ? 3 : k % 3;
        CHECK_THROWS_WITH(there.loop(values), ContainsSubstring("in step " + std::to_string(at) + " of"));
        cpu(values[at - 1]);
        CHECK(difference(w.get_value(), by_cpu.get_value(), on_emulator() ? Tolerance{} : by_library) == "");
    }
}

TEST_CASE("every access of turns is right") {
    if (left_out()) return;
    const SlicesOf scope(uncut);
    const CheckedEmulator checked;
    Walk cpu("cpu"), there("emulator");
    for (const std::int64_t steps : {std::int64_t{3}, 2 * turn + 3}) {
        check_results(there.step.loop(shuffled(steps)), cpu.step.loop(shuffled(steps)));
        check_state(there, cpu);
    }
    std::vector<std::int64_t> values = shuffled(turn);
    values[4] = Walk::rows;
    CHECK_THROWS_WITH(there.step.loop(values), ContainsSubstring("in step 4 of the loop"));
}

TEST_CASE("a request ends a loop soon, between two steps, and the next loop goes on from there") {
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    constexpr std::int64_t endless = std::int64_t{1} << 60;
    const Expr i = lscalar("i");
    const Shared n = shared(Array(std::int64_t{0}), "n"), last = shared(Array(std::int64_t{0}), "last");
    Function f = function({i}, {}, {.updates = {{n, n + 1}, {last, i}}, .device = tested_gpu()});
    std::int64_t all = 0;
    for (const std::int64_t wanted : {1, 2, 9, 20, 23, 24, 50}) {
        INFO("a request after " << wanted << " steps");
        f.loop(0, 0);
        const StopToken token;
        std::atomic<bool> ended{false};
        std::thread caller([&] {
            f.loop(0, endless, token);
            ended = true;
        });
        while (f.steps_done() < wanted && !ended) std::this_thread::yield();
        token.request();
        const std::int64_t told = f.steps_done();
        caller.join();
        const std::int64_t done = f.steps_done();
        CHECK(done >= wanted);
        // The turn at hand, the one that reads the word, and a step of those that are left over.
        if (on_emulator()) CHECK(done <= told + 2 * turn + 1);
        all += done;
        CHECK(n.get_value().item<std::int64_t>() == all);
        CHECK(last.get_value().item<std::int64_t>() == done - 1);
    }
}

TEST_CASE("loops that are cut into slices of any length have all their steps") {
    if (tested_gpu_skipped()) return;
    Walk cpu("cpu"), there(tested_gpu());
    const std::vector<std::int64_t> values = shuffled(150);
    for (const auto time : {std::chrono::microseconds(1), std::chrono::microseconds(300),
                            std::chrono::microseconds(1000), std::chrono::microseconds(4000)}) {
        const SlicesOf scope(time);
        check_results(there.step.loop(values), cpu.step.loop(values));
        check_state(there, cpu);
    }
}

TEST_CASE("a body has as many steps as its nodes allow, and the report says how many") {
    for (const auto& [nodes, steps] :
         {std::pair{0, 8}, {1, 8}, {20, 8}, {21, 7}, {26, 6}, {53, 3}, {80, 2}, {81, 1}, {160, 1}, {5000, 1}})
        CHECK(cuda::most_steps_of_turn(static_cast<std::size_t>(nodes)) == steps);
    if (tested_gpu_skipped()) return;
    const SlicesOf scope(uncut);
    // A step of many kernels: each sum needs the one before it whole.
    const auto make = [](const Shared& v, const char* device) {
        const Expr i = lscalar("i");
        Expr x = v;
        for (int k = 0; k < 15; ++k) x = x - sum(x * x) / (1000 + k) + cast(i, float32);
        return function({i}, {sum(x)}, {.updates = {{v, x * 1e-3f}}, .name = "chain", .device = device});
    };
    const Array start = ones({3000});
    const Shared v = shared(start, "v"), by_cpu = shared(start, "v");
    Function there = make(v, tested_gpu()), cpu = make(by_cpu, "cpu");
    const Tolerance tolerance{.absolute = 1e-6, .relative = 1e-3};
    for (const std::int64_t steps : {20, 11}) {
        CHECK(difference(there.loop(0, steps)[0], cpu.loop(0, steps)[0], tolerance) == "");
        CHECK(difference(v.get_value(), by_cpu.get_value(), tolerance) == "");
    }
    const std::string report = there.report(Detail::complete);
    std::smatch found;
    REQUIRE(std::regex_search(report, found, std::regex("a step is (\\d+) nodes")));
    INFO(report);
    CHECK(turn_in(report) == cuda::most_steps_of_turn(static_cast<std::size_t>(std::stoi(found[1]))));
    CHECK(turn_in(report) < turn);
}
