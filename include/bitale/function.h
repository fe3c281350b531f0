// function() compiles a graph, and a Function is what it returns.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bitale/counts.h"
#include "bitale/expr.h"
#include "bitale/memory_plan.h"
#include "bitale/precision.h"
#include "bitale/train.h"

#pragma GCC visibility push(default)

namespace bitale {

// Replaces a variable by an expression of the same dtype and rank wherever it occurs. function() throws
// TypeError or ShapeError, with the lines of both, for another dtype or shape. Theano's givens.
struct Given {
    Given(Expr v, Expr r, Where w = Where::current())
        : variable(std::move(v)), replacement(std::move(r)), where(w) {}
    Expr variable, replacement;
    Where where;
};
using Givens = std::vector<Given>;

// An input of a function. With a value, calls may leave it out and then use that value.
struct Input {
    Input(Expr v) : variable(std::move(v)) {}  // NOLINT
    Input(Expr v, Array value) : variable(std::move(v)), by_default(std::move(value)) {}
    Expr variable;
    std::optional<Array> by_default;
};

enum class OnUnused : std::uint8_t { raise, warn, ignore };

struct FunctionOptions {  // write the fields in this order, as C++ requires
    Updates updates{};
    Givens givens{};
    std::string name{};
    std::string device{};  // "cpu", "cuda", "emulator", "reference", "null"; empty: BITALE_FLAGS device=...
    OnUnused on_unused_input = OnUnused::raise;
    bool profile = false;
    Precision precision = Precision::float32;  // of a library's matrix products and convolutions on a GPU
    std::optional<bool> autotune{};  // measure alternatives, keep the fastest; empty: BITALE_FLAGS autotune=
    // true: random streams do not advance, so every call draws the same numbers, unless `updates` has their
    // updates. false: each call advances the streams that the function draws from.
    bool hold_streams = false;
    // true: the first call compiles for the lengths that arrive, except the leading ones, and calls with
    // other lengths compile again. false: function() compiles once, for all lengths; such kernels are slower
    // where the lengths matter. Empty: BITALE_FLAGS specialise=.
    std::optional<bool> specialise{};
    // How many rows of the batch to compute at a time, one part after another, so that intermediate values
    // take only the memory of a part; 0: all at once. The batch is the first axis of an input whose length is
    // unknown, also of a variable in `givens`. If there is none, it is, where that can be split, the known
    // first length of inputs, a known number of rows that are read of a shared variable, or a shared variable
    // that is no parameter. The results are those of the whole batch, except for the order in which sums over
    // its rows are added. Updates take place once, after all parts. Throws GraphError if a value needs all
    // rows at once, such as an order of the rows. Devices that evaluate graphs as they are written ignore
    // this, and autotune does not measure the kernels of parts.
    std::int64_t micro_batch = 0;
    // The most bytes that a call may take, by its memory_plan(): arguments, shared variables, constants,
    // results and all buffers. A call that does not fit computes values for its gradients again instead of
    // keeping them, as with checkpoint(), where a sum of them may be added in another order; or it is
    // computed in parts, as by a micro_batch of the largest number of rows that fits; whichever is predicted
    // to be faster. memory_plan() and report() say which. If neither fits, the call throws OutOfMemory before
    // anything runs, and says why if it cannot be computed in parts. autotune measures no kernels of either.
    // 0: this function has no limit.
    ByteCount memory_limit{};
    // bfloat16 or float16: values of float32 that are saved for gradients take half the bytes. They are
    // rounded when they are saved and widened when a gradient reads them; everything is computed in float32,
    // and what is no gradient has the same bits. Numbers, vectors and outputs stay float32. float16 has no
    // values beyond 65504. The same rounding on every device. Throws TypeError for other dtypes.
    DType activations = float32;
};

// One generated kernel or library call of a function.
struct Kernel {
    std::string name, device, source;
    std::vector<std::string> fused;  // the operations in it: "add at net.cpp:12"
    std::int64_t bytes = 0,
                 flops = 0;  // of one call: the last one, or an upper bound; 0: unknown
    bool by_library = false;
};

// The outputs of a call. A single output converts to a number or an Array implicitly. Results that were moved
// from are empty.
class Results {
  public:
    explicit Results(std::vector<Array> values) : values_(std::move(values)) {}
    std::size_t size() const { return values_.size(); }
    const Array& operator[](std::size_t i) const;   // throws IndexError
    operator Array() const { return (*this)[0]; }   // NOLINT
    operator double() const { return (*this)[0]; }  // NOLINT
    // auto [loss, wrong] = step(0).unpack<2>(). Throws IndexError unless there are N outputs.
    template <std::size_t N>
    std::array<Array, N> unpack() const {
        require(N);
        return [this]<std::size_t... k>(std::index_sequence<k...>) {
            return std::array<Array, N>{values_[k]...};
        }
        (std::make_index_sequence<N>());
    }

  private:
    void require(std::size_t outputs) const;
    std::vector<Array> values_;
};

struct Profile {
    // One generated kernel or library call.
    struct Row {
        std::string kernel;  // what it computes: "conv2d + max_pool + relu"
        std::int64_t calls = 0;
        // Of all calls. On a CPU the first one counts as much as the second one: libraries compile in it.
        double seconds = 0;
        std::string where{};  // the statements that it computes: "dot at net.cpp:12, add at net.cpp:12"
        int number = 0;       // in report()
        std::string name{};   // in kernels() and in a dump: "k_0123456789abcdef", "gemm"
        std::int64_t bytes = 0, flops = 0;  // moved and computed by a call like the last one; 0: unknown
    };
    std::vector<Row> rows;
    // A table, longest time first: share of the total, calls, time of a call, GB/s, GFLOP/s.
    std::string to_string() const;
};

// How much a report says: one screen, or everything.
enum class Detail : std::uint8_t { brief, complete };

// A request to stop that belongs to the caller and outlives calls: loops of any functions may watch it.
// Copies share it. Once made, a request stands until reset(), so none is lost between two loops. request()
// may be called from other threads and from signal handlers. Moving a token copies it: a signal handler can
// throw nothing, so there is no empty token.
class StopToken {
  public:
    StopToken() : requested_(std::make_shared<std::atomic<bool>>(false)) {}
    StopToken(const StopToken&) = default;
    StopToken& operator=(const StopToken&) = default;
    void request() const noexcept { requested_->store(true, std::memory_order_relaxed); }
    bool requested() const noexcept { return requested_->load(std::memory_order_relaxed); }
    void reset() const noexcept { requested_->store(false, std::memory_order_relaxed); }

  private:
    static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may not wait");
    std::shared_ptr<std::atomic<bool>> requested_;
};

// How far a loop has come.
struct Progress {
    std::int64_t done = 0, steps = 0;
    double seconds = 0, seconds_left = 0;  // since the loop began; until its end, at the same rate
    const Results* part = nullptr;         // the outputs of the steps since the last report, stacked
    // "1200 of 4680 steps, 0.3125, 850 steps/s, 4 s left". The second number is the mean of the first output
    // since the last report, if there is one.
    std::string text() const;
};
// For LoopOptions::on_progress: prints the text on stderr. On a terminal it overwrites the previous one,
// elsewhere each report is a line.
void print_progress(const Progress& progress);

struct LoopOptions {
    std::int64_t every = 0;  // steps between two reports; 0: one report, at the end
    std::function<void(const Progress&)> on_progress{};  // may save variables; what it throws ends the loop
    std::optional<StopToken> stop{};
};

// A compiled function.
//
// If a trailing length of an input is unknown, the first call compiles the function for the trailing lengths
// that arrive, whatever the leading ones are, as if the inputs had been declared so. Calls with other
// trailing lengths compile again. The sixteen versions used last are kept. FunctionOptions::specialise turns
// this off.
//
// A function may be called from several threads at once. On cpu and reference, calls that read the same
// shared variables run in parallel, and give the bits that they give alone. A call that writes a variable has
// it to itself for one step: a loop lets other calls run between its steps, so get_value() and set_value()
// wait for a step, not for a loop. On a GPU, steps of all functions take turns. A fork of the process waits
// for the current steps. The child can call its functions on cpu; a GPU that the parent has used is a
// DeviceError there. Copies are the same function. A Function that was made without a graph, or moved from,
// is empty: every use of it throws GraphError.
class Function {
  public:
    Function() = default;

    // Calls the function with arguments in the order of the inputs; trailing inputs with default values may
    // be left out. Each argument has the dtype of its input, except that a number converts to it if it fits.
    // Throws TypeError, ShapeError, IndexError (a label or row out of range), DeviceError, OutOfMemory and,
    // if the call compiles for new lengths, CompileError. If a call throws, every shared variable keeps its
    // value.
    template <class... A>
    requires(std::is_convertible_v<A, Array>&&...) Results operator()(A&&... arguments) {
        try {
            const std::array<Array, sizeof...(A)> list{Array(std::forward<A>(arguments))...};
            return call(list);
        } catch (const std::bad_alloc&) {
            no_memory();
        }
    }
    Results call(std::span<const Array> arguments);

    // Calls the function with first, first + 1, ... last - 1 (or with each of the indices) as its first
    // input, without returning to the host between the steps, and stacks the values of output k as [steps,
    // ...]. Stops early, with fewer steps, if request_stop() is called from another thread or a signal
    // handler, or if `stop` is requested. Throws GraphError unless the first input is an integer scalar and
    // all others have defaults, and if there are more steps than an int64 counts. If a step fails, the
    // message names it, and variables are as after the step before.
    Results loop(std::int64_t first, std::int64_t last);
    Results loop(std::int64_t first, std::int64_t last, const StopToken& stop);
    // The same, with reports: returns to the host after every `every` steps and calls `on_progress`. Throws
    // Error for a negative `every`.
    //     step.loop(0, steps, {.every = 100, .on_progress = print_progress});
    Results loop(std::int64_t first, std::int64_t last, const LoopOptions& options);
    Results loop(std::span<const std::int64_t> indices);
    Results loop(std::span<const std::int64_t> indices, const StopToken& stop);
    // Ends this function's loops after the current step, or a few later on a GPU. If none is running, the
    // next one ends before its first step: a request stands until it has ended a loop.
    void request_stop();
    std::int64_t steps_done() const;  // of the running or last loop; if several run, of one of them

    const std::string& name() const;
    // The kernels of the version called last. Throws GraphError if there is no version yet, and names the
    // lengths that are unknown. The list is unchanged for the life of the function.
    const std::vector<Kernel>& kernels() const;
    // A report on the version called last. In brief, on one screen: the kernels by their share of the time,
    // with what they read and write; the lines of the program that cost most; every stored buffer with the
    // reason. Times are measured if FunctionOptions::profile is set, otherwise estimated. Before the first
    // call the report says which lengths are unknown. Detail::complete: every kernel with all that is fused
    // in it and how it is scheduled, and every buffer, check and length.
    std::string report(Detail detail = Detail::brief) const;
    // The same for the version for calls with these shapes. It is compiled if needed, and kept as if it had
    // been called. Inputs that are left out have the shapes of their defaults. Throws GraphError if a shape
    // is missing or belongs to no input, ShapeError if no call can have these shapes, and CompileError.
    std::string report(const ExampleShapes& shapes, Detail detail = Detail::brief) const;
    std::vector<Kernel> kernels(const ExampleShapes& shapes) const;
    Profile profile() const;  // empty unless FunctionOptions::profile is set; of all versions that are kept
    // What the kernels of the version called last asked of memory, in all calls so far; empty unless the
    // device is `emulator`, and the function was made and called with BITALE_FLAGS=emulator=counted.
    KernelCounts counts() const;
    // Bytes of the arena for the largest shapes so far, by whichever way calls were computed, plus the bytes
    // of the shared variables that are used. memory_plan().peak_bytes has all that a call holds. Calls on cpu
    // that overlap have an arena each, and so have versions for other trailing lengths: the sum of all.
    std::int64_t peak_bytes() const;
    // Where the memory of a call goes, before the call. Unknown lengths are taken from `lengths`, otherwise
    // from the last call. Integer scalars, such as the number of a minibatch, have the value of the last call
    // or 0, whichever takes more memory. Throws GraphError, naming every input whose lengths are missing, and
    // for an example of what is no input; ShapeError as a call with arguments of these shapes would.
    MemoryPlan memory_plan(const ExampleShapes& lengths = {}) const;
    double compile_seconds() const;  // in function() and in calls, so far
    int compiler_runs() const;       // processes of the host compiler that they started

    struct State;
    explicit Function(std::shared_ptr<State> state) : state_(std::move(state)) {}
    const State& state() const;

  private:
    [[noreturn]] static void no_memory();
    std::shared_ptr<State> state_;
};

// Compiles a function of inputs. Theano's function. Throws GraphError (missing, unused or duplicate inputs;
// duplicate updates or givens), TypeError and ShapeError (updates, givens, defaults), CompileError,
// DeviceError.
Function function(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                  FunctionOptions options = {}, Where where = Where::current());
Function function(const std::vector<Input>& inputs, const Expr& output, FunctionOptions options = {},
                  Where where = Where::current());
// This overload is chosen by braces around the outputs; {} means none.
Function function(const std::vector<Input>& inputs, std::initializer_list<Expr> outputs,
                  FunctionOptions options = {}, Where where = Where::current());
// Compiles and calls at once: the value of x for the given values of its inputs. Theano's eval. Throws as
// function() and calls do.
Array eval(const Expr& x, const std::vector<std::pair<Expr, Array>>& inputs = {},
           Where where = Where::current());

// The graph of x as an indented tree with types and lines. Theano's debugprint.
std::string debugprint(const Expr& x);
// The optimised graph of the version called last. Before the first call: a line that names the unknown
// lengths, and the graph as it was written.
std::string debugprint(const Function& f);
std::string debugprint(const Function& f, const ExampleShapes& shapes);  // as Function::report

// The optimised graph as text for the program `dot` of Graphviz: a box for each node, and a frame around the
// nodes of each kernel with its number in the report. Theano's pydotprint. If the lengths are unknown and the
// function was not called yet, the graph as it was written, without kernels.
std::string graphviz(const Function& f);
std::string graphviz(const Expr& x);
// The same as SVG. Throws Error if Graphviz is not installed, and says how to get it, or if it takes longer
// than a minute, as it does for a thousand nodes.
std::string graph_svg(const Function& f);
std::string graph_svg(const Expr& x);

}  // namespace bitale

#pragma GCC visibility pop
