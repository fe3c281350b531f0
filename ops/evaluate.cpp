// The oracle.
#include "ops/evaluate.h"

#include <utility>

#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

// How the oracle holds a value: every float as float64.
Array widened(const Array& x) { return is_float(x.dtype()) ? x.as(DType::float64) : x; }

Array current_value(const SharedPtr& shared) {
    const std::lock_guard lock(shared->mutex);
    shared->bring_home();
    return shared->value;
}

// Evaluates nodes with known lengths on top of values that are known already. Shared variables are read once,
// by whoever owns the outermost evaluation.
class Evaluator {
  public:
    using Values = std::unordered_map<const Node*, Array>;

    explicit Evaluator(Values known) : values_(std::move(known)) {}

    std::vector<Array> run(const Nodes& roots) {
        const Nodes order = unknown_below(roots);
        std::unordered_map<const Node*, std::size_t> uses;
        for (const NodePtr& node : order)
            for (const NodePtr& input : node->inputs) ++uses[input.get()];
        for (const NodePtr& root : roots) ++uses[root.get()];
        for (const NodePtr& node : order) {
            values_.emplace(node.get(), value_of(node));
            for (const NodePtr& input : node->inputs)
                if (--uses[input.get()] == 0) values_.erase(input.get());
        }
        std::vector<Array> results;
        for (const NodePtr& root : roots) results.push_back(values_.at(root.get()));
        return results;
    }

  private:
    // The nodes to compute, operands first; known ones are not looked through.
    Nodes unknown_below(const Nodes& roots) const {
        Nodes order;
        std::unordered_map<const Node*, bool> seen;
        std::vector<std::pair<NodePtr, std::size_t>> stack;
        const auto visit = [&](const NodePtr& node) {
            if (!values_.contains(node.get()) && seen.emplace(node.get(), true).second)
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

    Values operands_of(const Node& node) const {
        Values known;
        for (const NodePtr& input : node.inputs) known.emplace(input.get(), values_.at(input.get()));
        return known;
    }

    Array value_of(const NodePtr& node) {
        const Op& op = *node->op;
        if (is_constant(node)) return widened(constant_value(node));
        if (const SharedPtr shared = shared_of(node)) return widened(current_value(shared));
        BITALE_CHECK(op.kind != OpKind::leaf, "an input without a value: " + describe(*node));
        if (op.checks)
            for (const Check& check : op.checks(*node)) require(check, *node);
        if (!op.evaluate) {
            BITALE_CHECK(op.decompose, op.name + " can be neither evaluated nor decomposed");
            return Evaluator(operands_of(*node)).run({op.decompose(node)})[0];
        }
        std::vector<Array> inputs;
        for (const NodePtr& input : node->inputs) inputs.push_back(values_.at(input.get()));
        Array value = op.evaluate(*node, inputs);
        const DType wide = is_float(node->type.dtype) ? DType::float64 : node->type.dtype;
        BITALE_CHECK(value.dtype() == wide && shape_of(value.shape()) == node->type.shape,
                     "the evaluation of " + describe(*node) + " gave " + std::string(name_of(value.dtype())) +
                         " " + text_of(value.shape()));
        return value;
    }

    void require(const Check& check, const Node& node) const {
        const Array value = Evaluator(operands_of(node)).run({check.value})[0];
        const std::int64_t low = check.low.constant(), high = check.high.constant();
        dispatch(value.dtype(), [&](auto t) {
            using T = decltype(t);
            if constexpr (std::is_integral_v<T>) {
                const T* x = static_cast<const T*>(value.data());
                for (std::int64_t i = 0; i < value.size(); ++i) {
                    const auto index = static_cast<std::int64_t>(x[i]);
                    if (!std::in_range<std::int64_t>(+x[i]) || index < low || index >= high)
                        throw IndexError(check.where,
                                         check.what + " is out of range: " + std::to_string(+x[i]) +
                                             ", element " + std::to_string(i) + ", is not in [" +
                                             std::to_string(low) + ", " + std::to_string(high) + ")");
                }
            }
        });
    }

    Values values_;
};

NodePtr constant_for(const Node& input, const Array& value) {
    bool fits = value.rank() == input.type.rank();
    for (std::size_t i = 0; fits && i < value.shape().size(); ++i)
        fits = !input.type.shape[i].is_constant() || input.type.shape[i].is(value.shape()[i]);
    if (!fits)
        throw ShapeError(input.where,
                         describe(input) + " cannot take a value of shape " + text_of(value.shape()));
    if (value.dtype() != input.type.dtype)
        throw TypeError(input.where, describe(input) + " cannot take " + std::string(name_of(value.dtype())));
    return make_constant(value, input.where);
}

}  // namespace

std::vector<Array> evaluate(const Nodes& roots, const std::unordered_map<const Node*, Array>& leaves) {
    for (const NodePtr& node : topological(roots))
        if (node->op == input_op() && !leaves.contains(node.get()))
            throw GraphError(node->where, "no value is given for " + describe(*node));
    // With constants in place of the inputs every length is a number, in types and attributes alike; shapes
    // that do not match are found by the ops' own rules. An input may matter for its length only.
    NodeMap constants;
    for (const auto& [node, value] : leaves) constants.emplace(node, constant_for(*node, value));
    const Nodes fixed = constants.empty() ? roots : replace(roots, constants);
    std::vector<Array> results = Evaluator({}).run(fixed);
    for (std::size_t i = 0; i < roots.size(); ++i) results[i] = results[i].as(roots[i]->type.dtype);
    return results;
}

}  // namespace bitale
