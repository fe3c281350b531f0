// Program: everything that will run, as plain data: buffers, kernels as text, and a tree of regions.
// Comparable, printable, serialisable; knows where each part came from. Sizes are Ints over the symbols of
// the arguments.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "bitale/array.h"
#include "bitale/precision.h"

#include "graph/ir/node.h"

namespace bitale {

// Where the value of a symbol comes from at a call.
struct SizeSource {
    std::uint64_t symbol = 0;  // id
    Int value;                 // the symbol itself
    int input = 0;             // argument number
    int axis = -1;             // its length on this axis, or -1: the argument's own value (an integer scalar)
};

struct LengthCheck {  // a == b, else ShapeError with `message`, or IndexError
    Int a, b;
    std::string message;
    bool is_index = false;
};

struct BufferInfo {
    enum class Kind : std::uint8_t {
        arena,     // lives between two steps; placed by plan_arena
        input,     // argument `index`
        shared,    // shared variable `index`
        constant,  // constant `index`
        output,    // result `index`, allocated for each call
        errors,    // int64[4]: check number + 1 (0: none), value, element, unused
        slice,     // the part of a product that its epilogue works on, or a piece of its operand that a
                   // kernel makes: memory of the thread that runs it
        counters   // int64 scratch zeroed at load, for device-side phase hand-over
    };
    Kind kind = Kind::arena;
    int index = 0;
    std::string name;
    Type type;
    std::string reason;  // arena buffers: why it is materialised
    std::vector<Origin> origins;
    // What an arena buffer holds: a value of the graph, what chunks of a long sum add up to, rows that each
    // task has for itself because they are too many for its scratch, or a value of the forward computation
    // that a gradient reads.
    enum class Role : std::uint8_t { value, partial_sums, task_rows, saved };
    Role role = Role::value;
};

// One generated kernel: equal texts are one KernelText, launched with different buffers and sizes.
// CPU entry:  extern "C" void NAME(void* const* buffers, const int64_t* sizes, int64_t first, int64_t last)
// works on the tasks [first, last) of a phase; phases run one after another, tasks of one phase in any order.
struct KernelText {
    std::string name;                  // "k_" + hash of the text
    std::vector<std::string> entries;  // one function per phase: NAME, NAME_finish
    std::string body;                  // the functions, without the prelude
    std::string cuda_body;             // the same kernel for CUDA, without the prelude
    std::string readable;              // the same for people, where the target asks for it (print/reading.h)
    std::string notes;                 // schedule decisions, for report and BITALE_DEBUG=5
    std::vector<int> cuda_threads;     // of a block, for each phase
};

// Where the matrices of a call begin, and how far their rows lie apart, in elements. The call computes a
// product for each point of the batches, the last one innermost. Those with the same result, which are the
// innermost batches, are added up in order.
struct GemmStrides {
    struct Batch {
        Int count;
        Int a, b, c;  // from one product to the next; 0: they share the operand, or the result
        bool adds() const { return c.is(0); }
    };
    Int first_a, first_b;
    Int row_a, row_b, row_c;
    std::vector<Batch> batches;
};

// c[m, n] = a[m, k] . b[k, n], float32 or, on a CPU, float64, row-major; a transposed flag says that the
// operand is stored the other way. With `bias`, c += bias[n]; with `relu`, c = relu(c) after that. On a CPU
// the result may also be c = alpha * a . b + beta * c, of the old c.
struct GemmCall {
    // Along which axis of the product the rows of a parameter lie that every step updates: the core that
    // wrote some of them should compute with these.
    enum class Parameter : std::uint8_t { none, depth, columns, rows };
    Int m, n, k;
    DType dtype = DType::float32;  // of the result and of both factors; int32: these are of bytes, b of int8
    bool unsigned_a = false;       // bytes of a are uint8, else int8
    bool transpose_a = false, transpose_b = false;
    bool bias = false, relu = false;
    Precision precision = Precision::float32;
    Parameter parameter = Parameter::none;
    double alpha = 1, beta = 0;
    // On a CPU, of a call with an epilogue (codegen/library/slices.h); 0: as the sizes of a
    // call suggest; a depth of 0: all of it.
    std::int64_t slice_rows = 0, slice_columns = 0, slice_depth = 0;
    // On a CPU, operands that are nowhere in memory as a whole: a kernel makes the piece of them that a slice
    // needs next, of so many terms of the sum. Their transposed flags say how a piece lies.
    bool made_a = false, made_b = false;
    std::int64_t piece_depth = 0;
    // The operands are a matrix and its transpose: of slices that mirror each other one is computed.
    bool symmetric = false;
    // On a CPU: how the matrices lie where they are not one product of matrices without gaps.
    std::optional<GemmStrides> strides;

    DType dtype_of_a() const {
        return dtype != DType::int32 ? dtype : unsigned_a ? DType::uint8 : DType::int8;
    }
    DType dtype_of_b() const { return dtype != DType::int32 ? dtype : DType::int8; }
};

// A float32 tensor of four axes, in any order in memory.
struct ConvTensor {
    std::array<Int, 4> shape, strides;  // strides in elements
};

// A two-dimensional convolution or one of its gradients: image [n, c, h, w], filters [k, c, r, s], output
// [n, k, oh, ow], of which the kind says what is computed from the other two. Tap t meets input place
// out * stride - pad + t * dilation; with `flip` it holds the filter's element from the other end. In groups,
// equal parts of the channels c and of the filters k go together: filters are [k, c / groups, r, s].
struct ConvCall {
    using Kind = Convolution;
    Kind kind = Kind::forward;
    ConvTensor image, filters, output;
    std::array<std::int64_t, 2> stride{1, 1}, pad{0, 0}, dilation{1, 1};  // of height and width
    bool flip = false;
    bool bias = false, relu = false;  // forward only, as of a product: bias[k]
    Precision precision = Precision::float32;
    std::int64_t groups = 1;
};

// An opaque op (graph/ir/op.h), computed by a routine of the runtime: that of a library, or its own.
struct RoutineCall {
    std::string name;
    DType dtype = DType::float32;
    std::vector<Int> sizes;  // as the op gives them
    bool by_library = false;
    Int workspace{};  // elements of the dtype, in a buffer of the plan: a call allocates nothing
};

// Tasks of one kind, and what one of them costs on a core of a CPU (codegen/kernel/work.h).
struct TaskWork {
    Int tasks, picoseconds;
};

// One of Program::kernels, with what it is launched with.
struct KernelLaunch {
    int kernel = -1;           // index into Program::kernels
    std::vector<int> buffers;  // positional
    std::vector<Int> sizes;    // positional int64 parameters
    // Distinct bytes of each buffer (codegen/kernel/traffic.h); of slices, which stay in caches, none.
    std::vector<Int> reads, writes;
};

// A launch of one phase on a GPU as schedule/launch_model.h predicts it, for typical lengths.
struct PredictedLaunch {
    // What takes longest: the start of the launch, the slowest thread, the instructions of all threads, or
    // the bytes that caches and memory deliver.
    enum class Bound : std::uint8_t { launch, chain, issue, memory };
    double blocks = 0, threads = 0;  // threads of a block
    double working = 0;              // of these, on average while loops over threads run
    double waves = 0;
    double loads = 0;    // of the slowest thread, one after another
    double sectors = 0;  // of 32 bytes, of the load or store of a warp that touches most
    double microseconds = 0;
    Bound bound = Bound::launch;
};

// What a step does. Buffers are indices into Program::buffers.
struct KernelStep {
    KernelLaunch launch;
    std::vector<Int> tasks;                   // of each phase
    std::vector<std::vector<TaskWork>> work;  // on a CPU: of each phase, the same tasks by kind
    std::vector<PredictedLaunch> predicted;   // on a GPU whose facts are known: of each phase
};

struct GemmStep {
    GemmCall call;
    int a = -1, b = -1, c = -1;
    std::optional<int> bias;               // where the call adds one
    std::optional<KernelLaunch> epilogue;  // its tasks are the slices
    // Where the call says that an operand is made: the tasks are its pieces, those of one slice's rows, or
    // columns, side by side.
    std::optional<KernelLaunch> pieces_a, pieces_b;
    // Bytes that the call itself reads of a, b, the old c and the bias, and writes of c; of slices none.
    struct Moved {
        Int a, b, old_c, bias, c;
    };
    Moved moved;
};

struct ConvStep {
    ConvCall call;
    int image = -1, filters = -1, output = -1;
    std::optional<int> bias;  // where the call adds one
};

// The tensors of a convolution by `image`, `filters` and `output` of `t`: those that the call reads, then the
// one that it computes.
template <class T>
auto in_order(ConvCall::Kind kind, T& t) {
    switch (kind) {
        case ConvCall::Kind::forward: break;
        case ConvCall::Kind::image_gradient: return std::array{&t.filters, &t.output, &t.image};
        case ConvCall::Kind::filter_gradient: return std::array{&t.image, &t.output, &t.filters};
    }
    return std::array{&t.image, &t.filters, &t.output};
}

struct CopyStep {
    int from = -1, to = -1;
};

struct RoutineStep {
    RoutineCall call;
    std::vector<int> operands;
    int result = -1, workspace = -1;
};

// What a step computes of one of the user's statements, with all that is inlined into it.
struct StepPart {
    Origin origin;
    Int flops;
};

struct Step {
    std::variant<KernelStep, GemmStep, ConvStep, CopyStep, RoutineStep> operation;
    bool commits = false;  // writes shared storage: skipped once the error word is set
    std::vector<Origin> fused;
    std::string title;            // "conv2d + max_pool + relu"
    std::string why;              // why a library computes it, or why a convolution in it is generated
    Int bytes, flops;             // moved and computed, for the report
    std::vector<StepPart> parts;  // the flops by what they are for
    std::vector<NodePtr> nodes;   // what it computes, where the target asks for readable text
};

// Every buffer of a step, one as often as the step names it. First those of its own: operands, result, then
// the bias or the workspace; then those of a product's epilogue and of the kernels that make pieces of a and
// of b.
std::vector<int> buffers_of(const Step& step);
// What a library's call, a routine or a copy computes. A kernel tells by itself what it writes.
std::optional<int> result_of(const Step& step);
// The generated kernel that computes results of the step, if any: that of a kernel's step, or an epilogue.
const KernelLaunch* kernel_of(const Step& step);

struct Region {
    std::vector<Step> steps;
};

struct Program {
    static constexpr int version = 6;
    std::string name;
    std::string target;  // architecture
    std::vector<SizeSource> size_sources;
    std::vector<LengthCheck> length_checks;
    std::vector<Type> inputs;
    std::vector<SharedPtr> shared;
    std::vector<int> updated;  // which of them the body writes
    std::vector<Array> constants;
    std::vector<BufferInfo> buffers;
    std::vector<KernelText> kernels;
    std::string prelude;  // CPU helper text that every kernel of this program may use
    std::string cuda_prelude;
    Region once;  // depends on unchanged shared variables only: run when their versions change
    Region body;
    std::vector<Type> outputs;
    struct CheckText {
        std::string message;
    };  // prefix of the IndexError of check number i
    std::vector<CheckText> checks;
    Nodes drawn;  // roots of the graph that the steps compute, where the target asks for readable text
    std::set<std::string> held_back;  // rules that would have applied but for math=strict, for the report
};

// When an arena buffer is in use: steps are counted through `once` and then the body. What `once` writes and
// the body reads is kept, for all calls.
struct Lifetime {
    int buffer = 0, first = 0, last = 0;
    std::int64_t bytes = 0;  // that it takes: 64-byte aligned, with 64 bytes of tail
};
// Of the arena buffers that some step uses, for given values of the symbols.
std::vector<Lifetime> arena_lifetimes(const Program& program,
                                      const std::map<std::uint64_t, std::int64_t>& values);

// Offsets of the arena buffers (-1 for the others) for given values of the symbols, 64-byte aligned; those
// whose lifetimes overlap do not overlap. What is kept comes first. Work as n log n for n buffers, and a
// bounded amount beside it.
struct Placement {
    std::vector<std::int64_t> offsets;
    std::int64_t bytes = 0;
    std::int64_t least_bytes = 0;  // the most that lives at one step: no placement takes less
    int fullest_step = 0;          // that step
};
Placement plan_arena(const Program& program, const std::map<std::uint64_t, std::int64_t>& values);

}  // namespace bitale
