// What steps take from the heap, and what happens when it gives nothing: every allocation of a call fails in
// turn, those of oneDNN too.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "bitale/bitale.h"
#include "runtime/cpu/gemm.h"
#include "tests/support/catch.h"
#include "tests/support/small_network.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> failing{-1};  // the allocation that fails, counted from 0; -1: none
std::atomic<bool> library_fails{false};

bool fails_now() { return failing.load() >= 0 && failing.fetch_sub(1) == 0; }

void* counted(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    void* p = fails_now() ? nullptr : std::malloc(bytes ? bytes : 1);
    if (!p) throw std::bad_alloc();
    return p;
}

std::int64_t allocations_of_loop(Function& f, const std::vector<std::int64_t>& steps) {
    f.loop(steps);  // results of this size are then in the pool
    const std::int64_t before = allocations.load();
    f.loop(steps);
    return allocations.load() - before;
}

}  // namespace

// oneDNN takes its workspaces here, by whole pages, as nothing of ours does.
extern "C" __attribute__((visibility("default"))) int posix_memalign(void** to, std::size_t alignment,
                                                                     std::size_t bytes) noexcept {
    constexpr std::size_t page = 4096;
    if ((library_fails.load() && alignment == page) || fails_now()) return ENOMEM;
    *to = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return *to ? 0 : ENOMEM;
}

#include "tests/support/replaced_new.h"

TEST_CASE("steps of a loop allocate nothing", "[core][runtime][allocation]") {
    const std::int64_t rows = 100, batch = 8;  // the last minibatch is partial: two frames in turns
    Shared data = shared(zeros({rows, 20}), "data"), w = shared(zeros({20, 4}), "w"),
           b = shared(zeros({4}), "b");
    const Expr i = lscalar("i");
    const Expr x = data[Slice{i * batch, (i + 1) * batch}];
    const Expr loss = mean(sqr(tanh(dot(x, w) + b)));
    Function f = function({i}, {loss, sum(x, {0})}, {.updates = sgd(loss, {w, b}, 0.1), .device = "cpu"});
    std::vector<std::int64_t> few, many;
    for (std::int64_t k = 0; k < 12; ++k) few.push_back(k);
    for (std::int64_t k = 0; k < 1200; ++k) many.push_back(k % 12 + (k % 12 == 11 ? 1 : 0));
    REQUIRE(allocations_of_loop(f, many) == allocations_of_loop(f, few));
}

namespace {

SmallNetwork digits() { return {"cpu", 784, 100, 128}; }

}  // namespace

TEST_CASE("when an allocation of a step fails, its variables are as before or as after it",
          "[core][runtime]") {
    SmallNetwork net = digits();
    const Array x = net.x, t = net.t;
    net.step(x, t);
    const std::vector<Array> before = net.values();
    net.step(x, t);
    const std::vector<Array> after = net.values();
    std::int64_t failed = 0, survived = 0;
    for (std::int64_t n = 0; survived < 3; ++n) {
        REQUIRE(n < 1000);
        net.set(before);
        failing = n;
        bool thrown = false;
        try {
            net.step(x, t);
        } catch (const std::exception&) {
            thrown = true;
        }
        // None was left to fail: the step has fewer.
        survived = failing.exchange(-1) >= 0 ? survived + 1 : 0;
        failed += thrown ? 1 : 0;
        INFO("allocation " << n << (thrown ? ", thrown" : ""));
        const std::vector<Array> now = net.values();
        // A slice of a product that the library refuses is added up in another order.
        const Tolerance rounding{.absolute = 1e-6, .relative = 1e-4};
        if (thrown)
            CHECK(differences(now, before) == "");
        else
            CHECK(differences(now, after, rounding) == "");
        // And the next step is right.
        net.set(before);
        net.step(x, t);
        CHECK(differences(net.values(), after) == "");
    }
    CHECK(failed > 0);
}

TEST_CASE("products that the library refuses are computed all the same", "[core][runtime]") {
    if (!gemm_library().present) return;
    SmallNetwork net = digits(), refused = digits();
    const Array x = net.x, t = net.t;
    refused.set(net.values());
    const double expected = double(net.step(x, t));
    library_fails = true;
    const double got = double(refused.step(x, t));
    library_fails = false;
    CHECK(got == Approx(expected));
    CHECK(differences(refused.values(), net.values(), {.absolute = 1e-6, .relative = 1e-4}) == "");
}
