// Launches on a GPU as they are predicted: of kernels whose blocks, loads and sectors can be counted by hand.
#include "codegen/schedule/launch_model.h"
#include "tests/codegen/element.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

constexpr std::int64_t threads = 256;

// Places 0 and 1 are buffers of a million floats, 2 is scratch, 3 a register.
KernelIR kernel_of(const Int& tasks, const Int& task, Stmts body) {
    KernelIR kernel;
    for (int buffer = 0; buffer < 2; ++buffer)
        kernel.places.push_back({Place::Scope::global, DType::float32, {Int(1 << 20)}, buffer, buffer == 1});
    kernel.places.push_back({Place::Scope::local, DType::float32, {Int(8192)}});
    kernel.places.push_back({Place::Scope::private_, DType::float32, {}});
    kernel.buffers = 2;
    Segment s;
    s.task = task;
    s.tasks = tasks;
    s.title = "example";
    s.body = std::move(body);
    kernel.phases.push_back({{std::move(s)}});
    return kernel;
}

PredictedLaunch predicted(const KernelIR& kernel, const char* gpu = "sm_90") {
    return predict_launch(kernel, kernel.phases[0], *gpu_facts(gpu));
}

// Adds the element to the register.
Stmt add(const Scalar& x) { return bitale::accumulate(3, std::vector<Int>{}, Combine::sum, x); }

// One element a thread, `apart` elements from its neighbour's.
KernelIR map_of(std::int64_t blocks, std::int64_t apart) {
    const Int task = Int::symbol("task", {0, blocks - 1}), point = Int::symbol("point", {0, threads - 1});
    const Int own = task * threads + point;
    return kernel_of(blocks, task,
                     {loop(point, 0, threads, Binding::threads, {set(1, {own}, element(0, own * apart))})});
}

}  // namespace

TEST_CASE("the sectors of a warp are those that its threads touch") {
    for (const auto& [apart, sectors] : Pairs{{0, 4}, {1, 4}, {2, 8}, {8, 32}, {676, 32}}) {
        INFO("elements " << apart << " apart");
        CHECK(predicted(map_of(4, apart)).sectors == sectors);
    }
}

TEST_CASE("blocks run in waves, as many at once as have room") {
    // 132 multiprocessors, 8 blocks of 256 threads each.
    for (const auto& [blocks, waves] : Pairs{{1, 1}, {132, 1}, {1056, 1}, {1057, 2}, {4000, 4}}) {
        const PredictedLaunch l = predicted(map_of(blocks, 1));
        INFO(blocks << " blocks");
        CHECK(l.blocks == blocks);
        CHECK(l.threads == threads);
        CHECK(l.working == threads);
        CHECK(l.waves == waves);
    }
    KernelIR large = map_of(1056, 1);
    large.phases[0].segments[0].body.insert(
        large.phases[0].segments[0].body.begin(),
        {declare(2), set(2, {Int(0)}, scalar_constant(DType::float32, 0))});
    CHECK(predicted(large).waves == 2);  // 33 KB of shared memory: 6 blocks
}

TEST_CASE("a long sum in one thread is a chain of loads, eight turns at a time") {
    const Int task = Int::symbol("task", {0, 0}), point = Int::symbol("point", {0, 31}),
              k = Int::symbol("k", {0, 599});
    const auto sum_of = [&](Stmts more) {
        Stmts turn{add(element(0, k * 32 + point))};
        append(turn, std::move(more));
        return predicted(
            kernel_of(1, task,
                      {loop(point, 0, 32, Binding::threads,
                            {declare(3), set(3, std::vector<Int>{}, scalar_constant(DType::float32, 0)),
                             loop(k, 0, 600, Binding::serial, std::move(turn)),
                             set(1, {point}, place_read(DType::float32, 3, std::vector<Int>{}))})}));
    };
    const PredictedLaunch serial = sum_of({});
    CHECK(serial.loads == 75);
    CHECK(serial.bound == PredictedLaunch::Bound::chain);
    CHECK(serial.microseconds > 75 * 420 / 1755.0);
    CHECK(serial.microseconds < 2 + 75 * 500 / 1755.0);
    CHECK(serial.working == 32);
    const PredictedLaunch waiting = sum_of({barrier()});
    CHECK(waiting.loads == 600);
    CHECK(waiting.microseconds > 5 * serial.microseconds);
}

TEST_CASE("threads that use one bank of shared memory take turns") {
    const auto shared_reads = [](std::int64_t apart) {
        const Int task = Int::symbol("task", {0, 131}), point = Int::symbol("point", {0, threads - 1}),
                  k = Int::symbol("k", {0, 999});
        return predicted(kernel_of(
            132, task,
            {declare(2), loop(point, 0, threads, Binding::threads,
                              {loop(k, 0, 1000, Binding::serial, {add(element(2, point * apart))})})}));
    };
    const PredictedLaunch free = shared_reads(1), conflicts = shared_reads(32);
    CHECK(conflicts.bound == PredictedLaunch::Bound::issue);
    CHECK(conflicts.microseconds > 4 * free.microseconds);
}

TEST_CASE("large data takes what memory delivers, and an empty launch takes its start") {
    const Int task = Int::symbol("task", {0, 1 << 20}), point = Int::symbol("point", {0, threads - 1});
    constexpr std::int64_t blocks = 1 << 18;
    KernelIR copy = kernel_of(blocks, task,
                              {loop(point, 0, threads, Binding::threads,
                                    {set(1, {task * threads + point}, element(0, task * threads + point))})});
    for (int p = 0; p < 2; ++p) copy.places[static_cast<std::size_t>(p)].extents = {Int(blocks * threads)};
    const PredictedLaunch large = predicted(copy);
    CHECK(large.bound == PredictedLaunch::Bound::memory);
    CHECK(large.microseconds > 2 * 4e-3 * blocks * threads / 3350);  // bytes / GB/s
    CHECK(large.microseconds < 1.3 * 2 * 4e-3 * blocks * threads / 3350);
    const PredictedLaunch small = predicted(map_of(1, 1));
    CHECK(small.bound == PredictedLaunch::Bound::launch);
    CHECK(small.microseconds < 3);
}

TEST_CASE("facts are known of the usual architectures") {
    for (const char* name : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
        INFO(name);
        REQUIRE(gpu_facts(name).has_value());
        CHECK(predicted(map_of(64, 1), name).microseconds > 1);
    }
    CHECK(!gpu_facts("sm_1").has_value());
}
