// What code generation may assume of a GPU.
#pragma once

#include <limits>
#include <string>

#include "codegen/target.h"
#include "graph/base/options.h"

namespace bitale::cuda {

// `architecture` as sm_90. 48 KB of shared memory a block are there on every GPU, without being asked for; a
// little less leaves room for the alignment of what lies in it.
inline Target target_of(const std::string& architecture) {
    Target t;
    t.kind = Target::Kind::cuda;
    t.architecture = architecture;
    t.warp = 32;
    t.vector_bytes = 16;
    t.vector_registers = 0;
    t.threads_hide_waits = true;
    t.stores_read_lines = false;
    t.bytes_of_draw = 0;
    t.divisions_of_launch = t.looks_of_sort = std::numeric_limits<double>::infinity();
    t.threads_share_tasks = t.library_in_tasks = false;
    t.steps_are_queued = true;
    t.no_conv.clear();
    t.has_gemm = t.has_conv = t.has_epilogues = true;
    t.has_routines = false;
    // cuBLASLt's relu is max(x, 0) by its header, which is 0 for a NaN. cuDNN's keeps a NaN in engines that
    // have a note of it (CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP); those that it proposes first do not. On an
    // H200 with cuBLASLt 13.1.0 and cuDNN 9.14.0 both kept it, in the one size that was tried of each (part
    // nan of benchmarks/results/2026-11-26-nvidia-h200-first.json), which says nothing of other algorithms.
    t.gemm_relu_keeps_nan = t.conv_relu_keeps_nan = false;
    t.assume_finite = options().assume_finite;
    t.local_bytes = std::int64_t{47} << 10;
    t.gpu = gpu_facts(architecture);
    return t;
}

}  // namespace bitale::cuda
