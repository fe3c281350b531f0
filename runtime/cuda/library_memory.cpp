#include "runtime/cuda/library_memory.h"

#include <algorithm>

#include "runtime/cuda/cublaslt.h"

namespace bitale::cuda {

bool has_steps(const Program& program, Step::Kind kind) {
    const auto any = [&](const Region& region) {
        return std::any_of(region.steps.begin(), region.steps.end(),
                           [&](const Step& step) { return step.kind == kind; });
    };
    return any(program.once) || any(program.body);
}

OwnMemory library_memory(const Program& program, bool has_cublaslt) {
    OwnMemory own;
    own.place = OwnMemory::Place::gpu;
    if (has_cublaslt && has_steps(program, Step::Kind::gemm))
        own.pieces.push_back({MemoryPlan::Kind::workspace, "cuBLASLt",
                              "workspace of the library of products, one for the device",
                              static_cast<std::int64_t>(CublasLt::workspace_bytes)});
    own.notes.emplace_back("what the driver takes: its context, machine code, and graphs that were captured");
    return own;
}

}  // namespace bitale::cuda
