#include "ops/autodiff/saved.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/ir/nest.h"
#include "graph/rewrite/pattern.h"
#include "graph/walk/traverse.h"
#include "ops/autodiff/modifiers.h"
#include "ops/autodiff/recompute.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

bool is_one_of(const Op* op, std::initializer_list<const Op*> ops) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// What has all elements of its first operand, as they are.
bool only_moves(const Node& node) {
    return is_one_of(node.op,
                     {reshape_op(), permute_op(), expand_op(), checkpoint_op(), disconnected_grad_op()});
}

// Maps that take about as long as a load, and enlarge no relative error of a product or of a sum without
// cancellation.
bool takes_little(const Node& node) {
    return only_moves(node) ||
           is_one_of(node.op, {add_op(), sub_op(), mul_op(), div_op(), neg_op(), abs_op(), relu_op(),
                               sqr_op(), maximum_op(), minimum_op(), where_op(), cast_op()});
}

bool is_comparison(const Node& node) {
    return is_one_of(node.op, {gt_op(), ge_op(), lt_op(), le_op(), eq_op(), neq_op()});
}

bool is_zero_everywhere(const NodePtr& node) {
    const std::optional<Array> value = uniform_value(node);
    return value && value->at(0) == 0;
}

class Saving {
  public:
    Saving(const Graph& graph, DType dtype)
        : roots_(graph.roots()), order_(topological(roots_)), dtype_(dtype) {
        for (const NodePtr& root : roots_) is_root_.insert(root.get());
        for (const NodePtr& node : order_) {
            if (is_of_backward(*node)) backward_.insert(node.get());
            if (is_at_hand(*node)) at_hand_.insert(node.get());
        }
    }

    Nodes run() {
        find_wanted();
        for (const NodePtr& node : order_)
            if (wanted_.contains(node.get()) && node->type.dtype == DType::float32) save_floats(node);
        for (const NodePtr& node : order_)
            if (wanted_.contains(node.get()) && node->type.dtype == DType::boolean) save_truths(node);
        return rebuilt();
    }

  private:
    // What grad made of forward values alone, positions of maxima for example, is computed where they are.
    bool is_of_backward(const Node& node) const {
        const bool reads_backward =
            std::any_of(node.inputs.begin(), node.inputs.end(),
                        [&](const NodePtr& x) { return backward_.contains(x.get()); });
        return reads_backward ||
               (node.of_gradient && is_float(node.type.dtype) && node.op->kind != OpKind::leaf);
    }

    // In memory at any rate, or computed from that in no time.
    bool is_at_hand(const Node& node) const {
        if (node.op->kind == OpKind::leaf || is_small(node) || is_root_.contains(&node)) return true;
        if (node.op->kind != OpKind::map && node.op->kind != OpKind::view && !only_moves(node)) return false;
        const bool little = node.op->kind != OpKind::map || takes_little(node) || is_comparison(node);
        return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const NodePtr& x) {
            return at_hand_.contains(x.get()) && (little || is_small(*x) || !is_float(x->type.dtype));
        });
    }

    void find_wanted() {
        for (const NodePtr& node : order_)
            if (node->of_gradient && backward_.contains(node.get()))
                for (const NodePtr& x : node->inputs)
                    if (!backward_.contains(x.get()) && !at_hand_.contains(x.get())) wanted_.insert(x.get());
        // What is moved, and not what it is moved to: several users then read the same.
        for (std::size_t i = order_.size(); i-- > 0;) {
            const Node& node = *order_[i];
            if (!wanted_.contains(&node) || !only_moves(node)) continue;
            const NodePtr& x = node.inputs[0];
            if (!at_hand_.contains(x.get())) wanted_.insert(x.get());
        }
    }

    // What a gradient reads in place of an operand of a value that it computes again, or null.
    NodePtr read_again(const NodePtr& x) const {
        if (const auto at = instead_.find(x.get()); at != instead_.end()) return at->second;
        return at_hand_.contains(x.get()) ? x : nullptr;
    }

    NodePtr computed_again(const NodePtr& node) {
        Nodes operands;
        bool reads_saved = false;
        for (const NodePtr& x : node->inputs) {
            operands.push_back(read_again(x));
            if (!operands.back()) return nullptr;
            reads_saved = reads_saved || operands.back() != x;
        }
        return reads_saved ? of_gradient(with_inputs(node, std::move(operands))) : nullptr;
    }

    void save_floats(const NodePtr& node) {
        NodePtr again = takes_little(*node) ? computed_again(node) : nullptr;
        if (!again) {
            const NodePtr saved = save(node, dtype_);
            again = of_gradient(make_node(cast_op(), {saved}, {{"dtype", DType::float32}}, node->where));
        }
        instead_[node.get()] = std::move(again);
    }

    // Rounding keeps signs, but not other comparisons.
    void save_truths(const NodePtr& node) {
        if (node->op == saved_op()) return;
        const bool of_sign =
            is_comparison(*node) && node->inputs.size() == 2 && is_zero_everywhere(node->inputs[1]);
        NodePtr again = of_sign || only_moves(*node) ? computed_again(node) : nullptr;
        instead_[node.get()] = again ? std::move(again) : save(node, DType::boolean);
    }

    static NodePtr save(const NodePtr& node, DType dtype) {
        return make_node(saved_op(), {node}, {{"dtype", dtype}}, node->where);
    }

    static NodePtr of_gradient(NodePtr made) {
        const_cast<Node*>(made.get())->of_gradient = true;  // not shared yet
        return made;
    }

    // Users of the backward pass with what they read instead.
    Nodes rebuilt() {
        if (instead_.empty()) return roots_;
        NodeMap done;
        for (const NodePtr& node : order_) {
            if (!backward_.contains(node.get())) continue;
            Nodes operands;
            bool changed = false;
            for (const NodePtr& x : node->inputs) {
                const bool is_backward = backward_.contains(x.get());
                const auto at = is_backward ? done.find(x.get()) : instead_.find(x.get());
                const bool found =
                    at != (is_backward ? done.end() : instead_.end()) && (is_backward || node->of_gradient);
                operands.push_back(found ? at->second : x);
                changed = changed || operands.back() != x;
            }
            if (changed) done[node.get()] = with_inputs(node, std::move(operands));
        }
        Nodes r;
        for (const NodePtr& root : roots_) {
            const auto at = done.find(root.get());
            r.push_back(at == done.end() ? root : at->second);
        }
        return r;
    }

    const Nodes roots_, order_;
    const DType dtype_;
    std::unordered_set<const Node*> is_root_, backward_, at_hand_, wanted_;
    NodeMap instead_;
};

}  // namespace

const Op* saved_op() {
    static const Op* op = register_op({
        .name = "saved",
        .kind = OpKind::view,
        .arity = 1,
        .is_stored = true,
        .infer =
            [](const Nodes& inputs, const Attributes& attributes, Where) {
                return Type{attributes.get<DType>("dtype"), inputs[0]->type.shape};
            },
        .gradient = [](const NodePtr&, const NodePtr& g) { return Nodes{g}; },
        .evaluate =
            [](const Node& node, const std::vector<Array>& inputs) {
                const DType dtype = node.type.dtype;
                return is_float(dtype) ? inputs[0].as(dtype).as(DType::float64) : inputs[0].as(dtype);
            },
        .nest =
            [](const Node& node) {
                std::vector<Loop> loops = loops_over(node.type.shape);
                std::vector<Int> at = variables_of(loops);
                Nest nest;
                nest.parallel = std::move(loops);
                nest.dtype = node.type.dtype;
                nest.body =
                    scalar_cast(nest.dtype, scalar_read(node.inputs[0]->type.dtype, 0, std::move(at)));
                return nest;
            },
    });
    return op;
}

void save_activations(Graph& graph, DType dtype) {
    if (dtype != DType::float32) graph.set_roots(Saving(graph, dtype).run());
}

}  // namespace bitale
