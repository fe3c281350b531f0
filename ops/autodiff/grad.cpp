// Reverse-mode differentiation: from the cost down, one call of each op's gradient.
#include "ops/autodiff/grad.h"

#include <algorithm>
#include <unordered_set>

#include "graph/walk/traverse.h"
#include "ops/autodiff/again.h"
#include "ops/autodiff/masks.h"
#include "ops/autodiff/modifiers.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/rules/phases.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using NodeSet = std::unordered_set<const Node*>;

// The same for all nodes of one shared variable.
const void* identity_of(const NodePtr& node) {
    if (const SharedPtr shared = shared_of(node)) return shared.get();
    return node.get();
}

// Whatever is asked for, within the given graph.
NodeSet wanted_in(const Nodes& order, const Nodes& wrt) {
    std::unordered_set<const void*> asked;
    for (const NodePtr& x : wrt) asked.insert(identity_of(x));
    NodeSet found;
    for (const NodePtr& node : order)
        if (asked.contains(identity_of(node))) found.insert(node.get());
    return found;
}

NodeSet set_of(const Nodes& nodes) {
    NodeSet r;
    for (const NodePtr& node : nodes) r.insert(node.get());
    return r;
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

// Cotangents of values that are stored in a half type are float32: nothing is lost on the way, and small ones
// do not become zero.
class Differentiator {
  public:
    Differentiator(const NodePtr& cost, const Nodes& wrt)
        : order_(topological({cost})),
          wanted_(wanted_in(order_, wrt)),
          needed_(differentiable(order_, wanted_)),
          forward_(set_of(order_)),
          known_(forward_),
          masks_(forward_, [this](const NodePtr& root, Where where) { settle(root, where); }) {
        for (const NodePtr& x : wrt) nodes_of_[identity_of(x)];
        for (const NodePtr& node : order_)
            if (wanted_.contains(node.get())) nodes_of_[identity_of(node)].push_back(node.get());
        const NodePtr seed = make_constant(Array(1).as(wide_of(cost->type.dtype)), cost->where);
        known_.insert(seed.get());
        flows_[cost.get()] = {{seed}};
        for (auto node = order_.rbegin(); node != order_.rend(); ++node) visit(*node);
    }

    // Null where nothing flows.
    NodePtr result(const NodePtr& wrt, HalfGradients halves) {
        std::vector<Flow> parts;
        for (const Node* node : nodes_of_.at(identity_of(wrt)))
            if (const auto at = totals_.find(node); at != totals_.end()) parts.push_back({at->second});
        if (parts.empty()) return nullptr;
        const NodePtr wide = masks_.total(std::move(parts), wrt->where).value;
        return halves == HalfGradients::wide ? wide : converted(wide, wrt->type.dtype, wrt->where);
    }
    // Without what is not to be kept.
    Nodes computed_again(const Nodes& results, const Nodes& wrt) const {
        return bitale::computed_again(results, order_, wrt, cotangents_);
    }
    bool contains(const NodePtr& wrt) const { return !nodes_of_.at(identity_of(wrt)).empty(); }

  private:
    void visit(const NodePtr& node) {
        const auto at = flows_.find(node.get());
        if (at == flows_.end() || !needed_.contains(node.get())) return;
        Flow flow = masks_.total(std::move(at->second), node->where);
        flows_.erase(at);
        const auto is_needed = [&](const NodePtr& x) { return needed_.contains(x.get()); };
        const bool goes_on =
            node->op->gradient && std::any_of(node->inputs.begin(), node->inputs.end(), is_needed);
        const bool is_map = node->op->kind == OpKind::map, is_asked = wanted_.contains(node.get());
        if (is_asked || (goes_on && !is_map)) settle(masks_.apply(flow, node->where), node->where);
        settle(flow.value, node->where);
        if (is_asked) totals_[node.get()] = flow.value;
        if (node->op == checkpoint_op() && !is_zero(flow.value)) cotangents_[node.get()] = flow.value;
        if (!goes_on) return;
        const Nodes parts = node->op->gradient(node, flow.value);
        BITALE_CHECK(parts.size() == node->inputs.size(),
                     "the gradient of " + node->op->name + " has other operands");
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const NodePtr& input = node->inputs[i];
            if (!parts[i] || !is_needed(input)) continue;
            const DType dtype = wide_of(input->type.dtype);
            BITALE_CHECK(parts[i]->type.dtype == dtype && parts[i]->type.rank() == input->type.rank(),
                         "the gradient of " + node->op->name + " is " + text_of(parts[i]->type) +
                             " for an operand " + text_of(input->type));
            Flow below =
                is_map ? masks_.through_map(flow, parts[i], node) : masks_.through(flow, parts[i], node);
            settle(below.value, node->where);
            for (const std::vector<Side>* sides : {&below.pending, &below.known})
                for (const Side& side : *sides) settle(side.condition, node->where);
            collect(flows_[input.get()], std::move(below));
        }
    }

    NodePtr converted(const NodePtr& x, DType dtype, Where where) {
        const NodePtr r = cast(wrap(x), dtype, where).node();
        settle(r, where);
        return r;
    }

    // Zeros count only where nothing else arrives.
    static void collect(std::vector<Flow>& parts, Flow part) {
        if (parts.size() == 1 && is_zero(parts[0].value))
            parts[0] = std::move(part);
        else if (parts.empty() || !is_zero(part.value))
            parts.push_back(std::move(part));
    }

    // New nodes stand for the forward node's statement.
    void settle(const NodePtr& root, Where where) {
        std::vector<const Node*> stack{root.get()};
        while (!stack.empty()) {
            const Node* node = stack.back();
            stack.pop_back();
            if (!known_.insert(node).second) continue;
            auto* fresh = const_cast<Node*>(node);  // made a moment ago, nobody else holds it
            fresh->where = where;
            fresh->of_gradient = true;
            kept_.push_back(root);  // an address in known_ must not be used again
            for (const NodePtr& input : node->inputs) stack.push_back(input.get());
        }
    }

    Nodes order_;
    NodeSet wanted_, needed_, forward_, known_;
    Masks masks_;
    std::unordered_map<const Node*, std::vector<Flow>> flows_;
    std::unordered_map<const void*, std::vector<const Node*>> nodes_of_;  // of all that is asked for
    std::unordered_map<const Node*, NodePtr> totals_, cotangents_;
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

Nodes gradients(const NodePtr& cost, const Nodes& wrt, HalfGradients halves, Where where) {
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
    Differentiator differentiator(canonicalize_and_stabilize({cost}, barriers)[0], wrt);
    Nodes r;
    for (const NodePtr& x : wrt) {
        NodePtr g = differentiator.result(x, halves);
        if (!g) {
            // A rewrite may prove that the cost is the same for every value.
            const bool vanished = !differentiator.contains(x) &&
                                  differentiable(order, wanted_in(order, {x})).contains(cost.get());
            if (!vanished) report_disconnected(cost, order, x, where);
            const DType dtype = halves == HalfGradients::wide ? wide_of(x->type.dtype) : x->type.dtype;
            g = cast(zeros_like(wrap(x), x->where), dtype, x->where).node();
        }
        r.push_back(std::move(g));
    }
    return differentiator.computed_again(r, wrt);
}

std::vector<Expr> gradients(const Expr& cost, const std::vector<Expr>& wrt, HalfGradients halves,
                            Where where) {
    Nodes nodes;
    for (const Expr& x : wrt) {
        if (x.is_null())
            throw GraphError(where, "grad: an empty expression to differentiate with respect to");
        nodes.push_back(x.node());
    }
    if (cost.is_null()) throw GraphError(where, "grad: the cost is an empty expression");
    std::vector<Expr> r;
    for (NodePtr& g : gradients(cost.node(), nodes, halves, where)) r.push_back(wrap(std::move(g)));
    return r;
}

std::vector<Expr> grad(const Expr& cost, const std::vector<Expr>& wrt, Where where) try {
    return gradients(cost, wrt, HalfGradients::rounded, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

std::vector<Expr> grad(const Expr& cost, std::initializer_list<Expr> wrt, Where where) try {
    return grad(cost, std::vector<Expr>(wrt), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr grad(const Expr& cost, const Expr& wrt, Where where) try {
    return grad(cost, std::vector<Expr>{wrt}, where)[0];
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
