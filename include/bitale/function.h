// function: compiles a graph; Function: the compiled thing.
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

#include "bitale/expr.h"
#include "bitale/memory_plan.h"
#include "bitale/precision.h"
#include "bitale/train.h"

#pragma GCC visibility push(default)

namespace bitale {

// An expression that stands wherever a variable stood, of the same dtype and rank (TypeError, ShapeError,
// with the lines of both).
struct Given {
    Given(Expr v, Expr r, Where w = Where::current())
        : variable(std::move(v)), replacement(std::move(r)), where(w) {}
    Expr variable, replacement;
    Where where;
};
using Givens = std::vector<Given>;

// An input of a function, with the value that it has when a call leaves it out.
struct Input {
    Input(Expr v) : variable(std::move(v)) {}  // NOLINT
    Input(Expr v, Array value) : variable(std::move(v)), by_default(std::move(value)) {}
    Expr variable;
    std::optional<Array> by_default;
};

enum class OnUnused : std::uint8_t { raise, warn, ignore };

struct FunctionOptions {  // write the fields in this order: C++ demands it
    Updates updates{};
    Givens givens{};
    std::string name{};
    std::string device{};  // "cpu", "cuda", "emulator", "reference", "null"; empty: BITALE_FLAGS device=...
    OnUnused on_unused_input = OnUnused::raise;
    bool profile = false;
    Precision precision = Precision::float32;  // of matrix products and convolutions by libraries on a GPU
    std::optional<bool> autotune{};  // measure choices and remember them; empty: BITALE_FLAGS autotune=
    // Random streams stay where they are, so that every call draws the same numbers, unless `updates` has
    // their updates. Without it, each call moves the streams on that the function draws from.
    bool hold_streams = false;
    // Compile at the first call for the lengths that arrive, all but the leading ones, and anew for others;
    // false: once, for all lengths, which is slower where they matter. Empty: BITALE_FLAGS specialise=.
    std::optional<bool> specialise{};
    // Rows of the batch that are computed at a time, a part after another, so that intermediate values take
    // the memory of a part; 0: all at once. The batch is the first axis of an input whose length is unknown,
    // of a variable in `givens` too; else, where that can be split, of inputs of one known first length, of
    // rows of a known number that are read of a shared variable, or of a shared variable that is no
    // parameter. Results are those of the whole batch, but for the order in which sums over its rows are
    // added; updates take place once, after all parts. Throws GraphError where a value needs all rows at
    // once, as an order of the rows does. Devices that evaluate graphs as they are take no notice, and
    // autotune measures nothing of the parts.
    std::int64_t micro_batch = 0;
    // The most that a call may take, by its memory_plan(): arguments, shared variables, constants, results,
    // and all buffers. A call that does not fit at once is computed in parts, as with a micro_batch of the
    // most rows that fit; what does not fit so either is OutOfMemory before anything runs. Where parts cannot
    // be, the error says why. 0: no limit of its own.
    ByteCount memory_limit{};
};

// One generated kernel or library call of a function.
struct Kernel {
    std::string name, device, source;
    std::vector<std::string> fused;  // what was fused in it: "add at net.cpp:12"
    std::int64_t bytes = 0,
                 flops = 0;  // with symbolic lengths at their upper bounds or last call; 0 if unknown
    bool by_library = false;
};

// The outputs of a call. A single one converts to a number or an Array by itself. Results that were moved
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
        std::string kernel;  // what it computes: "conv + max_pool + relu"
        std::int64_t calls = 0;
        double seconds = 0;
        std::string where{};  // what it computes of the user's text: "dot at net.cpp:12, add at net.cpp:12"
        int number = 0;       // in report()
        std::string name{};   // in kernels() and in a dump: "k_0123456789abcdef", "gemm"
        std::int64_t bytes = 0, flops = 0;  // moved and computed by a call as the last one was; 0: unknown
    };
    std::vector<Row> rows;
    // A table, the most seconds first: share, calls, time of a call, GB/s, GFLOP/s.
    std::string to_string() const;
};

// How much a report says: one screen, or everything there is.
enum class Detail : std::uint8_t { brief, complete };

// A wish to stop that outlives calls and belongs to the caller: any loops of any functions may watch it.
// Copies share it. Once requested it stays so until reset(), so that no request is lost between two loops.
// request() may be called from other threads and from signal handlers.
// Moving one copies it: there is no empty token, for in a signal handler nothing can be thrown.
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
    double seconds = 0, seconds_left = 0;  // since the loop began; to its end, if it goes on so
    const Results* part = nullptr;         // the outputs of the steps since the report before, stacked
    // "1200 of 4680 steps, 0.3125, 850 steps/s, 4 s left": the number is the mean of the first output's part,
    // where there is one.
    std::string text() const;
};
// For LoopOptions::on_progress: prints the text on stderr. On a terminal it replaces the one before,
// elsewhere each is a line.
void print_progress(const Progress& progress);

struct LoopOptions {
    std::int64_t every = 0;                              // steps between reports; 0: one report, at the end
    std::function<void(const Progress&)> on_progress{};  // may save variables; what it throws ends the loop
    std::optional<StopToken> stop{};
};

// Where a trailing length of an input is not known, the first call compiles the function for the trailing
// lengths that arrive, whatever the leading ones, as if its inputs had been declared so; later calls compile
// for other ones. The sixteen versions that were used last are kept. FunctionOptions::specialise turns it
// off.
//
// May be called from several threads at once. On cpu and reference, calls that read the same shared variables
// run side by side, and have the bits that they have alone; calls that write a variable have it alone, for
// one step: a loop lets others go on between its steps, and get_value() and set_value() wait for a step, not
// for a loop. On a GPU, steps of all functions take turns. A fork of the process waits for the steps at hand;
// the child can call what it had on cpu, and a GPU that its parent used is a DeviceError. Copies are the same
// function; one that was made without a graph, or moved from, is empty: every use of it throws GraphError.
class Function {
  public:
    Function() = default;

    // Arguments in the order of the inputs; trailing inputs with defaults may be left out. Exact dtypes,
    // except that a number converts to the input's dtype when it fits. Throws TypeError, ShapeError,
    // IndexError (a label or row out of range), DeviceError, OutOfMemory, and CompileError where the call
    // compiles for new lengths; whenever a call throws, every shared variable keeps its value.
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

    // Calls the function with its first input = first .. last - 1 (resp. the values of indices) without
    // returning to the host between steps, and stacks output k's values as [steps, ...]. Stops early, with
    // fewer steps, when request_stop() is called from another thread or a signal handler, or when `stop` is
    // requested. Throws GraphError unless the function has exactly one integer scalar input (others need
    // defaults), or where there are more steps than an int64 counts; a failing step is named in the message,
    // the state is that of the last good step.
    Results loop(std::int64_t first, std::int64_t last);
    Results loop(std::int64_t first, std::int64_t last, const StopToken& stop);
    // Returns to the host after every so many steps and reports. Error for a negative `every`.
    //     step.loop(0, steps, {.every = 100, .on_progress = print_progress});
    Results loop(std::int64_t first, std::int64_t last, const LoopOptions& options);
    Results loop(std::span<const std::int64_t> indices);
    Results loop(std::span<const std::int64_t> indices, const StopToken& stop);
    // Ends this function's loops after the step at hand. Where none runs, the next one ends before its first
    // step: a request counts until a loop has ended by it.
    void request_stop();
    std::int64_t steps_done() const;  // of the running or last loop; where several run, of any of them

    const std::string& name() const;
    // Of the version that was called last. Throws GraphError before there is one, naming the lengths that are
    // not known. The list stays as it is while the function lives.
    const std::vector<Kernel>& kernels() const;
    // Of the version that was called last, on one screen: the kernels by their share of the time, which is
    // measured where FunctionOptions::profile is set and else estimated, with what they read and write; the
    // lines of the program that cost most; every stored buffer with the reason. Before the first call, which
    // lengths are not known. Detail::complete: every kernel with all that was fused in it and how it is
    // scheduled, every buffer, check and length.
    std::string report(Detail detail = Detail::brief) const;
    // The same of the version for calls with these shapes, which is compiled where it is not there, and kept
    // as one that was called. Inputs that are left out have the shapes of their defaults. Throws GraphError
    // where a shape is missing or is of no input, ShapeError where no call can have them, CompileError.
    std::string report(const ExampleShapes& shapes, Detail detail = Detail::brief) const;
    std::vector<Kernel> kernels(const ExampleShapes& shapes) const;
    Profile profile() const;  // filled when FunctionOptions::profile is set; of all versions that are kept
    // Bytes of the arena for the largest shapes seen; bytes of shared variables used. Calls on cpu that run
    // at once have an arena each, and so have versions for other trailing lengths: then of all together.
    std::int64_t peak_bytes() const;
    // Where the memory of a call goes, before there is one. Lengths that are not known are those of
    // `lengths`, else those of the last call; of integer scalars, such as the number of a minibatch, the last
    // call's value or 0, whichever takes more.
    // Throws GraphError naming each input whose lengths are missing, or an example of what is no input;
    // ShapeError as a call with arguments of such shapes would.
    MemoryPlan memory_plan(const ExampleShapes& lengths = {}) const;
    double compile_seconds() const;  // of function() and of calls, so far
    int compiler_runs() const;       // host compiler processes that these started

    struct State;
    explicit Function(std::shared_ptr<State> state) : state_(std::move(state)) {}
    const State& state() const;

  private:
    [[noreturn]] static void no_memory();
    std::shared_ptr<State> state_;
};

// Compiles a function of inputs. Throws GraphError (missing, unused or duplicate inputs; duplicate updates or
// givens), TypeError and ShapeError (updates, givens, defaults), CompileError, DeviceError.
Function function(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                  FunctionOptions options = {}, Where where = Where::current());
Function function(const std::vector<Input>& inputs, const Expr& output, FunctionOptions options = {},
                  Where where = Where::current());
// Chosen by braces around the outputs; an empty pair means none.
Function function(const std::vector<Input>& inputs, std::initializer_list<Expr> outputs,
                  FunctionOptions options = {}, Where where = Where::current());
// Compiles and calls in one: the value of x for given values of its inputs.
Array eval(const Expr& x, const std::vector<std::pair<Expr, Array>>& inputs = {},
           Where where = Where::current());

// The graph below x as an indented tree with types and lines, as Theano's debugprint.
std::string debugprint(const Expr& x);
// The optimised graph of the version that was called last; before the first call the graph as it is written,
// after a line that names the lengths that are not known.
std::string debugprint(const Function& f);
std::string debugprint(const Function& f, const ExampleShapes& shapes);  // as Function::report

// The optimised graph as text for the program `dot` of Graphviz, as Theano's pydotprint: a box for each node,
// those of one kernel in one frame with the number that the report gives it. Of a function that was not
// called yet and whose lengths are not known, the graph as it is written, without kernels.
std::string graphviz(const Function& f);
std::string graphviz(const Expr& x);
// The same as SVG. Throws Error where Graphviz is not installed, saying how to get it, or where it takes
// longer than a minute, as it does for a thousand nodes.
std::string graph_svg(const Function& f);
std::string graph_svg(const Expr& x);

}  // namespace bitale

#pragma GCC visibility pop
