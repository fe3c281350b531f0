// What code generation may assume of a GPU.
#pragma once

#include <string>

#include "codegen/target.h"

namespace bitale::cuda {

// `architecture` as sm_90. 48 KB of shared memory a block are there on every GPU, without being asked for; a
// little less leaves room for the alignment of what lies in it.
inline Target target_of(const std::string& architecture) {
    Target t;
    t.kind = Target::Kind::cuda;
    t.architecture = architecture;
    t.vector_bytes = 16;
    t.has_gemm = t.has_conv = t.has_epilogues = true;
    t.local_bytes = std::int64_t{47} << 10;
    return t;
}

}  // namespace bitale::cuda
