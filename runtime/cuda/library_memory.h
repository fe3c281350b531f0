// What libraries take of a GPU's memory beside the buffers of a call.
#pragma once

#include "runtime/memory/plan.h"

namespace bitale::cuda {

bool has_steps(const Program& program, Step::Kind kind);

// The workspace of cuBLASLt where it computes products of the program, and what nobody can tell.
OwnMemory library_memory(const Program& program, bool has_cublaslt);

}  // namespace bitale::cuda
