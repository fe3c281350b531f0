// Kernels that check the ranges of their variables while they run.
#include "codegen/kernel/ranges.h"

#include <cstdint>
#include <string>
#include <utility>

#include "codegen/kernel/intrinsics.h"
#include "codegen/print/c_family.h"
#include "ops/registry.h"
#include "tests/support/catch.h"

using namespace bitale;  // NOLINT

namespace {

int times(const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

}  // namespace

TEST_CASE("tasks and loops and dynamic indices check the range of their variable") {
    register_all_ops();
    KernelIR ir;
    for (const bool written : {false, true})
        ir.places.push_back({Place::Scope::global, DType::int32, {Int(400)}, ir.buffers++, written});
    const Int task = Int::symbol("task", {0, 3}), j = Int::symbol("j", {2, 9}),
              row = Int::symbol("row", {0, 399}), lane = Int::symbol("lane", {0, 15});
    Stmts inner{let(row, place_read(DType::int32, 0, {j}), 400),
                set(1, {j}, place_read(DType::int32, 0, {row}))};
    Stmts body{loop(j, 2, 10, Binding::serial, std::move(inner)),
               lanes(lane, 16, 16, {set(1, {lane}, place_read(DType::int32, 0, {lane}))})};
    ir.phases.resize(1);
    ir.phases[0].segments.resize(1);
    Segment& segment = ir.phases[0].segments[0];
    segment.task = task;
    segment.tasks = 4;
    segment.body = std::move(body);

    CHECK(times(print_kernel(ir, Dialect::cpp).body, "b_in_range(") == 0);
    check_ranges(ir);
    verify(ir, {});
    const std::string text = print_kernel(ir, Dialect::cpp).body;
    INFO(text);
    CHECK(times(text, "b_in_range(") == 3);
    CHECK(times(text, ", 0, 3);") == 1);
    CHECK(times(text, ", 2, 9);") == 1);
    CHECK(times(text, ", 0, 399);") == 1);
    CHECK_THROWS_WITH(print_kernel(ir, Dialect::cuda),
                      ContainsSubstring("this device has no check of a range"));
}
