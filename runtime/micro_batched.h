// A function whose batch is computed part by part: FunctionOptions::micro_batch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/split/micro_batches.h"
#include "runtime/exec/device.h"
#include "runtime/exec/int_table.h"
#include "runtime/state.h"

namespace bitale {

// The request's graph with the variables that givens replace, where their first length is unknown, as further
// inputs, and what replaces them as further outputs; null where there are none. `plain`: the graph with all
// givens replaced.
std::shared_ptr<const Graph> graph_before_givens(const std::vector<Input>& inputs,
                                                 const std::vector<Expr>& outputs,
                                                 const FunctionOptions& options, const Graph& plain,
                                                 Where where);

class MicroBatched : public Executable {
  public:
    // Compiles the passes and what follows them; the totals become shared variables of the function, which
    // its calls write. Throws GraphError, CompileError.
    explicit MicroBatched(Function::State& function);

    std::vector<Array> run(std::span<const Array> arguments) override;
    std::vector<Array> loop(const LoopCall& call) override;
    std::int64_t arena_bytes() const override;
    int compiler_runs() const override;
    std::vector<Profile::Row> profile() const override;

    std::string report() const;
    std::vector<Kernel> kernels() const;

  private:
    using Part = std::shared_ptr<Function::State>;
    Part compiled(const Function::State& function, const Graph& graph, const std::string& title) const;
    // The number of rows; throws what a call with wrong arguments throws. `slots`: of the table.
    std::int64_t rows_of(std::span<const Array> arguments, std::vector<std::int64_t>& slots) const;
    std::vector<Array> of_no_step(std::span<const Array> arguments) const;

    const std::int64_t rows_;  // of a part
    const Signature signature_;
    const std::vector<Type> outputs_;
    MicroBatches plan_;
    std::vector<Part> passes_;
    Part finale_;
    std::vector<std::vector<Array>> beginnings_;  // of the totals of each pass
    IntTable table_;
    std::unique_ptr<LengthChecks> checks_;
    int all_rows_ = 0;          // slot of the number of rows
    std::vector<int> lengths_;  // slots of the lengths of the outputs
};

}  // namespace bitale
