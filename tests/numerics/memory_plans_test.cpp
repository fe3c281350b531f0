// Memory plans and limits of random graphs: what a plan says is what the allocator counts, and a limit of a
// byte less refuses the call.
#include <fmt/format.h>

#include "graph/base/memory.h"
#include "graph/base/options.h"
#include "runtime/state.h"
#include "runtime/storage/host_memory.h"
#include "tests/numerics/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Several graphs in one function: compiling costs most.
struct Graphs {
    Graphs(std::uint64_t first, int count) {
        for (int k = 0; k < count; ++k) {
            const std::uint64_t seed = first + static_cast<std::uint64_t>(k);
            GraphGenerator generator(seed, Arithmetic::smooth);
            generator.suffix = fmt::format("_{}", k);
            RandomGraph graph = generator.generate(12);
            inputs.insert(inputs.end(), graph.inputs.begin(), graph.inputs.end());
            arguments.insert(arguments.end(), graph.arguments.begin(), graph.arguments.end());
            outputs.insert(outputs.end(), graph.outputs.begin(), graph.outputs.end());
            updates.insert(updates.end(), graph.updates.begin(), graph.updates.end());
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) lengths.emplace_back(inputs[i], arguments[i].shape());
    }
    Function function_on(const std::string& device, ByteCount limit = {}) const {
        std::vector<Input> list(inputs.begin(), inputs.end());
        return function(list, outputs,
                        {.updates = updates,
                         .name = "random",
                         .device = device,
                         .on_unused_input = OnUnused::ignore,
                         .memory_limit = limit});
    }

    std::vector<Expr> inputs, outputs;
    std::vector<Array> arguments;
    Updates updates;
    ExampleShapes lengths;
};

std::int64_t own(const MemoryPlan& plan) {
    std::int64_t bytes = plan.arena_bytes;
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if (b.kind == MemoryPlan::Kind::result || b.kind == MemoryPlan::Kind::workspace) bytes += b.reserved;
    return bytes;
}

void check_limits(const Graphs& graphs, const std::string& device, const MemoryPlan& plan) {
    Function fits = graphs.function_on(device, {plan.peak_bytes});
    CHECK(fits.memory_plan(graphs.lengths).peak_bytes == plan.peak_bytes);
    CHECK_NOTHROW(fits.call(graphs.arguments));
    // A byte less is refused, or leads to parts of some batch of the graph, or to values computed again.
    try {
        Function less = graphs.function_on(device, {plan.peak_bytes - 1});
        less.call(graphs.arguments);
        const MemoryPlan kept = less.memory_plan();
        CHECK((kept.micro_batch > 0 || !kept.recomputed.empty()));
        CHECK(kept.peak_bytes < plan.peak_bytes);
    } catch (const OutOfMemory&) {
    }
}

}  // namespace

TEST_CASE("plans of random graphs are what a CPU's allocator counts") {
    for (const std::uint64_t seed : {100, 1'000'100, 4'000'100, 5'000'100}) {
        const Graphs graphs(seed, 5);
        Function f = graphs.function_on("cpu");
        const MemoryPlan plan = f.memory_plan(graphs.lengths);
        trim_host_memory();
        host_ledger().forget_most();
        const std::int64_t before = host_ledger().now();
        f.call(graphs.arguments);
        INFO("seed " << seed << "\n" << plan);
        CHECK(host_ledger().most() - before == own(plan));
        check_limits(graphs, "cpu", plan);
    }
}

TEST_CASE("plans of random graphs are what an emulated GPU's allocator counts") {
    if (emulator_skipped()) return;
    const Graphs graphs(1'000'200, 4);
    {
        Function warm = graphs.function_on("emulator");  // what a device needs once
        warm.call(graphs.arguments);
        warm.call(graphs.arguments);
    }
    const Graphs others(1'000'300, 4);
    const Function any = graphs.function_on("emulator");
    MemoryLedger& ledger = *any.state().executable->ledger();
    ledger.forget_most();
    const std::int64_t before = ledger.now();
    Function f = others.function_on("emulator");
    const MemoryPlan plan = f.memory_plan(others.lengths);
    f.call(others.arguments);
    INFO(plan);
    CHECK(ledger.most() - before == plan.peak_bytes);
    check_limits(others, "emulator", plan);
}
