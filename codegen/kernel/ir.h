// Kernel IR: the statements of one generated kernel. Loops, indices and memory are explicit; everything the
// printer needs is decided before printing. Scalars are those of nests, their reads numbered by Place.
//
// Semantics: statements run in order; a Place in scope `global` is one of the launch's buffers, row-major
// over its extents; `local` is scratch of one task (shared memory on a GPU), `private_` belongs to one thread
// (registers), as does `vector`, whose few elements are loaded and stored together. On a CPU a vector place
// has two extents: so many registers, of so many lanes each. Float arithmetic is never contracted or
// reordered; an accumulate with `fused` is one fused multiply-add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/ir/nest.h"
#include "graph/ir/node.h"

namespace bitale {

// What a task has of a value along one axis: the elements from `first` on, `count` of them.
struct Part {
    std::size_t axis = 0;
    Int first;
    std::int64_t count = 0;
};

// Of scratch, and of every buffer, so many bytes behind the last element may be read: vectors are loaded
// whole. A place that is written has others there.
constexpr std::int64_t readable_past_end = 64;

struct Place {
    enum class Scope : std::uint8_t { global, local, private_, vector };
    Scope scope = Scope::global;
    DType dtype = DType::float32;
    Shape extents;         // row-major; constant but for global ones
    int buffer = -1;       // global: position in the launch's buffer list
    bool written = false;  // by this kernel: loads are then not remembered across statements
    // Of a place that is a task's own, the rows of a value that the task has there. Indices are those of the
    // whole value, in scratch too: an access says itself which row it means, and verify() proves that the row
    // is here. Scratch is as long as its parts, a buffer has the rows of all tasks.
    std::vector<Part> parts = {};
};

// Position of an element, row-major; in scratch that has parts of a value, from their beginning on.
Int offset_of(const Place& place, const std::vector<Int>& at);
// By how many elements it moves when the variable moves by one.
Int step_of(const Place& place, const std::vector<Int>& at, const Int& variable);

enum class Binding : std::uint8_t {
    serial,
    simd,  // independent points, one lane each; the innermost loop; with `high` as filled_lanes (tails.h)
    unrolled,
    turned,   // around one loop around one set: row r, column c of a matrix to [c, r] of a tile of 16 x 16,
              // or to memory; with `number`, past the caches
    lanes,    // CPU: one vector register of `number` points from 0 on; those from `end` on are computed from
              // what lies behind the others in memory, and not stored
    rolled,   // CPU: serial; what iterations have in common is read again, the registers are all taken
    threads,  // CUDA: strided over the threads of the block
};

// Memory that an intrinsic works on: elements from `at` on, or a register or array as a whole.
struct Memory {
    int place = -1;
    std::vector<Int> at;
};

struct Intrinsic;

struct Call {
    const Intrinsic* intrinsic = nullptr;
    std::vector<Memory> operands;
    std::vector<Int> numbers;             // how many elements, how far apart
    std::vector<std::int64_t> constants;  // in the text
    std::vector<Scalar> values;
};

struct Stmt;
using Stmts = std::vector<Stmt>;

struct Stmt {
    enum class Kind : std::uint8_t {
        loop,        // variable from begin below end by step
        declare,     // a local or private_ place comes to life (uninitialised)
        set,         // place[at] = value
        accumulate,  // place[at] = combine(place[at], value); `fused`: place[at] = fma(a, b, place[at]),
                     // value = a * b; argmax and argmin: where value is better than place[at], NaN best of
                     // all, it goes there and `begin` to the same element of place `number`; with `position`
                     // that goes there, and of equals the earlier one does
        exchange,    // place[at] = combine(place[at], that of the thread `step` lanes away), within 16 or
                     // 32 threads: a GPU's; positions are those of the place `number`
        call,        // an intrinsic (intrinsics.h)
        search,   // variable = the first position from begin below end where the place's element is not below
                  // `low`, else the greater of the two; the elements are in ascending order. `high`: how far
                  // that is from begin, about
        let,      // variable = clamp(value, 0, extent - 1)
        check,    // value outside [low, high) sets the error word to `number`
        when,     // body only where the guards hold
        barrier,  // all threads of the task have written what they had to (nothing on a CPU)
        comment,
    };
    Kind kind = Kind::comment;
    Int variable, begin, end, low, high;
    std::int64_t step = 1;
    Binding binding = Binding::serial;
    int place = -1;
    std::vector<Int> at;
    Scalar value;
    Scalar position;  // accumulate: of the candidate, where it is no index; else null
    Combine combine = Combine::none;
    bool fused = false;
    bool out_of_order = false;  // accumulate: what it adds lies otherwise than it is added
    bool none_yet = false;      // accumulate of a position: it is -1 before the first candidate
    int number = 0;
    std::vector<Guard> guards;
    Call call;
    std::string text;
    Where where{};  // comment: the user's line that what follows is for
    Stmts body;
};

// A set, accumulate, declare or comment: no index that it binds, and nothing under a condition.
bool is_plain(const Stmt& s);
void append(Stmts& to, Stmts from);
Stmt loop(Int variable, Int begin, Int end, Binding binding, Stmts body, std::int64_t step = 1);
// The statements of one vector register: set, accumulate with constants, products of a scalar and
// neighbouring elements, and vector places.
Stmt lanes(Int lane, Int count, std::int64_t width, Stmts body);
Stmt declare(int place);
// Reads the element of a place.
Scalar place_read(DType dtype, int place, std::vector<Int> at, std::vector<Guard> guards = {},
                  Scalar otherwise = nullptr);
Stmt set(int place, std::vector<Int> at, Scalar value);
Stmt accumulate(int place, std::vector<Int> at, Combine combine, Scalar value, bool fused = false);
Stmt exchange(int place, Combine combine, int lanes, int positions = -1);
Stmt search(Int variable, int sorted, Int begin, Int end, Int low, Int about);
Stmt let(Int variable, Scalar value, Int extent);
Stmt check(int number, Scalar value, Int low, Int high, Int element);
Stmt when(std::vector<Guard> guards, Stmts body);
Stmt barrier();
Stmt comment(std::string text, Where where = {});
Stmt comment_of(const Node& node, const std::string& before = "");  // what it is, and its line

// One kind of task of a kernel: `task` runs over [0, tasks).
struct Segment {
    Int task, tasks;
    Stmts body;
    std::string title;
    Where where{};  // the user's line that it is for
    // Of global places: what a task has of them. verify() proves that it loads and stores nothing else there.
    std::map<int, std::vector<Part>> parts = {};
};

Int tasks_of(std::span<const Segment> segments);

// One phase: the tasks of its segments in any order; phases one after another.
struct Phase {
    std::vector<Segment> segments;
};

// An integer scalar argument that indices may mention: a GPU reads it from memory, so that a captured launch
// serves every value of it.
struct DeviceScalar {
    Int symbol;
    int place = -1;
};

struct KernelIR {
    std::vector<Place> places;
    std::vector<Phase> phases;
    std::vector<DeviceScalar> scalars;
    int buffers = 0;             // length of the launch's buffer list
    bool commits = false;        // writes shared storage: guarded by the error word
    int errors_buffer = -1;      // position of the error word in the buffer list, if used
    bool reads_exactly = false;  // nothing that no lane needs: neither behind an array nor of another task
};

// Threads for a block of this phase: as many as its widest loop over threads keeps busy, by the ranges of the
// loops; a multiple of 32, at most 256.
int threads_of(const Phase& phase);
// Whether any index, bound or guard of the kernel contains the symbol.
bool mentions(const KernelIR& kernel, std::uint64_t symbol);

// Loops well-formed, variables declared before use and once, at's of the right rank, scratch declared before
// its use; of a value that a task has in part, no element of another part; lengths are those of the call,
// whose symbols are `sizes`, or of variables. InternalError.
void verify(const KernelIR& kernel, const std::set<std::uint64_t>& sizes);
// Whether verify() would take the segment: what a change of its loops has to ask where proofs rest on them.
bool is_verified(const KernelIR& kernel, const Segment& segment, const std::set<std::uint64_t>& sizes);

}  // namespace bitale
