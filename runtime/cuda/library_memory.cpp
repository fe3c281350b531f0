#include "runtime/cuda/library_memory.h"

#include <fmt/format.h>

#include "bitale/error.h"
#include "graph/base/options.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/outside.h"
#include "runtime/memory/limit.h"

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

void* library_workspace(const RuntimeTable& runtime, MemoryLedger& ledger, std::int64_t bytes,
                        const char* library) {
    const std::int64_t limit = options().memory_limit;
    if (!ledger.take(bytes, limit))
        throw OutOfMemory(fmt::format(
            "the workspace of {}, {}, does not fit beside the {} that are alive into memory_limit "
            "in BITALE_FLAGS, {}",
            library, bytes_text(bytes), bytes_text(ledger.now()), bytes_text(limit)));
    void* block = nullptr;
    if (device_memory(runtime, &block, static_cast<std::size_t>(bytes)) != success) {
        ledger.give(bytes);
        throw OutOfMemory(
            fmt::format("no memory on the GPU for {} of workspace of {}", bytes_text(bytes), library));
    }
    ledger.taken();
    return block;
}

}  // namespace bitale::cuda
