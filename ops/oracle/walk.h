// The walk of an evaluation: values of nodes, operands first, each forgotten after its last use.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

// Evaluates nodes with known lengths on top of values that are known already. `Value` is cheap to copy.
template <class Value>
class EvaluationWalk {
  public:
    using Values = std::unordered_map<const Node*, Value>;
    // The value of a node, of which those of the operands are known.
    using Compute = std::function<Value(const NodePtr& node, const std::vector<Value>& operands)>;

    explicit EvaluationWalk(Compute compute) : compute_(std::move(compute)) {}

    std::vector<Value> run(const Nodes& roots, Values known = {}) {
        Values values = std::move(known);
        const Nodes order = unknown_below(roots, values);
        std::unordered_map<const Node*, std::size_t> uses;
        for (const NodePtr& node : order)
            for (const NodePtr& input : node->inputs) ++uses[input.get()];
        for (const NodePtr& root : roots) ++uses[root.get()];
        std::vector<Value> operands;
        for (const NodePtr& node : order) {
            operands.clear();
            for (const NodePtr& input : node->inputs) operands.push_back(values.at(input.get()));
            values.emplace(node.get(), compute_(node, operands));
            for (const NodePtr& input : node->inputs)
                if (--uses[input.get()] == 0) values.erase(input.get());
        }
        std::vector<Value> results;
        for (const NodePtr& root : roots) results.push_back(values.at(root.get()));
        return results;
    }

    // What is computed from the operands of a node alone.
    Value run_on_operands(const NodePtr& root, const Node& node, const std::vector<Value>& operands) {
        Values known;
        for (std::size_t i = 0; i < operands.size(); ++i) known.emplace(node.inputs[i].get(), operands[i]);
        return run({root}, std::move(known))[0];
    }

  private:
    // The nodes to compute, operands first; known ones are not looked through.
    static Nodes unknown_below(const Nodes& roots, const Values& known) {
        Nodes order;
        std::unordered_map<const Node*, bool> seen;
        std::vector<std::pair<NodePtr, std::size_t>> stack;
        const auto visit = [&](const NodePtr& node) {
            if (!known.contains(node.get()) && seen.emplace(node.get(), true).second)
                stack.emplace_back(node, 0);
        };
        for (const NodePtr& root : roots) {
            visit(root);
            while (!stack.empty()) {
                auto& [node, next] = stack.back();
                if (next < node->inputs.size()) {
                    const NodePtr input = node->inputs[next++];
                    visit(input);
                } else {
                    order.push_back(std::move(node));
                    stack.pop_back();
                }
            }
        }
        return order;
    }

    Compute compute_;
};

}  // namespace bitale
