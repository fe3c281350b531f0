#include "runtime/cuda/library_memory.h"

#include "runtime/cuda/cublaslt.h"

namespace bitale::cuda {

OwnMemory library_memory(const Program& program, bool has_cublaslt) {
    OwnMemory own;
    own.place = OwnMemory::Place::gpu;
    if (has_cublaslt && has_steps<GemmStep>(program))
        own.pieces.push_back({MemoryPlan::Kind::workspace, "cuBLASLt",
                              "workspace of the library of products, one for the device",
                              static_cast<std::int64_t>(CublasLt::workspace_bytes)});
    own.notes.emplace_back("what the driver takes: its context, machine code, and graphs that were captured");
    return own;
}

}  // namespace bitale::cuda
