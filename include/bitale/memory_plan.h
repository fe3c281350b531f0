// MemoryPlan: where the memory of a call goes, told before the call; and limits for it in bytes.
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

// 1_KiB is 1024 bytes, 1_MiB 1024 KiB, 1_GiB 1024 MiB. More than an int64 holds becomes the largest int64.
inline namespace literals {
constexpr ByteCount scaled_bytes(unsigned long long count, int shift) {
    const unsigned long long most = static_cast<unsigned long long>(INT64_MAX) >> shift;
    return {count > most ? INT64_MAX : static_cast<std::int64_t>(count << shift)};
}
constexpr ByteCount operator""_KiB(unsigned long long count) { return scaled_bytes(count, 10); }
constexpr ByteCount operator""_MiB(unsigned long long count) { return scaled_bytes(count, 20); }
constexpr ByteCount operator""_GiB(unsigned long long count) { return scaled_bytes(count, 30); }
}  // namespace literals

// Shapes of inputs, as a call might bring them: {{x, {128, 1, 28, 28}}}. For a version of a function a
// leading length may be -1: any.
using ExampleShapes = std::vector<std::pair<Expr, Dims>>;

struct MemoryPlan {
    enum class Kind : std::uint8_t {
        argument,      // what the caller passes
        shared,        // a shared variable that the function reads or writes
        constant,      // a number or table of the expression
        result,        // what the call returns
        saved,         // of the forward computation, kept until a gradient reads it
        temporary,     // any other value between two steps
        partial_sums,  // what chunks of a long sum add up to
        task_rows,     // rows that each task copies or sorts, too many for its scratch
        once,          // computed when shared variables have changed, kept for the calls after that
        workspace,     // of a library of products, and of the kernels that run on its slices
        staging,       // pinned host memory through which a GPU is fed
        control        // error words and counters
    };
    struct Buffer {
        Kind kind = Kind::temporary;
        std::string name;  // the user's, or that of the operation
        DType dtype = DType::float32;
        Dims shape;                 // empty, and `bytes` is all that is known, for workspace and staging
        std::string formula;        // the shape before lengths were known: "[n, 32, 24, 24]"
        std::int64_t bytes = 0;     // of the elements
        std::int64_t reserved = 0;  // that it takes, with alignment and tail
        std::int64_t offset = -1;   // in the arena; -1: memory of its own
        int first = 0, last = 0;    // the steps between which it holds its place, of `steps`
        std::string where;          // the user's statement: "conv2d at net.cpp:12"
        std::string reason;         // why it is in memory at all
        bool on_host = false;       // of a function on a GPU: not in the GPU's memory, nor in `peak_bytes`
    };
    struct Step {
        std::string kernel;           // as Function::kernels() names it
        std::string what;             // "conv2d + max_pool + relu"
        bool once = false;            // of the part that runs when shared variables have changed
        std::int64_t live_bytes = 0;  // of the arena's buffers that are in use
    };
    // Every length that the expression leaves open, and what it was taken for: {"n", 10000}.
    using Length = std::pair<std::string, std::int64_t>;

    std::string function, device;
    std::vector<Length> lengths;
    std::vector<Buffer> buffers;         // the largest first
    std::vector<Step> steps;             // in the order in which they run
    std::int64_t arena_bytes = 0;        // of the one block that holds what lives between steps
    std::int64_t least_arena_bytes = 0;  // the most that lives at one step: no arena is smaller
    int peak_step = -1;                  // that step; -1: there is none
    // What the call holds on its device while it runs: arguments, shared variables, constants, results, the
    // arena, workspace. The allocator's high-water mark on cpu and emulator.
    std::int64_t peak_bytes = 0;
    std::int64_t host_bytes = 0;     // of a function on a GPU: what it holds in the host's memory beside that
    std::int64_t limit = 0;          // FunctionOptions::memory_limit; 0: none
    std::int64_t micro_batch = 0;    // rows of the batch that are computed at a time; 0: all at once
    std::vector<std::string> notes;  // what is not in the plan, and why

    // One screen: totals, the peak, the largest buffers.
    std::string to_string() const;
    // All of it; the schema is in docs/memory.md.
    std::string json() const;
    // A picture, time from left to right and addresses upwards, one rectangle a buffer of the arena; what has
    // memory of its own as bars below. It loads nothing from elsewhere.
    std::string svg() const;
};
std::ostream& operator<<(std::ostream& out, const MemoryPlan& plan);
std::string name_of(MemoryPlan::Kind kind);  // "saved for gradients"

}  // namespace bitale

#pragma GCC visibility pop
