// A loop's steps take nothing from the heap: as many allocations for many steps as for few.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
    throw std::bad_alloc();
}

std::int64_t allocations_of_loop(Function& f, const std::vector<std::int64_t>& steps) {
    f.loop(steps);  // results of this size are then in the pool
    const std::int64_t before = allocations.load();
    f.loop(steps);
    return allocations.load() - before;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

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
