// Evaluation of one step and its commit.
#include "runtime/reference/reference_device.h"

#include <fmt/format.h>

#include <cstring>
#include <list>

#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "ops/oracle/typed.h"
#include "ops/oracle/wide.h"
#include "runtime/exec/call_states.h"
#include "runtime/exec/int_table.h"
#include "runtime/exec/stacked.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

namespace {

// One call at a time.
class Interpretation {
  public:
    Interpretation(const Build& build, bool wide)
        : wide_(wide),
          graph_(build.plain),
          arguments_(build.signature),
          table_(arguments_.symbol_ids()),
          checks_(build.signature.checks, arguments_.symbol_ids(), build.signature, table_),
          data_(graph_->inputs.size()),
          symbols_(arguments_.symbols()) {
        for (const NodePtr& output : graph_->outputs)
            for (const Int& length : output->type.shape) lengths_.push_back(table_.add(length));
        slots_.resize(table_.slots());
        roots_ = graph_->outputs;
        for (const SharedUpdate& u : graph_->updates) roots_.push_back(u.value);
        for (const NodePtr& node : topological(roots_))
            if (shared_of(node)) shared_.push_back(node);
    }

    std::vector<Array> run(std::span<const Array> arguments) {
        arguments_.bind(arguments, symbols_.data(), data_.data());
        table_.evaluate(symbols_.data(), slots_.data());
        checks_.verify(symbols_.data(), slots_.data());
        std::unordered_map<const Node*, Array> leaves;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const NodePtr& input = graph_->inputs[i];
            leaves.emplace(input.get(), arguments[i].as(input->type.dtype));
        }
        // Also the shared variables: their locks are held by the call.
        for (const NodePtr& node : shared_) leaves.emplace(node.get(), shared_of(node)->value);
        std::vector<Array> values = wide_ ? rounded(evaluate_wide(roots_, leaves)) : evaluate(roots_, leaves);
        const auto outputs = static_cast<std::ptrdiff_t>(graph_->outputs.size());
        std::vector<Array> results(values.begin(), values.begin() + outputs);
        std::list<Array> updates(values.begin() + outputs, values.end());
        // Everything is computed and checked: now the new values take effect together.
        for (const SharedUpdate& update : graph_->updates) {
            update.target->take_value(updates);
            ++update.target->version;
        }
        return results;
    }

    std::vector<Array> loop(const LoopCall& call) {
        std::vector<Array> arguments(call.arguments.begin(), call.arguments.end());
        std::vector<std::vector<Array>> steps;
        const auto step = [&](std::int64_t, std::int64_t value) {
            const Array number(value);
            arguments[0] = number;
            steps.push_back(run(arguments));
        };
        for_each_step(call, step, [&] { call.lock->let_others(); });
        return steps.empty() ? of_no_step(call.arguments) : stacked(steps);
    }

  private:
    // Of no step, the lengths of its results by the graph.
    std::vector<Array> of_no_step(std::span<const Array> arguments) {
        arguments_.bind(arguments, symbols_.data(), data_.data());
        table_.evaluate(symbols_.data(), slots_.data());
        std::vector<Array> results;
        auto length = lengths_.begin();
        for (const NodePtr& output : graph_->outputs) {
            Dims dims(1, 0);
            for (int axis = 0; axis < output->type.rank(); ++axis)
                dims.push_back(slots_[static_cast<std::size_t>(*length++)]);
            results.push_back(pooled_array(output->type.dtype, dims));
        }
        return results;
    }

    bool wide_;
    std::shared_ptr<const Graph> graph_;
    Arguments arguments_;
    IntTable table_;
    LengthChecks checks_;
    std::vector<const void*> data_;
    std::vector<int> lengths_;  // slots of the outputs' lengths
    std::vector<std::int64_t> symbols_, slots_;
    Nodes roots_, shared_;
};

class Interpreter : public Executable {
  public:
    Interpreter(Build build, bool wide)
        : states_(
              [build = std::move(build), wide] { return std::make_unique<Interpretation>(build, wide); }) {}

    std::vector<Array> run(std::span<const Array> arguments) override {
        const CallStates<Interpretation>::Claim state(states_);
        return state->run(arguments);
    }
    std::vector<Array> loop(const LoopCall& call) override {
        const CallStates<Interpretation>::Claim state(states_);
        return state->loop(call);
    }

  private:
    CallStates<Interpretation> states_;
};

class ReferenceDevice : public Device {
  public:
    explicit ReferenceDevice(bool wide)
        : Device(wide ? "reference=wide" : "reference", Calls::at_once), wide_(wide) {}
    std::optional<Target> target() override { return std::nullopt; }
    std::unique_ptr<Executable> prepare(Build build) override {
        return std::make_unique<Interpreter>(std::move(build), wide_);
    }
    Timing timing() override { return {"", "graphs are evaluated as they are"}; }
    std::string summary() override {
        return wide_ ? "evaluates graphs as they are, in long double throughout"
                     : "evaluates graphs as they are, each value rounded to its dtype, without a compiler";
    }

  private:
    bool wide_;
};

}  // namespace

std::unique_ptr<Executable> interpret(Build build) {
    return std::make_unique<Interpreter>(std::move(build), false);
}

std::unique_ptr<Device> make_reference_device(bool wide) { return std::make_unique<ReferenceDevice>(wide); }

}  // namespace bitale
