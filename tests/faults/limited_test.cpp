// Functions that keep a memory_limit in parts of their batch, by computing values again or by both, from
// floats and from few bits: under every failure an error, whole steps, and the next call is right to the bit.
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/faults.h"
#include "graph/base/options.h"
#include "runtime/micro_batched.h"
#include "runtime/state.h"
#include "tests/faults/failing_new.h"
#include "tests/faults/machine.h"
#include "tests/faults/new_compiler.h"
#include "tests/faults/sweep.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/small_network.h"

using namespace bitale;
using namespace bitale::test;

namespace {

enum class Kept { parts, again, both };
const char* words_for(Kept way) {
    return way == Kept::parts ? "in parts" : way == Kept::again ? "again" : "again in parts";
}
bool is_so(const MemoryPlan& plan, Kept way) {
    return (plan.micro_batch > 0) == (way != Kept::again) && plan.recomputed.empty() == (way == Kept::parts);
}

// Residual layers over rows that are an argument, or a minibatch of few bits in a variable. Means over all
// rows would take a pass over the parts each: values are computed again instead.
class LimitedNetwork {
  public:
    LimitedNetwork(const std::string& device, Kept way, bool packed)
        : way_(way), images_are_packed_(packed), name_(std::string(words_for(way)) + " on " + device) {
        const std::int64_t rows = device == "cpu" ? 256 : 64;
        Random random(7);
        Expr x = input(float32, {-1, width}, "x");
        inputs_ = {x};
        argument = random_array(float32, {rows, width}, random);
        ExampleShapes lengths{{x, argument.shape()}};
        if (packed) {
            images = shared(random_array(uint8, {4 * rows, width}, random, 0, 15).as(float32) * 0.25F,
                            {.storage = uint4, .scale = 0.25, .name = "images"});
            const Expr i = lscalar("i");
            x = images[range(i * rows, (i + 1) * rows)];
            inputs_ = {i};
            argument = Array(std::int64_t{1});
            lengths = {};
            name_ += " of few bits";
        }
        Expr h = x;
        for (int k = 0; k < layers; ++k) {
            parameters_.push_back(shared(random_array(float32, {width, width}, random, -0.2, 0.2)));
            const Expr before = way == Kept::again ? h - mean(h, {0}, {.keepdims = true}) : h;
            h = tanh(dot(before, parameters_.back())) + h;
        }
        const Expr loss = mean(sqr(h - 0.1F));
        outputs_ = {loss, h};
        options_.updates = momentum(loss, parameters_, 0.1F);
        options_.device = device;
        for (const Update& update : options_.updates) variables_.push_back(update.target);
        find_limit(lengths);
    }
    Function made() const { return function(inputs_, outputs_, options_); }
    std::vector<Array> values() const {
        std::vector<Array> all;
        for (const Shared& v : variables_) all.push_back(v.get_value());
        return all;
    }
    void set(const std::vector<Array>& values) {
        for (std::size_t k = 0; k < values.size(); ++k) variables_[k].set_value(values[k]);
    }
    const std::string& name() const { return name_; }
    bool was_so(const Function& f) const { return is_kept(f.memory_plan()); }

    Array argument;
    PackedShared images;

  private:
    static constexpr std::int64_t width = 16;
    static constexpr int layers = 6;

    // What gradients of few bits read is small: in parts they may compute it again.
    bool is_kept(const MemoryPlan& plan) const {
        return is_so(plan, way_) || (images_are_packed_ && way_ == Kept::parts && is_so(plan, Kept::both));
    }

    // The largest that leads there.
    void find_limit(const ExampleShapes& lengths) {
        const std::int64_t peak = made().memory_plan(lengths).peak_bytes;
        for (std::int64_t percent = 95; percent > 5; percent -= 3) {
            options_.memory_limit = {peak * percent / 100};
            try {
                if (is_kept(made().memory_plan(lengths))) return;
            } catch (const OutOfMemory&) {
                break;
            }
        }
        FAIL("no limit leads to " << name_);
    }

    Kept way_;
    bool images_are_packed_;
    std::string name_;
    std::vector<Input> inputs_;
    std::vector<Expr> outputs_;
    FunctionOptions options_;
    std::vector<Shared> parameters_, variables_;
};

// What calls give, and the variables after each of some steps.
struct Steps {
    std::vector<std::vector<Array>> states;
    std::vector<Array> results;
};

std::vector<Array> arrays_of(const Results& results) {
    std::vector<Array> all;
    for (std::size_t k = 0; k < results.size(); ++k) all.push_back(results[k]);
    return all;
}

// `act` has given `results`, or thrown.
std::string judge_steps(const LimitedNetwork& net, const Steps& expected, const Results& results, bool thrown,
                        bool rounding) {
    const std::vector<Array> now = net.values();
    if (!thrown)
        return to_rounding(now, expected.states.back(), rounding) +
               to_rounding(arrays_of(results), expected.results, rounding);
    const bool is_call = expected.states.size() == 2;  // which throws before it writes
    std::string text;
    for (std::size_t k = 0; k < (is_call ? 1 : expected.states.size()); ++k) {
        text = to_rounding(now, expected.states[k], k > 0);
        if (text.empty()) return text;
    }
    return "no whole number of steps: " + text;
}

Workload calls_under_limit(const std::shared_ptr<LimitedNetwork>& net) {
    auto f = std::make_shared<Function>(net->made());
    auto got = std::make_shared<Results>(std::vector<Array>{});
    Steps expected{{net->values()}, {}};
    expected.results = arrays_of((*f)(net->argument));
    expected.states.push_back(net->values());
    REQUIRE(net->was_so(*f));
    return {"call " + net->name(), [net, expected] { net->set(expected.states[0]); },
            [=] { *got = (*f)(net->argument); },
            [=](bool thrown, bool rounding) { return judge_steps(*net, expected, *got, thrown, rounding); }};
}

Workload loops_under_limit(const std::shared_ptr<LimitedNetwork>& net) {
    constexpr std::int64_t steps = 3;
    auto f = std::make_shared<Function>(net->made());
    auto got = std::make_shared<Results>(std::vector<Array>{});
    Steps expected{{net->values()}, {}};
    for (std::int64_t k = 0; k < steps; ++k) {
        (*f)(k);
        expected.states.push_back(net->values());
    }
    net->set(expected.states[0]);
    expected.results = arrays_of(f->loop(0, steps));
    // The results of all steps count, so that parts have other rows, and sums other roundings, than in calls.
    CHECK(to_rounding(net->values(), expected.states.back(), true).empty());
    expected.states.back() = net->values();
    REQUIRE(net->was_so(*f));
    return {"loop " + net->name(), [net, expected] { net->set(expected.states[0]); },
            [=] { *got = f->loop(0, steps); },
            [=](bool thrown, bool rounding) { return judge_steps(*net, expected, *got, thrown, rounding); }};
}

// The first call of a new function, which plans, compiles and runs what keeps the limit. After an error the
// same function computes.
Workload first_calls_under_limit(const std::shared_ptr<LimitedNetwork>& net,
                                 const std::shared_ptr<NewCompiler>& compiler = nullptr) {
    auto f = std::make_shared<Function>(net->made());
    auto got = std::make_shared<Results>(std::vector<Array>{});
    Steps expected{{net->values()}, {}};
    expected.results = arrays_of((*f)(net->argument));
    expected.states.push_back(net->values());
    return {"first call " + net->name() + (compiler ? ", compiled" : ""),
            [=] {
                net->set(expected.states[0]);
                if (compiler) compiler->next();
                *f = net->made();
            },
            [=] { *got = (*f)(net->argument); },
            [=](bool thrown, bool rounding) {
                std::string problem = judge_steps(*net, expected, *got, thrown, rounding);
                if (compiler) problem += compiler->left();
                if (!thrown || !problem.empty()) return problem;
                net->set(expected.states[0]);
                *got = (*f)(net->argument);
                problem = judge_steps(*net, expected, *got, false, false);
                return problem.empty() ? problem : "the same function then: " + problem;
            },
            /*keeps_blocks=*/true};
}

Workload packed_values() {
    Random random(2);
    const PackedShared images = shared(random_array(uint8, {6, 9}, random, 0, 15).as(float32) * 0.5F - 1.0F,
                                       {.storage = uint4, .scale = 0.5, .offset = -1, .name = "images"});
    const Array before = images.get_value();
    const Array other = random_array(int32, before.shape(), random, 0, 15).as(float32) * 0.5F - 1.0F;
    auto got = std::make_shared<Array>();
    return {"values of few bits", [=] { images.set_value(before); },
            [=] {
                images.set_value(other);
                *got = images.get_value();
            },
            [=](bool thrown, bool) {
                const Array now = images.get_value();
                if (thrown) return std::string(same(now, before) || same(now, other) ? "" : "a torn value");
                return std::string(same(now, other) && same(*got, other) ? "" : "a wrong value");
            }};
}

// Some uses of all doors, where there are many.
std::vector<std::int64_t> some_doors(const Workload& workload, std::size_t most) {
    workload.prepare();
    outside::plant({});
    workload.act();
    std::vector<std::int64_t> all(static_cast<std::size_t>(outside::uses().all));
    std::iota(all.begin(), all.end(), std::int64_t{1});
    return sample(std::move(all), most, 1);
}

// What takes long, with some of the failures.
void check_some(const Workload& workload, std::size_t doors, std::size_t allocations) {
    check(workload, Failing::doors, some_doors(workload, doors));
    check(workload, Failing::memory, sample(interesting_allocations(workload, 10, 1), allocations, 1));
}

std::shared_ptr<LimitedNetwork> limited_network(const std::string& device, Kept way, bool packed = false) {
    return std::make_shared<LimitedNetwork>(device, way, packed);
}

}  // namespace

TEST_CASE("calls under a limit survive every failure", "[faults]") {
    for (const Kept way : {Kept::parts, Kept::again, Kept::both})
        check_every(calls_under_limit(limited_network("cpu", way)), true);
    check_every(calls_under_limit(limited_network("cpu", Kept::parts, true)), true);
}

TEST_CASE("loops under a limit survive every failure", "[faults]") {
    for (const Kept way : {Kept::parts, Kept::again})
        check_every(loops_under_limit(limited_network("cpu", way, true)), true);
}

TEST_CASE("calls under a limit on an emulator survive failures", "[faults]") {
    if (emulator_skipped()) return;
    emulator_never_fails();
    check_some(may_lose(calls_under_limit(limited_network("emulator", Kept::both))), 12, 8);
}

TEST_CASE("calls under a limit on an emulator survive failures, however it is kept", "[faults][slow]") {
    if (emulator_skipped()) return;
    emulator_never_fails();
    for (const Kept way : {Kept::parts, Kept::again, Kept::both})
        check_some(may_lose(calls_under_limit(limited_network("emulator", way))), 30, 20);
    check_some(may_lose(loops_under_limit(limited_network("emulator", Kept::parts, true))), 20, 10);
}

TEST_CASE("first calls under a limit survive failures", "[faults]") {
    emulator_never_fails();
    check_some(first_calls_under_limit(limited_network("cpu", Kept::both)), 5, 3);
}

TEST_CASE("first calls under a limit survive failures, however it is kept", "[faults][slow]") {
    emulator_never_fails();
    for (const Kept way : {Kept::parts, Kept::both})
        check_some(first_calls_under_limit(limited_network("cpu", way)), 12, 8);
    if (!emulator_skipped())
        check_some(may_lose(first_calls_under_limit(limited_network("emulator", Kept::parts))), 12, 6);
}

TEST_CASE("what keeps a limit is compiled or refused, whatever door is shut", "[faults]") {
    const auto compiler = std::make_shared<NewCompiler>();
    const Workload workload = first_calls_under_limit(limited_network("cpu", Kept::parts), compiler);
    check(workload, Failing::doors, some_doors(workload, 24));
}

TEST_CASE("values of few bits are set or stay, whatever fails", "[faults]") { check_every(packed_values()); }

// Other threads that make room let go of arenas of whatever is prepared.
TEST_CASE("what is prepared stays where it is when preparing the rest failed", "[faults]") {
    if (!new_can_fail()) return;
    for (const std::string& device : cpu_and_emulator()) {
        const LimitedNetwork net(device, Kept::parts, false);
        Function f = net.made();
        const auto prepared = [](const MicroBatched& parts) {
            std::vector<const Executable*> all;
            parts.for_each_executable([&](const Executable& executable) { all.push_back(&executable); });
            return all;
        };
        f(net.argument);  // compiles: from here on the allocations of each attempt are the same
        // The n-th allocation fails.
        const auto attempt = [&](MicroBatched& parts, std::int64_t n) {
            fail_new(n);
            try {
                parts.prepare();
            } catch (const std::exception&) {
            }
            return stop_failing_new();
        };
        const auto prepares_some = [&](std::int64_t n) {
            MicroBatched parts(f.state(), 0);
            attempt(parts, n);
            return !prepared(parts).empty();
        };
        std::int64_t none = 0, some = 1;
        while (!prepares_some(some)) none = std::exchange(some, 2 * some);
        while (some - none > 1) {
            const std::int64_t n = none + (some - none) / 2;
            (prepares_some(n) ? some : none) = n;
        }
        int halfway = 0;
        bool met = true;
        for (std::int64_t n = some; met; n += 1 + (n - some) / 2) {
            MicroBatched parts(f.state(), 0);
            met = attempt(parts, n);
            const std::vector<const Executable*> before = prepared(parts);
            CHECK(before.size() <= 2);
            // Other threads may allocate too: near the first one, an attempt may again prepare nothing.
            if (parts.is_prepared() || before.empty()) continue;
            CAPTURE(device, n);
            ++halfway;
            parts.prepare();
            const std::vector<const Executable*> after = prepared(parts);
            REQUIRE(after.size() == 2);
            CHECK(before[0] == after[0]);
        }
        CHECK(halfway > 0);
    }
}
