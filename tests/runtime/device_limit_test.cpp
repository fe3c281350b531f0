// The limit of a device: a refusal takes no memory, and a loop is refused before its first step or not at
// all.
#include <atomic>
#include <cmath>
#include <thread>

#include "graph/base/memory.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// What `f` takes at most and keeps of the host's memory where the device's limit leaves it so many bytes.
struct Taken {
    std::int64_t most, kept;
    std::string refusal;  // empty: none
};
template <class F>
Taken taken_with_room(std::int64_t room, F&& f) {
    trim_host_memory();
    const std::int64_t before = host_ledger().now();
    const ScopedOptions scope = with_limit(before + room);
    host_ledger().forget_most();
    std::string refusal;
    try {
        f();
    } catch (const OutOfMemory& e) {
        refusal = e.what();
    }
    const std::int64_t most = host_ledger().most() - before;
    trim_host_memory();
    return {most, host_ledger().now() - before, std::move(refusal)};
}

// A hidden layer of 2,000 units and a step that needs 8 MB of gradients whatever the batch.
struct Wide {
    Wide() {
        Random random(3);
        const Expr x = input(float32, {-1, 500}, "x");
        const Shared w = shared(random_array(float32, {500, 2000}, random, -0.1, 0.1), "w");
        const Shared v = shared(random_array(float32, {2000, 10}, random, -0.1, 0.1), "v");
        const Expr loss = mean(sqr(dot(tanh(dot(x, w)), v)));
        f = function({x}, {loss}, {.updates = sgd(loss, {w, v}, 0.1), .name = "step", .device = "cpu"});
    }
    Function f;
};

// Steps of 500 rows of a variable, with a result of 500 rows each and a mean.
struct Evaluation {
    Evaluation() {
        Random random(5);
        const Shared data = shared(random_array(float32, {4000, 32}, random, -1, 1), "data");
        const Shared w = shared(random_array(float32, {32, 512}, random, -0.2, 0.2), "w");
        const Shared v = shared(random_array(float32, {512, 128}, random, -0.2, 0.2), "v");
        const Expr i = lscalar("i"), x = input(float32, {-1, 32}, "x");
        const Expr h = sort(dot(exp(sort(tanh(dot(x, w)))), v));
        f = function({i}, {h, mean(h)},
                     {.updates = {{calls, calls + 1}},
                      .givens = {{x, Expr(data)[range(i * 500, (i + 1) * 500)]}},
                      .name = "evaluation",
                      .device = "cpu"});
    }
    Shared calls = shared(Array(0.0f), "calls");
    Function f;
};

}  // namespace

TEST_CASE("a call that the device's limit refuses takes no more than the limit and keeps nothing") {
    const Array rows(full_of({600, 500}, 0.1));
    for (const std::int64_t room : {1'000'000, 3'000'000, 4'100'000}) {
        Wide step;
        const Taken taken = taken_with_room(room, [&] { step.f(rows); });
        CAPTURE(room, taken.most, taken.kept, taken.refusal);
        CHECK_FALSE(taken.refusal.empty());
        CHECK(taken.most <= room);
        CHECK(taken.kept <= 1024);  // the zeros that totals begin with
        // Without the limit the same function computes.
        CHECK(std::isfinite(Array(step.f(rows)).at(0)));
    }
}

TEST_CASE("a loop under the device's limit does all steps or none") {
    Evaluation at_once;
    const std::vector<Array> expected = list_of(at_once.f.loop(0, 8));
    int in_parts = 0, refused = 0;
    for (const std::int64_t steps : {1, 2, 8})
        for (const std::int64_t room :
             {6'000'000, 4'600'000, 4'200'000, 3'000'000, 2'000'000, 1'500'000, 1'000'000, 600'000}) {
            Evaluation some;
            std::vector<Array> results;
            const Taken taken = taken_with_room(room, [&] { results = list_of(some.f.loop(0, steps)); });
            CAPTURE(steps, room, taken.most, taken.refusal);
            CHECK(taken.most <= room);
            const double done = some.calls.get_value().at(0);
            CHECK(done == (taken.refusal.empty() ? static_cast<double>(steps) : 0));
            refused += !taken.refusal.empty();
            if (!taken.refusal.empty()) continue;
            in_parts += some.f.state().last_in_parts.load();
            REQUIRE(results.size() == 2);
            REQUIRE(results[0].shape() == Dims{steps, 500, 128});
            for (std::int64_t k = 0; k < results[0].size(); k += 997)
                CHECK(results[0].at(k) == Approx(expected[0].at(k)).epsilon(1e-3));
            for (std::int64_t k = 0; k < steps; ++k)
                CHECK(results[1].at(k) == Approx(expected[1].at(k)).epsilon(1e-5));
        }
    CHECK(in_parts > 0);
    CHECK(refused > 0);
}

TEST_CASE("the device's limit counts the results of parts that the user asked for") {
    const Expr x = input(float32, {-1, 32}, "x");
    const Shared w = shared(full_of({32, 256}, 0.1), "w");
    Function f = function({x}, {tanh(dot(x, w))}, {.name = "parts", .device = "cpu", .micro_batch = 100});
    const Array rows = zeros({10'000, 32});  // 10.2 MB of results
    const Taken taken = taken_with_room(2'000'000, [&] { f(rows); });
    CHECK_FALSE(taken.refusal.empty());
    CHECK(taken.most <= 2'000'000);
    const Taken enough = taken_with_room(12'000'000, [&] { f(rows); });
    CHECK(enough.refusal.empty());
}

TEST_CASE("a loop in parts that the user asked for is refused before its results take memory") {
    const Shared data = shared(zeros({4000, 32}), "data");
    const Expr i = lscalar("i"), x = input(float32, {-1, 32}, "x");
    Function f = function({i}, {exp(x)},
                          {.givens = {{x, Expr(data)[range(i * 500, (i + 1) * 500)]}},
                           .name = "parts",
                           .device = "cpu",
                           .micro_batch = 100,
                           .memory_limit = ByteCount{900'000}});
    f.loop(0, 1);
    const Taken taken = taken_with_room(INT64_MAX / 2, [&] { f.loop(0, 8); });
    CHECK_THAT(taken.refusal, ContainsSubstring("memory_limit"));
    CHECK(taken.most <= 100'000);  // 512,000 bytes of results
}

TEST_CASE("a loop that a limit ends is not repeated because another thread begins one") {
    // A step of 200 rows, which fits at once, then one of 1,000, which does not.
    const Shared data = shared(zeros({1000, 64}), "data"), calls = shared(Array(std::int64_t{0}), "calls");
    const Shared w = shared(full_of({64, 512}, 0.1), "w");
    const Expr i = lscalar("i"), x = input(float32, {-1, 64}, "x");
    Function f = function({i}, {sum(sort(exp(sort(dot(x, w)))))},
                          {.updates = {{calls, calls + 1}},
                           .givens = {{x, Expr(data)[range(0, 200 + i * 800)]}},
                           .name = "growing",
                           .device = "cpu",
                           .memory_limit = ByteCount{1'500'000}});
    constexpr int loops = 40;
    std::atomic<int> refused{0};
    const auto work = [&] {
        for (int k = 0; k < loops; ++k) try {
                f.loop(0, 2);
            } catch (const OutOfMemory&) {
                ++refused;
            }
    };
    std::thread other(work);
    work();
    other.join();
    CHECK(refused == 2 * loops);
    CHECK(calls.get_value().at<std::int64_t>(0) == 2 * loops);
}
