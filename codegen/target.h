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
    // Which text is printed (print/dialect.h). No other decision depends on it: the facts below say what
    // differs, and tests/layout/target_facts.cmake fails on code that asks for the kind instead.
    enum class Kind : std::uint8_t { cpu, cuda };
    Kind kind = Kind::cpu;
    std::string architecture;  // "x86-64-v4", "sm_90"; part of cache keys

    // ---- how a task runs
    int warp = 1;           // threads of a task that advance together; 1: a task is one thread
    int vector_bytes = 32;  // that one load of a thread moves, at most
    // Vectors that a thread holds. 0: none, and nothing is gained from tiles of them, from lanes that share
    // what they load, or from loops that are made even for them.
    int vector_registers = 16;
    std::int64_t local_bytes = 256 << 10;  // scratch of one task: L2 on a CPU, shared memory on a GPU
    // Other threads run while one waits for memory. So many tasks have to be there at once, and what is
    // loaded ahead of its use gains nothing.
    bool threads_hide_waits = false;
    // A store to a part of a line of memory reads the line first, unless it bypasses the caches.
    bool stores_read_lines = true;

    // ---- what takes long
    // An element of so few bytes is read again faster than a random number is drawn again.
    int bytes_of_draw = 1;
    // So many divisions take longer than one more small kernel. Infinite where nobody has measured it.
    double divisions_of_launch = 1 << 16;
    // Looking at so many indices, once for each row of a table, takes longer than sorting them. Infinite
    // where the threads of a task look at them side by side.
    double looks_of_sort = 1 << 14;

    // ---- how steps run
    // Threads of the runtime share the tasks of a step among themselves, by what each task costs. Otherwise
    // the hardware hands them out.
    bool threads_share_tasks = true;
    // Steps wait in a queue, and may be recorded once for many calls. So kernels look at the error word and
    // at integer arguments themselves; otherwise the host does before it starts a step.
    bool steps_are_queued = false;
    // A task calls the library for its slice of a result, while that is in its core's cache. Otherwise a call
    // is a launch of its own, of a whole product.
    bool library_in_tasks = true;

    // ---- libraries
    // Why no library computes convolutions on such a machine; empty where there is one to look for.
    std::string no_conv = "no library computes convolutions on a CPU";
    bool has_gemm = false;                     // a matrix-product library is present
    bool has_gemm_f64 = false;                 // which computes those of float64
    bool has_gemm_int8 = false;                // and those of int8, and of uint8 with int8, exactly in int32
    bool has_conv = false;                     // a convolution library is present
    bool has_lapack = false;                   // a library for eigenvalues is present
    bool has_routines = true;                  // for opaque ops (graph/ir/op.h)
    bool has_epilogues = false;                // these libraries add a bias and apply relu
    Precision precision = Precision::float32;  // of these libraries
    // Whether their relu of a NaN is NaN, as generated code has it. Where it is not, relu stays generated,
    // unless all numbers are assumed to be finite.
    bool gemm_relu_keeps_nan = false, conv_relu_keeps_nan = false;
    bool assume_finite = false;

    // ---- what is asked for
    bool fast_compile = false;    // less text matters more than speed; the same bits
    bool smallest_tasks = false;  // on a CPU, however little they do: for tests; the same bits
    bool checked_loops = false;   // on a CPU, variables outside of their range trap: for tests
    bool reads_exactly = false;   // on a CPU, nothing that no lane needs: for tools that look for data races
    bool readable = false;        // kernels come with a text for people
    bool debug_lines = false;     // which is then what is compiled, with the user's lines
    int max_statements = 400;     // per kernel: compile time grows faster than the text
    // By which launches are predicted; none: the schedules of a GPU of which nothing is known.
    std::optional<GpuFacts> gpu = {};

    bool tasks_have_threads() const { return warp > 1; }
    bool has_vectors() const { return vector_registers > 0; }
};

}  // namespace bitale
