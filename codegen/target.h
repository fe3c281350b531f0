// Target: what code generation may assume of the device. Plain data; the runtime fills it in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bitale/precision.h"
#include "codegen/gpu_facts.h"

namespace bitale {

struct Target {
    enum class Kind : std::uint8_t { cpu, cuda };
    Kind kind = Kind::cpu;
    std::string architecture;  // "x86-64-v4", "sm_90"; part of cache keys
    int vector_bytes = 32;     // 64, 32 or 16 on a CPU
    int vector_registers = 16;
    bool has_gemm = false;                     // a matrix-product library is present
    bool has_conv = false;                     // a convolution library is present
    bool has_lapack = false;                   // a library for eigenvalues is present
    bool has_routines = true;                  // for opaque ops (graph/ir/op.h)
    bool has_epilogues = false;                // these libraries add a bias and apply relu
    Precision precision = Precision::float32;  // of these libraries
    // Whether their relu of a NaN is NaN, as generated code has it. Where it is not, relu stays generated,
    // unless all numbers are assumed to be finite.
    bool gemm_relu_keeps_nan = false, conv_relu_keeps_nan = false;
    bool assume_finite = false;
    std::int64_t local_bytes = 256 << 10;  // scratch of one task: L2 on a CPU, shared memory on a GPU
    bool fast_compile = false;             // less text matters more than speed; the same bits
    bool smallest_tasks = false;           // on a CPU, however little they do: for tests; the same bits
    bool checked_loops = false;            // on a CPU, variables outside of their range trap: for tests
    bool readable = false;                 // kernels come with a text for people
    bool debug_lines = false;              // which is then what is compiled, with the user's lines
    int max_statements = 400;              // per kernel: compile time grows faster than the text
    // By which launches are predicted; none: the schedules of a GPU of which nothing is known.
    std::optional<GpuFacts> gpu = {};
};

}  // namespace bitale
