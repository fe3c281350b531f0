// MemoryPlan: where the memory of a call goes, known before the call. ByteCount: limits in bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "bitale/array.h"
#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

// A number of bytes: 512_MiB, or ByteCount{1000}.
struct ByteCount {
    std::int64_t bytes = 0;
    auto operator<=>(const ByteCount&) const = default;
};

// 1_KiB is 1024 bytes, 1_MiB is 1024 KiB, 1_GiB is 1024 MiB. More than an int64 holds becomes the largest
// int64.
inline namespace literals {
constexpr ByteCount scaled_bytes(unsigned long long count, int shift) {
    const unsigned long long most = static_cast<unsigned long long>(INT64_MAX) >> shift;
    return {count > most ? INT64_MAX : static_cast<std::int64_t>(count << shift)};
}
constexpr ByteCount operator""_KiB(unsigned long long count) { return scaled_bytes(count, 10); }
constexpr ByteCount operator""_MiB(unsigned long long count) { return scaled_bytes(count, 20); }
constexpr ByteCount operator""_GiB(unsigned long long count) { return scaled_bytes(count, 30); }
}  // namespace literals

// Shapes of inputs, as a call might have them: {{x, {128, 1, 28, 28}}}. In report() and kernels(), a leading
// length may be -1, which stands for any length.
using ExampleShapes = std::vector<std::pair<Expr, Dims>>;

struct MemoryPlan {
    enum class Kind : std::uint8_t {
        argument,      // what the caller passes
        shared,        // a shared variable that the function reads or writes
        constant,      // a constant of the expression
        result,        // what the call returns
        saved,         // a value of the forward pass, kept until a gradient reads it
        temporary,     // any other value that one step writes and another reads
        partial_sums,  // sums of the chunks of a long sum
        task_rows,     // rows that a task copies or sorts, too large for its scratch
        once,          // computed when shared variables have changed, and kept for later calls
        workspace,     // of a library of matrix products, and of kernels that run on its slices
        staging,       // pinned host memory for copies to and from a GPU
        control        // error words and counters
    };
    struct Buffer {
        Kind kind = Kind::temporary;
        std::string name;  // the variable's name, or the operation's
        DType dtype = DType::float32;
        Dims shape;                 // empty for workspace and staging, of which only `bytes` is known
        std::string formula;        // the shape before lengths were known: "[n, 32, 24, 24]"
        std::int64_t bytes = 0;     // of the elements
        std::int64_t reserved = 0;  // with alignment and padding
        std::int64_t offset = -1;   // in the arena, in bytes; -1: memory of its own
        int first = 0, last = 0;    // it occupies its place from steps[first] to steps[last]
        std::string where;          // the user's statement: "conv2d at net.cpp:12"
        std::string reason;         // why it is stored
        bool on_host = false;       // in host memory, for a function on a GPU; not part of `peak_bytes`
    };
    struct Step {
        std::string kernel;           // as Function::kernels() names it
        std::string what;             // "conv2d + max_pool + relu"
        bool once = false;            // runs only when shared variables have changed
        std::int64_t live_bytes = 0;  // of the arena's buffers in use at this step
    };
    // An unknown length of the expression, and its value in this plan: {"x.0", 10000}.
    using Length = std::pair<std::string, std::int64_t>;

    std::string function, device;
    std::vector<Length> lengths;
    std::vector<Buffer> buffers;         // the largest first
    std::vector<Step> steps;             // in the order in which they run
    std::int64_t arena_bytes = 0;        // of the block that holds all values between steps
    std::int64_t least_arena_bytes = 0;  // the most that is in use at one step: no arena can be smaller
    int peak_step = -1;                  // that step; -1: there is none
    // The most that the call holds on its device at a time: arguments, shared variables, constants, results,
    // the arena and workspace. On cpu and emulator it is the allocator's high-water mark.
    std::int64_t peak_bytes = 0;
    std::int64_t host_bytes = 0;   // host memory that a function on a GPU takes in addition
    std::int64_t limit = 0;        // FunctionOptions::memory_limit; 0: none
    std::int64_t micro_batch = 0;  // rows of the batch computed at a time; 0: all at once
    // How gradients compute values again so that the call keeps its limit, and the time that is predicted;
    // empty where they do not.
    std::string recomputed;
    std::vector<std::string> notes;  // what the plan does not contain, and why

    // On one screen: totals, the peak, the largest buffers.
    std::string to_string() const;
    // Everything, as JSON; docs/memory.md has the schema.
    std::string json() const;
    // A picture. Time runs from left to right and addresses upwards; each buffer of the arena is a rectangle,
    // and buffers with memory of their own are bars below. The file refers to nothing outside itself.
    std::string svg() const;
};
std::ostream& operator<<(std::ostream& out, const MemoryPlan& plan);
std::string name_of(MemoryPlan::Kind kind);  // "saved for gradients"

}  // namespace bitale

#pragma GCC visibility pop
