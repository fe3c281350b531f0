#include "codegen/library/routine.h"

#include <string>
#include <utility>

#include "graph/base/check.h"

namespace bitale {

namespace {

// [matrices, n] of eigh: what our own code keeps beside the matrix, or LAPACK's syevd, whose integers go
// behind its numbers. One matrix alone is the library's; many are shared out among the cores.
void plan_eigh(RoutineCall& call, const Target& target, LibraryCall& plan) {
    const Int &matrices = call.sizes[0], &n = call.sizes[1];
    call.by_library = target.has_lapack && matrices.is(1);
    constexpr std::int64_t aligned = 16;
    const Int own = n * n + (call.dtype == DType::float32 ? 8 : 6) * n + aligned - 1,
              library = 2 * n * n + 11 * n + aligned;
    call.workspace = matrices * ceildiv(call.by_library ? library : own, aligned) * aligned;
    plan.flops = 9 * matrices * n * n * n;
    plan.bytes = matrices * (2 * n * n + n) * bytes_of(call.dtype);
    plan.why = call.by_library      ? "no kernel computes it, LAPACK does"
               : !target.has_lapack ? "no kernel computes it, and there is no LAPACK: code of Bitale does"
                                    : "no kernel computes it: code of Bitale does, matrices side by side";
}

}  // namespace

LibraryCall routine_call(const Node& node, const Target& target, std::vector<int> operands) {
    Routine routine = node.op->routine(node);
    BITALE_CHECK(routine.name == "eigh", "no routine is named " + routine.name);
    RoutineCall call{std::move(routine.name), node.type.dtype, std::move(routine.sizes)};
    LibraryCall plan;
    plan_eigh(call, target, plan);
    plan.call = std::move(call);
    plan.operands = std::move(operands);
    return plan;
}

}  // namespace bitale
