// Tasks of one phase run at once: none writes what another reads.
#include "codegen/kernel/hazards.h"
#include "codegen/kernel/intrinsics.h"
#include "tests/codegen/element.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

Segment segment_of(const char* title, Stmts body) {
    Segment s;
    s.tasks = 1;
    s.task = Int::symbol("task", {0, 0});
    s.title = title;
    s.body = std::move(body);
    return s;
}

// Two buffers, and scratch of a task.
KernelIR three_places() {
    KernelIR kernel;
    for (int buffer = 0; buffer < 2; ++buffer)
        kernel.places.push_back({Place::Scope::global, DType::float32, {Int(1)}, buffer, true});
    kernel.places.push_back({Place::Scope::local, DType::float32, {Int(1)}});
    kernel.buffers = 2;
    return kernel;
}

}  // namespace

TEST_CASE("tasks of one phase do not write what others read") {
    const Segment writes = segment_of("sum", {set(0, {Int(0)}, scalar_constant(DType::float32, 1))}),
                  reads = segment_of("copy", {loop(Int::symbol("i", {0, 3}), 0, 4, Binding::serial,
                                                   {set(1, {Int(0)}, element(0))})}),
                  fetches = segment_of("fetch", {vector_load(2, 0, {Int(0)})}),
                  adds = segment_of("adds", {accumulate(0, {Int(0)}, Combine::sum, element(2))}),
                  own = segment_of("own", {set(0, {Int(0)}, element(0))});
    const auto verified = [](std::vector<std::vector<Segment>> phases) {
        KernelIR kernel = three_places();
        for (std::vector<Segment>& segments : phases) kernel.phases.push_back({std::move(segments)});
        verify_phases(kernel);
    };
    CHECK_NOTHROW(verified({{writes}, {reads}}));
    CHECK_NOTHROW(verified({{own}}));
    CHECK_NOTHROW(verified({{reads, fetches}}));
    CHECK_THROWS_WITH(verified({{writes, reads}}),
                      ContainsSubstring("\"sum\" writes what a task of \"copy\" reads in the same phase"));
    CHECK_THROWS_WITH(verified({{fetches, adds}}), ContainsSubstring("\"adds\" writes what"));
    CHECK_THROWS_WITH(verified({{reads}, {fetches, writes}}), ContainsSubstring("\"sum\" writes what"));
    CHECK_THROWS_WITH(verified({{own, writes}}), ContainsSubstring("\"sum\" writes what"));
}

TEST_CASE("what a segment reads and writes is told by buffer") {
    KernelIR kernel = three_places();
    const Segment s = segment_of("own", {set(0, {Int(0)}, element(1)), set(2, {Int(0)}, element(2))});
    const Touched touched = touched_by(kernel, s);
    CHECK(touched.read == std::set<int>{1});
    CHECK(touched.written == std::set<int>{0});
}
