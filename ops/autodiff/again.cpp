#include "ops/autodiff/again.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "ops/autodiff/modifiers.h"

namespace bitale {

namespace {

class SegmentsAgain {
  public:
    SegmentsAgain(const Nodes& forward, const Nodes& parameters,
                  const std::unordered_map<const Node*, NodePtr>& cotangents)
        : forward_(forward),
          cotangents_(cotangents),
          rebuilt_([this](const Node& node) { return place_.contains(&node); }) {
        for (std::size_t i = 0; i < forward_.size(); ++i) place_.emplace(forward_[i].get(), i);
        find_parameters(parameters);
        find_borders();
    }
    bool is_empty() const { return borders_.empty(); }

    // From the last checkpoint to the first: the cotangent of one depends on copies before later ones alone.
    Nodes run(const Nodes& results) {
        std::map<std::size_t, Nodes, std::greater<>> by_border;
        for (const NodePtr& node : forward_)
            if (const auto at = borders_.find(node.get()); at != borders_.end())
                by_border[at->second].push_back(node);
        for (const auto& [border, nodes] : by_border) {
            const auto cotangent = cotangents_.find(forward_[border].get());
            const NodePtr after = cotangent == cotangents_.end() ? nullptr : rebuilt_(cotangent->second);
            for (const NodePtr& node : nodes) rebuilt_.replace(*node, copy(node, border, after));
        }
        Nodes all;
        for (const NodePtr& result : results) all.push_back(result ? rebuilt_(result) : nullptr);
        return all;
    }

  private:
    void find_parameters(const Nodes& parameters) {
        std::unordered_map<const SharedState*, bool> storages;
        for (const NodePtr& p : parameters)
            if (const SharedPtr shared = shared_of(p)) storages[shared.get()] = true;
        for (const NodePtr& node : forward_) {
            bool alone = is_constant(node);
            if (const SharedPtr shared = shared_of(node)) alone = storages.contains(shared.get());
            if (node->op->kind != OpKind::leaf)
                alone = std::all_of(node->inputs.begin(), node->inputs.end(),
                                    [&](const NodePtr& x) { return of_parameters_.at(x.get()); });
            of_parameters_[node.get()] = alone;
        }
    }

    // For each value all of whose ways lead through checkpoints: the last of those that come next.
    void find_borders() {
        std::unordered_map<const Node*, bool> escapes;
        std::unordered_map<const Node*, std::size_t> last;
        escapes[forward_.back().get()] = true;
        for (std::size_t i = forward_.size(); i-- > 0;) {
            const NodePtr& node = forward_[i];
            const bool is_checkpoint = node->op == checkpoint_op();
            const bool ends = !is_checkpoint && escapes[node.get()];
            const auto at = last.find(node.get());
            const bool again = !is_checkpoint && !ends && at != last.end() &&
                               node->op->kind != OpKind::leaf && !of_parameters_.at(node.get());
            if (again) borders_.emplace(node.get(), at->second);
            const std::size_t border = is_checkpoint || at == last.end() ? i : at->second;
            for (const NodePtr& x : node->inputs) {
                if (ends) escapes[x.get()] = true;
                std::size_t& of_operand = last.try_emplace(x.get(), border).first->second;
                of_operand = std::max(of_operand, border);
            }
        }
    }

    NodePtr copy(const NodePtr& node, std::size_t border, const NodePtr& after) {
        Nodes operands = node->inputs;
        std::size_t begin = operands.size();
        bool has_begun = false;
        for (std::size_t k = 0; k < operands.size(); ++k) {
            const NodePtr& x = node->inputs[k];
            const auto at = borders_.find(x.get());
            if (at != borders_.end()) operands[k] = rebuilt_.at(*x);
            has_begun = has_begun || (at != borders_.end() && at->second == border);
            if (begin == operands.size() && !of_parameters_.at(x.get())) begin = k;
        }
        if (!has_begun) {
            NodePtr& x = operands.at(begin);
            NodePtr& again = begun_[{x.get(), border}];
            if (!again)
                again =
                    of_gradient(make_node(again_op(), after ? Nodes{x, after} : Nodes{x}, {}, node->where));
            x = again;
        }
        return of_gradient(with_inputs(node, std::move(operands)));
    }

    static NodePtr of_gradient(NodePtr made) {
        const_cast<Node*>(made.get())->of_gradient = true;  // not shared yet
        return made;
    }

    const Nodes& forward_;
    const std::unordered_map<const Node*, NodePtr>& cotangents_;
    std::unordered_map<const Node*, std::size_t> place_, borders_;
    std::unordered_map<const Node*, bool> of_parameters_;
    std::map<std::pair<const Node*, std::size_t>, NodePtr> begun_;
    Rebuilding rebuilt_;  // nodes of the backward pass, with copies for what they read of the forward pass
};

}  // namespace

Nodes computed_again(const Nodes& results, const Nodes& forward, const Nodes& parameters,
                     const std::unordered_map<const Node*, NodePtr>& cotangents) {
    SegmentsAgain again(forward, parameters, cotangents);
    return again.is_empty() ? results : again.run(results);
}

}  // namespace bitale
