// What libraries take of a GPU's memory beside the buffers of a call.
#pragma once

#include <algorithm>
#include <variant>

#include "graph/base/memory.h"
#include "runtime/cuda/tables.h"
#include "runtime/memory/plan.h"

namespace bitale::cuda {

// Whether some step is a GemmStep, ConvStep, ...
template <class Operation>
bool has_steps(const Program& program) {
    const auto any = [](const Region& region) {
        return std::any_of(region.steps.begin(), region.steps.end(), [](const Step& step) {
            return std::holds_alternative<Operation>(step.operation);
        });
    };
    return any(program.once) || any(program.body);
}

// The workspace of cuBLASLt where it computes products of the program, and what nobody can tell.
OwnMemory library_memory(const Program& program, bool has_cublaslt);

// So many bytes of the GPU for a library, which the ledger counts. Throws OutOfMemory, also where the limit
// of the device leaves less.
void* library_workspace(const RuntimeTable& runtime, MemoryLedger& ledger, std::int64_t bytes,
                        const char* library);

}  // namespace bitale::cuda
