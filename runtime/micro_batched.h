// A function whose batch is computed part by part: FunctionOptions::micro_batch.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/split/micro_batches.h"
#include "graph/base/turns.h"
#include "ops/autodiff/recompute.h"
#include "runtime/exec/call_state.h"
#include "runtime/exec/device.h"
#include "runtime/exec/int_table.h"
#include "runtime/memory/limit.h"
#include "runtime/state.h"

namespace bitale {

// The request's graph with the variables that givens replace, but for scalars, as further inputs, and what
// replaces them as further outputs; null where there are none. `plain`: the graph with all
// givens replaced.
std::shared_ptr<const Graph> graph_before_givens(const std::vector<Input>& inputs,
                                                 const std::vector<Expr>& outputs,
                                                 const FunctionOptions& options, const Graph& plain,
                                                 Where where);

class MicroBatched : public Executable {
  public:
    // Plans the passes and what follows them. `rows` of a part, which are compiled then; 0: as many as the
    // function's memory_limit and the device's let be. `how`: what the gradients of each part compute again.
    // The function outlives this. Throws GraphError, CompileError.
    MicroBatched(const Function::State& function, std::int64_t rows, std::optional<Recomputation> how = {});
    // Compiles what has only been planned, before the first call. Of one thread at a time.
    void prepare();
    bool is_prepared() const { return is_prepared_.load(); }
    // Throws MemoryRefusal where no number of rows fits the limits; before prepare(), which takes memory for
    // totals. With the lock of a call, and without the arenas of other ways.
    void require_room(const std::vector<std::int64_t>& symbols, std::int64_t steps);

    std::vector<Array> run(std::span<const Array> arguments) override;
    std::vector<Array> loop(const LoopCall& call) override;
    void drop_arena() override;
    // Between calls, so that other functions have the room that a device's limit leaves.
    void drop_totals();
    std::int64_t arena_bytes() const override;
    std::vector<std::int64_t> last_symbols() const override { return last_symbols_.get(); }
    int compiler_runs() const override;
    std::vector<Profile::Row> profile() const override;
    std::vector<LaunchCounts> counts() const override;

    // The variables of the function, and the totals, which calls write.
    const std::vector<SharedUse>& shared() const { return shared_; }
    const std::shared_ptr<const Graph>& optimised() const { return optimised_; }
    std::string report(Detail detail) const;
    std::vector<Kernel> kernels() const;
    // Of a call with these values of the signature's symbols: the buffers of the part that takes most, and
    // the peak of the whole call. MemoryRefusal where it fits no limit.
    MemoryPlan memory_plan(const std::vector<std::int64_t>& symbols) const;
    // What a call takes in the parts that fit the limit and are the fastest, as estimated; nothing where none
    // do. `room`: for what is not alive yet.
    std::optional<double> predicted_seconds(const std::vector<std::int64_t>& symbols, std::int64_t steps,
                                            std::int64_t limit, std::int64_t room) const;
    // Of a call a row at a time.
    std::int64_t least_bytes(const std::vector<std::int64_t>& symbols, std::int64_t steps) const;
    // The estimate for so many rows at a time.
    double seconds_of(const std::vector<std::int64_t>& symbols, std::int64_t rows) const;
    std::size_t computed_again() const { return computed_again_; }  // values, of all passes
    std::int64_t last_rows() const { return last_rows_.load(); }    // of a part, by the limit; 0: no call yet
    // Whether calls of these sizes have been computed so because of the function's limit: then all are.
    bool has_computed(std::span<const Array> arguments, std::int64_t steps) const;
    // Of the passes and what follows them, those that are there by now; they stay where they are.
    template <class F>
    void for_each_executable(F&& f) const {
        for (const Part& part : passes_)
            if (Executable* executable = part->current.load(std::memory_order_acquire)) f(*executable);
        if (Executable* executable = finale_->current.load(std::memory_order_acquire)) f(*executable);
    }

  private:
    using Part = std::shared_ptr<Function::State>;
    // What a call brings.
    struct Sizes {
        std::vector<std::int64_t> symbols, slots;
        std::int64_t all_rows = 0, argument_bytes = 0;
    };
    // Sizes of the last call, else typical ones, and the rows of a part then.
    struct Expected {
        Sizes sizes;
        std::int64_t rows = 0;
    };
    Expected expected() const;
    // What calls of equal sizes need, which is planned once for each number of rows.
    struct Needs {
        std::vector<std::uint64_t> frames;  // of the parts, for all rows at once
        std::vector<std::int64_t> slots;
        std::int64_t argument_bytes = 0, steps = 0;
        std::vector<std::int64_t> peaks;  // for the numbers of rows in rows_to_try; 0: not known yet
        std::vector<double> seconds;      // likewise, as estimated
        bool has_run = false;
        bool is_of(const Needs& other) const {
            return frames == other.frames && slots == other.slots && steps == other.steps &&
                   argument_bytes == other.argument_bytes;
        }
    };
    Part planned(const Function::State& function, const Graph& graph, const std::string& title,
                 const std::optional<Recomputation>& how);
    // That of the part, or of the function where the part has none yet: both are of one device.
    const Executable& executable_for(const Function::State& part) const;
    // Throws what a call with wrong arguments throws.
    Sizes sizes_of(std::span<const Array> arguments) const;
    Sizes sizes_of(std::vector<std::int64_t> symbols) const;
    Dims shape_of_output(std::size_t output, const Sizes& sizes) const;
    std::vector<Dims> shapes_of_outputs(const Sizes& sizes) const;
    // Of parts that are alike, from all rows at once down to one.
    static std::vector<std::int64_t> rows_to_try(std::int64_t all_rows);
    Needs needs_of(const Sizes& sizes, std::int64_t steps) const;
    // What is known of them by now; or nothing.
    Needs* known(const Needs& needs) const;
    void remember(const Needs& needs) const;
    std::int64_t peak_of(Needs& needs, const Sizes& sizes, std::size_t choice) const;
    // The first choice from `choice` on whose peak is at most `limit`; the number of choices where none is.
    std::size_t first_that_fits(Needs& needs, const Sizes& sizes, std::size_t choice,
                                std::int64_t limit) const;
    // The number of choices where none fits.
    std::size_t fastest_that_fits(Needs& needs, const Sizes& sizes, std::int64_t limit) const;
    double seconds_of(Needs& needs, const Sizes& sizes, std::size_t choice) const;
    // Throws MemoryRefusal with the plan for parts of one row.
    [[noreturn]] void refuse(const Sizes& sizes, std::int64_t steps, std::int64_t device_room) const;
    void list_results(MemoryPlan& plan, const Sizes& sizes, std::int64_t steps) const;
    std::int64_t padding_bytes() const;
    std::int64_t blocks_of_beginnings() const;
    std::int64_t blocks_of_totals() const;  // with what they begin with
    std::int64_t argument_bytes(const Sizes& sizes) const;
    std::int64_t result_bytes(const Sizes& sizes, std::int64_t steps) const;
    std::int64_t outside_bytes(const Sizes& sizes) const;
    void require_own_limit(const Sizes& sizes, std::int64_t steps) const;
    // `results`: bytes that a loop has made room for, of those that plans count.
    std::int64_t room_on_device(const Sizes& sizes, std::int64_t results);
    MemoryPlan plan_of(const Sizes& sizes, std::int64_t rows, std::int64_t steps) const;
    double seconds_of(const Sizes& sizes, std::int64_t rows) const;
    std::vector<std::int64_t> symbols_of_part(const Signature& part, const Sizes& sizes,
                                              std::int64_t rows) const;
    // Of a call, or a step of a loop of so many, with room for `results` bytes of all of them.
    std::vector<Array> run(std::span<const Array> arguments, std::int64_t steps, std::int64_t results);
    std::vector<Array> run_in_parts(std::span<const Array> arguments, const Sizes& sizes, std::int64_t most);
    void begin(std::size_t pass);
    // Arrays of the totals, where there are none, with the lock of the call; and none of them, so that calls
    // in other ways have their room.
    void make_totals();
    void drop_arenas_of_parts();

    const std::int64_t rows_;  // of a part; 0: by the limit
    std::size_t computed_again_ = 0;
    const Function::State& function_;
    const Build build_;  // of the function
    const std::vector<Type> outputs_;
    std::vector<SharedUse> shared_;
    std::shared_ptr<const Graph> optimised_;
    MicroBatches plan_;
    std::vector<Part> passes_;
    Part finale_;
    // Of each total of each pass its type, and one element that it begins with, which is there once prepared.
    struct TotalType {
        DType dtype;
        Dims shape;
    };
    std::vector<std::vector<TotalType>> total_types_;
    std::vector<std::vector<Array>> beginnings_;
    IntTable table_;
    std::unique_ptr<LengthChecks> checks_;
    std::atomic<bool> is_prepared_{false}, has_totals_{false};
    LastSymbols last_symbols_;
    std::atomic<std::int64_t> last_rows_{0};               // of a part, by the limit
    int all_rows_ = 0;                                     // slot of the number of rows
    std::vector<std::vector<int>> lengths_;                // slots of the lengths of the outputs
    std::int64_t total_bytes_ = 0;                         // of all totals
    mutable ForkMutex planning_;                           // guards what follows
    mutable std::vector<std::unique_ptr<Frames>> frames_;  // of the passes, then of the finale
    mutable std::vector<Needs> needs_;
    mutable std::size_t next_needs_ = 0;
};

// What computes calls in parts that fit the function's limit, where one does not at once; made by the first
// who wants it. Throws MemoryRefusal, with `refusal` and the reason, where there can be none.
MicroBatched& parts_for_limit(Function::State& function, const std::string& refusal);
// The same for plans alone, perhaps not compiled yet; null where there can be none.
MicroBatched* planned_parts(Function::State& function);
// How often that goes over the batch; 0 where there can be none. Plans no kernel.
std::size_t passes_over_parts(const Function::State& function);

}  // namespace bitale
