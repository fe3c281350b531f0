// Plans of functions that compute something only when shared variables have changed.
#include <cmath>
#include <string>
#include <vector>

#include "graph/base/memory.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT
using Kind = MemoryPlan::Kind;

namespace {

// Rows less the mean of all numbers of the data, by their deviation: sums in chunks, one behind the other.
struct Scaled {
    Scaled() : x(input(float32, {-1, 50}, "x")), data(shared(uniform_values({3000, 200}, -1, 3, 5), "data")) {
        const Expr all(data), average = mean(all), deviation = sqrt(mean(sqr(all - average)));
        y = exp((x - average) / deviation);
    }
    Function on(const std::string& device, ByteCount limit = {}) const {
        return function({x}, {sum(y, {0}), y}, {.name = "scaled", .device = device, .memory_limit = limit});
    }
    static Array rows(std::int64_t count) {
        Random random(4);
        return random_array(float32, {count, 50}, random, -1, 1);
    }

    Expr x, y;
    Shared data;
};

// What a call takes beside what comes in, which on a GPU is copied.
std::int64_t taken_by(Function& f, const Array& argument, MemoryLedger& ledger) {
    trim_host_memory();
    ledger.forget_most();
    const std::int64_t before = ledger.now();
    { const Results results = f(argument); }
    return ledger.most() - before;
}

std::int64_t taken_at_peak(const MemoryPlan& plan) {
    std::int64_t bytes = plan.peak_bytes;
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if (b.kind == Kind::argument || b.kind == Kind::shared || b.kind == Kind::constant)
            bytes -= b.reserved;
    return bytes;
}

}  // namespace

TEST_CASE("what is computed once is in the plan, and what leads to it does not stay", "[runtime][once]") {
    for (const std::string& device : cpu_and_emulator()) {
        const Scaled net;
        const Function f = net.on(device);
        const MemoryPlan plan = f.memory_plan({{net.x, {64, 50}}});
        INFO(device << "\n" << plan);
        int once = 0;
        for (const MemoryPlan::Step& step : plan.steps) once += step.once ? 1 : 0;
        REQUIRE(once > 0);
        std::int64_t kept = 0, parts = 0;
        for (const MemoryPlan::Buffer& b : plan.buffers) {
            if (b.kind == Kind::once) {
                ++kept;
                CHECK(b.first == 0);
                CHECK(b.last + 1 == static_cast<int>(plan.steps.size()));
            }
            if (b.kind == Kind::partial_sums && b.first < once) {
                ++parts;
                CHECK(b.last < once);
            }
            for (const MemoryPlan::Buffer& other : plan.buffers)
                if (&other != &b && b.offset >= 0 && other.offset >= 0 && b.first <= other.last &&
                    other.first <= b.last)
                    CHECK(
                        (b.offset + b.reserved <= other.offset || other.offset + other.reserved <= b.offset));
        }
        CHECK(kept > 0);
        CHECK(parts > 0);
    }
}

TEST_CASE("a call that computes something once takes what the plan says", "[runtime][once]") {
    Scaled net;
    Function f = net.on("cpu");
    const auto check = [&](std::int64_t rows) {
        const Array argument = Scaled::rows(rows);
        const Results got = f(argument);
        const std::vector<double> all = net.data.get_value().to_vector<double>();
        double sum = 0, squares = 0;
        for (const double v : all) sum += v;
        const double average = sum / static_cast<double>(all.size());
        for (const double v : all) squares += (v - average) * (v - average);
        const double deviation = std::sqrt(squares / static_cast<double>(all.size()));
        for (std::int64_t k = 0; k < argument.size(); ++k)
            REQUIRE(got[1].at(k) == Approx(std::exp((argument.at(k) - average) / deviation)).epsilon(1e-5));
    };
    const MemoryPlan plan = f.memory_plan({{net.x, {700, 50}}});
    INFO(plan);
    CHECK(taken_by(f, Scaled::rows(700), host_ledger()) == taken_at_peak(plan));
    // What has been computed stays right while other sizes move other buffers.
    for (const std::int64_t rows : {700, 3, 900, 0, 1, 700}) check(rows);
    net.data.set_value(uniform_values({3000, 200}, 5, 6, 7));
    for (const std::int64_t rows : {1, 900}) check(rows);
    // A limit counts it.
    Function fits = net.on("cpu", {plan.peak_bytes});
    CHECK(taken_by(fits, Scaled::rows(700), host_ledger()) == taken_at_peak(plan));
    CHECK_THROWS_AS(net.on("cpu", {net.data.get_value().bytes() + 1000})(Scaled::rows(700)), OutOfMemory);
}

TEST_CASE("on the emulator as well", "[runtime][once]") {
    if (emulator_skipped()) return;
    {
        Scaled warm;
        Function f = warm.on("emulator");
        f(Scaled::rows(5));
    }
    Scaled net;
    Function f = net.on("emulator");
    const MemoryPlan plan = f.memory_plan({{net.x, {30, 50}}});
    INFO(plan);
    MemoryLedger& ledger = *f.state().executable->ledger();
    ledger.forget_most();
    const std::int64_t before = ledger.now();
    const Results results = f(Scaled::rows(30));
    CHECK(ledger.most() - before == plan.peak_bytes);
    for (int k = 0; k < 2; ++k) CHECK(difference(f(Scaled::rows(30))[1], results[1]) == "");
}

TEST_CASE("whitening takes what its plan says", "[runtime][once]") {
    const Shared data = shared(uniform_values({500, 40}, 0, 255, 6).as(uint8), "data");
    const Zca z = zca(cast(data, float32), 10);
    Function f = function({}, {z.mean, z.matrix}, {.name = "zca", .device = "cpu"});
    const MemoryPlan plan = f.memory_plan();
    INFO(plan);
    trim_host_memory();
    host_ledger().forget_most();
    const std::int64_t before = host_ledger().now();
    const Results results = f();
    CHECK(host_ledger().most() - before == taken_at_peak(plan));
    CHECK(f.peak_bytes() == plan.arena_bytes + data.get_value().bytes());
}
