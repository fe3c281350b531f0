// What a Function holds.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "graph/ir/graph.h"
#include "runtime/exec/device.h"
#include "runtime/specialised.h"
#include "runtime/tune/autotuner.h"

namespace bitale {

// A compiled function, or one that is compiled for the lengths of its calls (`specialised`); then each of its
// versions is a compiled one.
struct Function::State {
    std::string name;
    Where where;
    Device* device = nullptr;
    std::shared_ptr<const Graph> plain;      // as the user wrote it, givens replaced
    std::shared_ptr<const Graph> optimised;  // null where graphs are evaluated as they are
    std::shared_ptr<const Program> program;  // likewise
    Signature signature;
    std::vector<InputInfo> inputs;
    std::vector<std::optional<Array>> defaults;
    std::vector<SharedUse> shared;  // all that a call reads or writes, sorted by address
    std::unique_ptr<Executable> executable, executable_before;  // calls may have begun on the latter
    std::atomic<Executable*> current{nullptr};                  // what calls use
    std::unique_ptr<const std::vector<Kernel>> kernels = std::make_unique<const std::vector<Kernel>>();
    double compile_seconds = 0;
    Precision precision = Precision::float32;
    bool profile = false;
    std::int64_t memory_limit = 0;
    DType activations = DType::float32;  // of what is saved for gradients
    bool strict_math = false;            // when it was built
    // With autotune=on. Choices that need the lengths of a call are made at the first one, and for good.
    bool autotune = false;
    TuningNotes tuning;
    std::atomic<bool> waits_for_lengths{false};
    TurnLock waiting;  // held while they are made, and by whoever looks at program, kernels or notes
    std::unique_ptr<const std::vector<Kernel>> kernels_before;  // users may look at them still
    // With FunctionOptions::micro_batch, rows of a part, and the graph with the variables that givens replace
    // as further inputs, what replaces them as further outputs; null where there are none.
    std::int64_t micro_batch = 0;
    std::shared_ptr<const Graph> before_givens;
    // What computes part by part: the executable, with a micro_batch; else made when a call does not fit
    // a limit, under `waiting`, and kept.
    class MicroBatched* parts = nullptr;
    std::unique_ptr<Executable> made_for_limit;
    std::string no_parts;  // why it cannot be made
    // Ways to compute it with values of the forward pass computed again; made and kept likewise.
    std::shared_ptr<class Recomputed> recomputed;
    std::atomic<bool> last_in_parts{false};  // the call that ended last
    std::string lengths;                     // of a version, the lengths that it is for: "x = [n, 1, 28, 28]"
    std::string dump_folder;                 // of BITALE_DUMP, or empty
    std::map<std::string, std::string>
        dumped;  // what machine code of a dump takes, by entry, where it was made

    std::atomic<std::uint64_t> stops{0};           // requests so far
    std::atomic<std::uint64_t> stops_answered{0};  // those that ended a loop
    std::atomic<std::int64_t> steps_done{0};

    // Null where every trailing length is known. Else there is no executable here, but on a device that
    // cannot be called, where no lengths come.
    std::unique_ptr<Specialised> specialised;
    Specialised* version_of = nullptr;
    bool is_compiled() const { return executable != nullptr; }
};

using Numbers = std::map<std::uint64_t, std::int64_t>;  // values of symbols

// From the validated graph to an executable (function.cpp). `numbers`: of the symbols of a call, for choices
// that are measured; none before the first.
void compile(Function::State& state, const Numbers& numbers);
// The same of a state that has its optimised graph: its program, and what runs that.
void compile_optimised(Function::State& state, const Numbers& numbers);
void generate_program(Function::State& state, const Numbers& numbers);
void prepare_program(Function::State& state);

// GraphError for an empty function.
Function::State& used(const std::shared_ptr<Function::State>& state);
int compiler_runs_of(const Function::State& state);
// The program of a compiled state once more, with what the target asks for only where somebody looks at it:
// readable text, the nodes of each step.
Program readable_program(const Function::State& state);

}  // namespace bitale
