// Reverse-mode differentiation: from the cost down, one call of each op's gradient.
#include "ops/autodiff/grad.h"

#include <algorithm>
#include <unordered_set>

#include "graph/walk/traverse.h"
#include "ops/autodiff/modifiers.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/rules/phases.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using NodeSet = std::unordered_set<const Node*>;

bool is_wanted(const NodePtr& node, const NodePtr& wrt) {
    return node == wrt || (shared_of(wrt) && shared_of(node) == shared_of(wrt));
}

// Whatever is asked for, within the given graph.
NodeSet wanted_in(const Nodes& order, const Nodes& wrt) {
    NodeSet asked;
    std::unordered_set<const SharedState*> storages;
    for (const NodePtr& x : wrt) {
        asked.insert(x.get());
        if (const SharedPtr shared = shared_of(x)) storages.insert(shared.get());
    }
    NodeSet found;
    for (const NodePtr& node : order) {
        const SharedPtr shared = shared_of(node);
        if (asked.contains(node.get()) || (shared && storages.contains(shared.get())))
            found.insert(node.get());
    }
    return found;
}

// The float nodes on a way of float nodes from a wanted one to the cost.
NodeSet differentiable(const Nodes& order, const NodeSet& wanted) {
    NodeSet r;
    for (const NodePtr& node : order) {
        if (!is_float(node->type.dtype)) continue;
        const bool through = node->op != disconnected_grad_op() &&
                             std::any_of(node->inputs.begin(), node->inputs.end(),
                                         [&](const NodePtr& x) { return r.contains(x.get()); });
        if (through || wanted.contains(node.get())) r.insert(node.get());
    }
    return r;
}

bool is_zero(const NodePtr& node) {
    const NodePtr& x = node->op == expand_op() ? node->inputs[0] : node;
    return is_constant(x) && constant_value(x).size() == 1 && constant_value(x).at(0) == 0;
}

class Differentiator {
  public:
    Differentiator(const NodePtr& cost, const Nodes& wrt)
        : order_(topological({cost})),
          wanted_(wanted_in(order_, wrt)),
          needed_(differentiable(order_, wanted_)) {
        for (const NodePtr& node : order_) known_.insert(node.get());
        const NodePtr seed = make_constant(Array(1).as(cost->type.dtype), cost->where);
        known_.insert(seed.get());
        flows_[cost.get()] = {seed};
        for (auto node = order_.rbegin(); node != order_.rend(); ++node) visit(*node);
    }

    // Null where nothing flows.
    NodePtr result(const NodePtr& wrt) const {
        Nodes parts;
        for (const NodePtr& node : order_)
            if (const auto at = totals_.find(node.get()); at != totals_.end() && is_wanted(node, wrt))
                parts.push_back(at->second);
        return parts.empty() ? nullptr : total(parts, wrt->where);
    }
    bool contains(const NodePtr& wrt) const {
        return std::any_of(order_.begin(), order_.end(),
                           [&](const NodePtr& node) { return is_wanted(node, wrt); });
    }

  private:
    void visit(const NodePtr& node) {
        const auto at = flows_.find(node.get());
        if (at == flows_.end() || !needed_.contains(node.get())) return;
        const NodePtr g = total(at->second, node->where);
        flows_.erase(at);
        settle(g, node->where);
        if (wanted_.contains(node.get())) totals_[node.get()] = g;
        const auto is_needed = [&](const NodePtr& x) { return needed_.contains(x.get()); };
        if (!node->op->gradient || std::none_of(node->inputs.begin(), node->inputs.end(), is_needed)) return;
        const Nodes parts = node->op->gradient(node, g);
        BITALE_CHECK(parts.size() == node->inputs.size(),
                     "the gradient of " + node->op->name + " has other operands");
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const NodePtr& input = node->inputs[i];
            if (!parts[i] || !is_needed(input)) continue;
            BITALE_CHECK(
                parts[i]->type.dtype == input->type.dtype && parts[i]->type.rank() == input->type.rank(),
                "the gradient of " + node->op->name + " is " + text_of(parts[i]->type) + " for an operand " +
                    text_of(input->type));
            settle(parts[i], node->where);
            collect(flows_[input.get()], parts[i]);
        }
    }

    // Zeros count only where nothing else arrives.
    static void collect(Nodes& parts, const NodePtr& part) {
        if (parts.size() == 1 && is_zero(parts[0]))
            parts[0] = part;
        else if (parts.empty() || !is_zero(part))
            parts.push_back(part);
    }

    // In the order of arrival, which the graph alone decides. Half types add up in float32.
    static NodePtr total(const Nodes& parts, Where where) {
        Expr sum = wrap(parts[0]);
        if (parts.size() == 1) return parts[0];
        const DType dtype = sum.dtype(), wide = is_half(dtype) ? DType::float32 : dtype;
        sum = cast(sum, wide, where);
        for (std::size_t i = 1; i < parts.size(); ++i)
            sum = elementwise(add_op(), {sum, cast(wrap(parts[i]), wide, where)}, where);
        return cast(sum, dtype, where).node();
    }

    // New nodes stand for the forward node's statement.
    void settle(const NodePtr& root, Where where) {
        std::vector<const Node*> stack{root.get()};
        while (!stack.empty()) {
            const Node* node = stack.back();
            stack.pop_back();
            if (!known_.insert(node).second) continue;
            const_cast<Node*>(node)->where = where;  // made a moment ago, nobody else holds it
            kept_.push_back(root);                   // an address in known_ must not be used again
            for (const NodePtr& input : node->inputs) stack.push_back(input.get());
        }
    }

    Nodes order_;
    NodeSet wanted_, needed_, known_;
    std::unordered_map<const Node*, Nodes> flows_;
    std::unordered_map<const Node*, NodePtr> totals_;
    Nodes kept_;
};

[[noreturn]] void report_disconnected(const NodePtr& cost, const Nodes& order, const NodePtr& wrt,
                                      Where where) {
    const NodeSet wanted = wanted_in(order, {wrt});
    const std::string start = "grad: the cost, " + describe(*cost) + ", ";
    if (wanted.empty())
        throw GraphError(
            where, start + "does not depend on " + describe(*wrt) + "; leave it out, or use it in the cost");
    // The first operations on the way that let nothing through.
    NodeSet reached = wanted;
    std::string blockers;
    for (const NodePtr& node : order) {
        const bool touched = std::any_of(node->inputs.begin(), node->inputs.end(),
                                         [&](const NodePtr& x) { return reached.contains(x.get()); });
        if (!touched) continue;
        const bool passes = is_float(node->type.dtype) && node->op != disconnected_grad_op();
        if (passes)
            reached.insert(node.get());
        else if (blockers.size() < 200)
            blockers += (blockers.empty() ? "" : ", ") + describe(*node);
    }
    throw GraphError(where, start + "depends on " + describe(*wrt) +
                                " only through operations without a gradient" +
                                (blockers.empty() ? "" : ": " + blockers));
}

}  // namespace

Nodes gradients(const NodePtr& cost, const Nodes& wrt, Where where) {
    if (cost->type.rank() != 0)
        throw GraphError(
            where, "grad: the cost must be a scalar, not " + describe(*cost) + "; take its mean or sum");
    if (!is_float(cost->type.dtype))
        throw TypeError(where,
                        "grad: the cost must be a float, not " + describe(*cost) + "; cast it to float32");
    for (const NodePtr& x : wrt)
        if (!is_float(x->type.dtype))
            throw TypeError(where, "grad: there is no gradient with respect to " + describe(*x) +
                                       "; differentiate with respect to a float expression");

    const Nodes order = topological({cost});
    const NodeSet barriers = wanted_in(order, wrt);
    const Differentiator differentiator(canonicalize_and_stabilize({cost}, barriers)[0], wrt);
    Nodes r;
    for (const NodePtr& x : wrt) {
        NodePtr g = differentiator.result(x);
        if (!g) {
            // A rewrite may prove that the cost is the same for every value.
            const bool vanished = !differentiator.contains(x) &&
                                  differentiable(order, wanted_in(order, {x})).contains(cost.get());
            if (!vanished) report_disconnected(cost, order, x, where);
            g = zeros_like(wrap(x), x->where).node();
        }
        r.push_back(std::move(g));
    }
    return r;
}

std::vector<Expr> grad(const Expr& cost, const std::vector<Expr>& wrt, Where where) {
    Nodes nodes;
    for (const Expr& x : wrt) {
        if (x.is_null())
            throw GraphError(where, "grad: an empty expression to differentiate with respect to");
        nodes.push_back(x.node());
    }
    if (cost.is_null()) throw GraphError(where, "grad: the cost is an empty expression");
    std::vector<Expr> r;
    for (NodePtr& g : gradients(cost.node(), nodes, where)) r.push_back(wrap(std::move(g)));
    return r;
}

std::vector<Expr> grad(const Expr& cost, std::initializer_list<Expr> wrt, Where where) {
    return grad(cost, std::vector<Expr>(wrt), where);
}

Expr grad(const Expr& cost, const Expr& wrt, Where where) {
    return grad(cost, std::vector<Expr>{wrt}, where)[0];
}

}  // namespace bitale
