// Functions that keep a limit because their gradients compute values again: the same values in less memory.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/memory.h"
#include "graph/base/options.h"
#include "graph/ir/shared.h"
#include "ops/autodiff/recompute.h"
#include "runtime/micro_batched.h"
#include "runtime/recomputed.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// A residual network. Batch normalisation takes means over all images, which parts of a batch would take a
// pass for each; without it there is tanh.
struct Residual {
    Residual(int blocks, std::int64_t images, std::int64_t channels, std::int64_t size, bool is_known,
             bool has_normalisation = true)
        : random(3),
          is_normalised(has_normalisation),
          x(input(float32, {is_known ? images : -1, 3, size, size}, "x")) {
        argument = random_array(float32, {images, 3, size, size}, random, -1, 1);
        Expr h = activated(normalised(layer(x, 3, channels), channels));
        for (int k = 0; k < blocks; ++k) {
            const Expr inside = activated(normalised(layer(h, channels, channels), channels));
            h = activated(normalised(layer(inside, channels, channels), channels) + h);
        }
        loss = mean(sqr(mean(h, {2, 3}) - 0.3F));
    }
    Expr layer(const Expr& h, std::int64_t from, std::int64_t to) {
        parameters.push_back(shared(random_array(float32, {to, from, 3, 3}, random, -0.2, 0.2),
                                    "w" + std::to_string(parameters.size())));
        return conv2d(h, parameters.back(), {.border_mode = half});
    }
    Expr activated(const Expr& h) const { return is_normalised ? relu(h) : tanh(h); }
    Expr normalised(const Expr& h, std::int64_t channels) {
        if (!is_normalised) return h;
        parameters.push_back(shared(random_array(float32, {1, channels, 1, 1}, random, 0.5, 1.5),
                                    "scale" + std::to_string(parameters.size())));
        const Expr centred = h - mean(h, {0, 2, 3}, {.keepdims = true});
        const Expr variance = mean(sqr(centred), {0, 2, 3}, {.keepdims = true});
        return centred / sqrt(variance + 1e-3F) * parameters.back();
    }
    FunctionOptions options(const std::string& device, ByteCount limit) const {
        FunctionOptions o;
        o.updates = momentum(loss, parameters, 0.05F);
        o.name = "residual";
        o.device = device;
        o.memory_limit = limit;
        return o;
    }
    Function step(const std::string& device, ByteCount limit = {}) const {
        return function({x}, loss, options(device, limit));
    }
    // The losses of two calls and what the parameters are then; these are put back.
    std::vector<Array> after(Function f, const Array& of) const {
        std::vector<Array> before, all;
        for (const Shared& p : parameters) before.push_back(p.get_value());
        for (int k = 0; k < 2; ++k) all.push_back(f(of));
        for (std::size_t k = 0; k < parameters.size(); ++k) {
            Shared p = parameters[k];
            all.push_back(p.get_value());
            p.set_value(before[k]);
        }
        return all;
    }

    Random random;
    bool is_normalised;
    Expr x, loss;
    Array argument;
    std::vector<Shared> parameters;
};

ByteCount share_of(const MemoryPlan& plan, double share) {
    return {static_cast<std::int64_t>(static_cast<double>(plan.peak_bytes) * share)};
}

std::int64_t images_on(const std::string& device) { return device == "cpu" ? 32 : 4; }
// Of the peak, where values are computed again. On a GPU a library wants its operands stored.
double least_share(const std::string& device) { return device == "cpu" ? 0.6 : 0.7; }
Residual network(const std::string& device, bool is_known) {
    return device == "cpu" ? Residual(3, 32, 8, 12, is_known) : Residual(2, 4, 8, 8, is_known);
}

void check_same(const std::vector<Array>& got, const std::vector<Array>& expected,
                const Tolerance& tolerance = {}) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO(k);
        CHECK(difference(got[k], expected[k], tolerance) == "");
    }
}

MemoryLedger& ledger_of(const Function& f, const std::string& device) {
    return device == "cpu" ? host_ledger() : *f.state().executable->ledger();
}

std::int64_t bytes_of_totals(const Function& f) {
    const Function::State& state = f.state();
    const Recomputed::Way way = state.recomputed ? state.recomputed->last() : Recomputed::Way{};
    std::int64_t bytes = 0;
    for (const SharedUse& use : way.number >= 0 ? state.recomputed->shared(way) : state.parts->shared())
        bytes += use.variable->value.bytes();
    for (const SharedUse& use : state.shared) bytes -= use.variable->value.bytes();
    return bytes;
}

// Of what a plan counts, that which is alive before the call, once variables have a place.
std::int64_t alive_before(const MemoryPlan& plan, const std::string& device) {
    std::int64_t bytes = 0;
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if (b.kind == MemoryPlan::Kind::shared || b.kind == MemoryPlan::Kind::constant ||
            (b.kind == MemoryPlan::Kind::argument && device == "cpu"))
            bytes += b.reserved;
    return bytes;
}

// What the least of each way alone takes, of a network whose lengths are known.
struct LeastAlone {
    explicit LeastAlone(const Residual& net, const std::string& device) {
        Function f = net.step(device);
        in_parts = MicroBatched(f.state(), 0).least_bytes({}, 0);
        Recomputed ways(const_cast<Function::State&>(f.state()));
        const int count = static_cast<int>(recomputations(*f.state().optimised).size());
        for (int k = 0; k < count; ++k) again = std::min(again, ways.memory_plan({k, false}, {}).peak_bytes);
    }
    std::int64_t in_parts = 0, again = INT64_MAX;
};

}  // namespace

TEST_CASE("a residual network with batch normalisation keeps a limit by computing values again",
          "[runtime][recomputed]") {
    for (const std::string& device : cpu_and_emulator())
        for (const bool is_known : {true, false}) {
            if (device == "emulator" && !is_known) continue;
            const Residual net = network(device, is_known);
            const ExampleShapes lengths{{net.x, net.argument.shape()}};
            const MemoryPlan plain = net.step(device).memory_plan(lengths);
            const std::vector<Array> expected = net.after(net.step(device), net.argument);
            CHECK(plain.recomputed.empty());
            std::int64_t before = plain.peak_bytes;
            for (const double share : {0.85, is_known ? least_share(device) : 0.8}) {
                Function less = net.step(device, share_of(plain, share));
                const MemoryPlan plan = less.memory_plan(lengths);
                INFO(device << (is_known ? "" : ", images unknown") << "\n" << plain << plan);
                CHECK(plan.peak_bytes <= plan.limit);
                CHECK(plan.peak_bytes <= before);
                before = plan.peak_bytes;
                CHECK(plan.micro_batch == 0);
                CHECK_THAT(plan.recomputed,
                           ContainsSubstring("gradients compute") && ContainsSubstring("predicted"));
                CHECK_THAT(plan.to_string(), ContainsSubstring(plan.recomputed));
                CHECK_THAT(plan.json(), ContainsSubstring(plan.recomputed));
                check_same(net.after(less, net.argument), expected, {.of_largest = 1e-5});
                CHECK(less.memory_plan().peak_bytes == plan.peak_bytes);
                CHECK_THAT(less.report(), ContainsSubstring("For calls that do not fit") &&
                                              ContainsSubstring(plan.recomputed.substr(0, 30)));
                CHECK(less.peak_bytes() > 0);
            }
        }
}

TEST_CASE("what computes values again takes what its plan says, to the byte", "[runtime][recomputed]") {
    for (const std::string& device : cpu_and_emulator()) {
        {
            const Residual warm(1, 4, 8, 8, true);  // what a device needs once
            warm.after(warm.step(device), warm.argument);
        }
        const Residual net = network(device, true);
        const MemoryPlan plain = net.step(device).memory_plan();
        Function f = net.step(device, share_of(plain, least_share(device)));
        const MemoryPlan plan = f.memory_plan();
        INFO(plan);
        REQUIRE_FALSE(plan.recomputed.empty());
        trim_host_memory();
        MemoryLedger& ledger = device == "cpu" ? host_ledger() : *f.state().executable->ledger();
        ledger.forget_most();
        const std::int64_t alive = ledger.now();
        { const Array loss = f(net.argument); }
        std::int64_t outside = 0;  // alive before on a CPU
        for (const MemoryPlan::Buffer& b : plan.buffers)
            if (b.kind == MemoryPlan::Kind::argument || b.kind == MemoryPlan::Kind::shared ||
                b.kind == MemoryPlan::Kind::constant)
                outside += b.reserved;
        CHECK(ledger.most() - alive == plan.peak_bytes - (device == "cpu" ? outside : 0));
    }
}

TEST_CASE("parts of a batch compute values again where that is the fastest that fits",
          "[runtime][recomputed]") {
    for (const bool is_known : {true, false}) {
        const Residual net(6, 4, 8, 16, is_known, false);
        const ExampleShapes lengths{{net.x, net.argument.shape()}};
        const MemoryPlan plain = net.step("cpu").memory_plan(lengths);
        const std::vector<Array> expected = net.after(net.step("cpu"), net.argument);
        const Residual other(6, 4, 8, 16, is_known, false);  // nobody holds its values, which calls write
        bool any = false;
        std::int64_t before = plain.peak_bytes;
        for (const double share : {0.6, 0.3}) {
            Function f = net.step("cpu", share_of(plain, share));
            const MemoryPlan plan = f.memory_plan(lengths);
            INFO(share << (is_known ? "" : ", images unknown") << "\n" << plan);
            CHECK(plan.peak_bytes <= plan.limit);
            CHECK(plan.peak_bytes <= before);
            CHECK(plan.micro_batch > 0);
            before = plan.peak_bytes;
            check_same(net.after(f, net.argument), expected, {.of_largest = 1e-5});
            CHECK(f.memory_plan().peak_bytes == plan.peak_bytes);
            CHECK(f.memory_plan().recomputed == plan.recomputed);
            any = any || !plan.recomputed.empty();
            if (!plan.recomputed.empty()) {
                CHECK_THAT(plan.recomputed, ContainsSubstring("of each part"));
                CHECK_THAT(f.report(), ContainsSubstring(plan.recomputed.substr(0, 30)));
            }
            Function measured = other.step("cpu", share_of(plain, share));
            trim_host_memory();
            host_ledger().forget_most();
            const std::int64_t alive = host_ledger().now();
            { const Array loss = measured(other.argument); }
            std::int64_t outside = other.argument.bytes();
            for (const SharedUse& use : measured.state().shared) outside += use.variable->value.bytes();
            // Of known lengths, totals are there since the function was built.
            if (is_known) outside += bytes_of_totals(measured);
            const std::int64_t taken = host_ledger().most() - alive, planned = plan.peak_bytes - outside;
            CHECK(taken <= planned);
            CHECK(planned - taken <= 8192);
        }
        CHECK(any);
        if (is_known)
            CHECK_THAT(error_of([&] { net.step("cpu", share_of(plain, 0.05)); }),
                       ContainsSubstring("compute values again a row of the batch at a time, it needs"));
    }
}

TEST_CASE("a limit that neither parts nor values computed again keep alone is kept by both",
          "[runtime][recomputed]") {
    for (const std::string& device : cpu_and_emulator()) {
        const Residual net(6, device == "cpu" ? 4 : 8, 8, 16, true, false);
        const LeastAlone alone(net, device);
        const std::int64_t limit = std::min(alone.in_parts, alone.again) - 1;
        Function f = net.step(device, {limit});
        const MemoryPlan plan = f.memory_plan();
        INFO(device << ": " << alone.in_parts << " in parts, " << alone.again << " again\n" << plan);
        CHECK(plan.peak_bytes <= limit);
        CHECK(plan.micro_batch > 0);
        CHECK_FALSE(plan.recomputed.empty());
        const std::vector<Array> got = net.after(f, net.argument);
        check_same(got, net.after(net.step(device), net.argument), {.of_largest = 1e-5});
        // To the bit what parts of as many rows give that keep their values.
        FunctionOptions in_parts = net.options(device, {});
        in_parts.micro_batch = plan.micro_batch;
        check_same(got, net.after(function({net.x}, net.loss, in_parts), net.argument));
        // The limit of a device leaves as much to a function without one.
        Function g = net.step(device);
        MemoryLedger& ledger = ledger_of(g, device);
        trim_host_memory();
        Options chosen = options();
        const std::int64_t alive = device == "cpu" ? alive_before(plan, device) : 0;
        chosen.memory_limit = ledger.now() + limit - alive + (device == "cpu" ? 16384 : 0);
        const ScopedOptions limited(chosen);
        ledger.forget_most();
        check_same(net.after(g, net.argument), got, {.of_largest = 1e-5});
        CHECK(ledger.most() <= chosen.memory_limit);
        CHECK(g.memory_plan().micro_batch > 0);
        // In a process, the room for what belongs to no function may be enough for parts alone.
        if (device != "cpu") CHECK_FALSE(g.memory_plan().recomputed.empty());
    }
}

TEST_CASE("the limit of a device is kept by computing values again", "[runtime][recomputed]") {
    for (const std::string& device : cpu_and_emulator()) {
        const Residual net = network(device, true);
        Function f = net.step(device);
        const std::vector<Array> expected = net.after(f, net.argument);
        const MemoryPlan plain = f.memory_plan();
        // On a GPU the velocities of `g` have no place yet.
        const std::int64_t alone = plain.peak_bytes - (device == "cpu" ? alive_before(plain, device) : 0);
        CHECK(plain.recomputed.empty());
        Function g = net.step(device);
        f = Function();
        MemoryLedger& ledger = ledger_of(g, device);
        Options chosen = options();
        {
            // Places of variables that are gone are given back where memory runs out.
            Function other = function({net.x}, exp(net.x), {.device = device});
            chosen.memory_limit = 1;
            const ScopedOptions limited(chosen);
            CHECK_THROWS_AS(other(net.argument), OutOfMemory);
        }
        trim_host_memory();
        chosen.memory_limit = ledger.now() + alone * 85 / 100;
        INFO(device << "\n" << plain);
        std::vector<Array> got;
        {
            const ScopedOptions limited(chosen);
            ledger.forget_most();
            got = net.after(g, net.argument);
            CHECK(ledger.most() <= chosen.memory_limit);
            const MemoryPlan plan = g.memory_plan();
            INFO(plan);
            CHECK(plan.micro_batch == 0);
            CHECK_FALSE(plan.recomputed.empty());
            CHECK(plan.peak_bytes < plain.peak_bytes);
            CHECK_THAT(g.report(), ContainsSubstring("do not fit the device's limit at once"));
        }
        // Of both calls: the first one is computed as the second.
        check_same(got, expected, {.of_largest = 1e-5});
        g(net.argument);  // with room again the same function computes all at once
        CHECK(g.memory_plan().recomputed.empty());
    }
}

TEST_CASE("a limit that no way keeps is refused before anything is written", "[runtime][recomputed]") {
    for (const std::string& device : cpu_and_emulator()) {
        const Residual net(1, images_on(device), 8, 8, true);
        const ByteCount limit = share_of(net.step(device).memory_plan(), 0.05);
        CHECK_THAT(error_of([&] { net.step(device, limit); }),
                   ContainsSubstring("function \"residual\"") && ContainsSubstring("too little"));
        const Residual open(1, images_on(device), 8, 8, false);
        Function f = open.step(device, limit);
        const Array old = open.parameters[0].get_value();
        CHECK_THROWS_AS(f(open.argument), OutOfMemory);
        CHECK(difference(open.parameters[0].get_value(), old) == "");
        // The same function computes fewer images, as it is.
        const Array few(float32, {1, 3, 8, 8});
        if (f.memory_plan({{open.x, few.shape()}}).peak_bytes <= limit.bytes) f(few);
    }
}

TEST_CASE("steps of a loop compute values again", "[runtime][recomputed]") {
    const Residual net(3, 32, 8, 12, true);
    Random random(9);
    const Array many = random_array(float32, {128, 3, 12, 12}, random, -1, 1);
    const Shared data = shared(many, "data");
    const Expr i = lscalar("i");
    const auto losses = [&](ByteCount limit, MemoryPlan* plan) {
        FunctionOptions o = net.options("cpu", limit);
        o.givens = {{net.x, Expr(data)[range(i * 32, (i + 1) * 32)]}};
        Function f = function({i}, net.loss, o);
        std::vector<Array> before, all;
        for (const Shared& p : net.parameters) before.push_back(p.get_value());
        all.push_back(f.loop(0, 4)[0]);
        *plan = f.memory_plan();
        for (std::size_t k = 0; k < before.size(); ++k) {
            Shared p = net.parameters[k];
            all.push_back(p.get_value());
            p.set_value(before[k]);
        }
        return all;
    };
    MemoryPlan plain, less;
    const std::vector<Array> expected = losses({}, &plain);
    // What goes in does not become less.
    const std::int64_t data_bytes = many.bytes();
    const std::vector<Array> got = losses({data_bytes + (plain.peak_bytes - data_bytes) * 8 / 10}, &less);
    INFO(plain << less);
    CHECK_FALSE(less.recomputed.empty());
    check_same(got, expected, {.of_largest = 1e-3});  // four steps, each from rounded parameters
}

TEST_CASE("ways to compute values again, and graphs that have none", "[runtime][recomputed]") {
    const Residual net(3, 8, 4, 8, true);
    const Function f = net.step("null");
    const Graph& graph = *f.state().optimised;
    const std::vector<Recomputation> ways = recomputations(graph);
    REQUIRE(ways.size() >= 3);
    for (const Recomputation& way : ways) {
        Graph other = graph;
        CHECK(recompute(other, way) > 0);
        CHECK(other.roots().size() == graph.roots().size());
        CHECK(other.outputs[0] == graph.outputs[0]);  // the forward pass is as it was
    }
    const Function forward = function({net.x}, net.loss, {.device = "null"});
    CHECK(recomputations(*forward.state().optimised).empty());
    Graph same = *forward.state().optimised;
    CHECK(recompute(same, {2}) == 0);
    CHECK(same.outputs == forward.state().optimised->outputs);
}
