// Scratch of a block: what is used at other times, with a barrier between, shares bytes; nothing else does.
#include "codegen/kernel/shared_memory.h"

#include "tests/codegen/element.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

Stmt uses(int place) { return set(place, {Int(0)}, element(place)); }
Stmt loop_of(Stmts body) { return loop(Int::symbol("i", {0, 3}), 0, 4, Binding::serial, std::move(body)); }

// Places 0 and 1 of 40 bytes, 2 of 100.
SharedMemory planned(Stmts body) {
    KernelIR kernel;
    for (const int elements : {10, 10, 25})
        kernel.places.push_back({Place::Scope::local, DType::float32, {Int(elements)}, -1, true});
    kernel.places.push_back({Place::Scope::private_, DType::float32, {}, -1, true});
    Segment segment;
    segment.tasks = 1;
    segment.task = Int::symbol("task", {0, 0});
    segment.body = std::move(body);
    return shared_memory_of(kernel, segment);
}

bool meet(const SharedMemory& memory, int a, int b) { return memory.offsets.at(a) == memory.offsets.at(b); }

}  // namespace

TEST_CASE("places share bytes where a barrier lies between their uses") {
    const SharedMemory apart = planned({uses(0), barrier(), uses(1), barrier(), uses(2)});
    CHECK(apart.bytes == 112);
    CHECK(meet(apart, 0, 1));
    CHECK(meet(apart, 1, 2));

    const SharedMemory without = planned({uses(0), uses(1)});
    CHECK(without.bytes == 96);
    CHECK_FALSE(meet(without, 0, 1));

    const SharedMemory read_later = planned({uses(0), barrier(), uses(1), barrier(), uses(0)});
    CHECK(read_later.bytes == 96);
    CHECK_FALSE(meet(read_later, 0, 1));
}

TEST_CASE("a loop that ends with a barrier parts what it alone uses from what follows") {
    CHECK(planned({loop_of({uses(0), barrier()}), uses(1)}).bytes == 48);
    // What is used before the loop as well may be used when the loop runs not once.
    CHECK(planned({uses(0), loop_of({uses(0), barrier()}), uses(1)}).bytes == 96);
    CHECK(planned({loop_of({uses(0), barrier(), uses(0)}), uses(1)}).bytes == 96);
    CHECK(planned({loop_of({uses(0), barrier(), uses(1), barrier()})}).bytes == 96);
    // No thread waits in a loop whose points the threads share, nor where guards may not hold.
    Stmt threads = loop_of({uses(0), barrier()});
    threads.binding = Binding::threads;
    CHECK(planned({threads, uses(1)}).bytes == 96);
    CHECK(planned({when({}, {uses(0), barrier()}), uses(1)}).bytes == 96);
}

TEST_CASE("long lives lie side by side, short ones take turns behind them") {
    const SharedMemory memory =
        planned({uses(0), barrier(), uses(1), barrier(), uses(2), barrier(), uses(0)});
    CHECK(memory.offsets.at(0) == 0);
    CHECK(memory.offsets.at(1) == 48);
    CHECK(memory.offsets.at(2) == 48);
    CHECK(memory.bytes == 160);
}

TEST_CASE("places that no statement uses, and those of a thread, take no bytes") {
    const SharedMemory memory = planned({declare(0), declare(3), uses(3)});
    CHECK(memory.bytes == 0);
    CHECK(memory.offsets.empty());
}
