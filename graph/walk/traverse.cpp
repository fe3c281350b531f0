#include "graph/walk/traverse.h"

#include <unordered_set>

#include "graph/walk/length.h"

namespace bitale {

Nodes topological(const Nodes& roots) {
    Nodes order;
    std::unordered_set<const Node*> seen;
    std::vector<std::pair<NodePtr, std::size_t>> stack;
    for (const NodePtr& root : roots) {
        if (!seen.insert(root.get()).second) continue;
        stack.emplace_back(root, 0);
        while (!stack.empty()) {
            auto& [node, next] = stack.back();
            if (next < node->inputs.size()) {
                const NodePtr input = node->inputs[next++];
                if (seen.insert(input.get()).second) stack.emplace_back(input, 0);
            } else {
                order.push_back(node);
                stack.pop_back();
            }
        }
    }
    return order;
}

std::unordered_map<const Node*, Nodes> users_of(const Nodes& order) {
    std::unordered_map<const Node*, Nodes> users;
    for (const NodePtr& node : order)
        for (const NodePtr& input : node->inputs) {
            Nodes& list = users[input.get()];
            if (list.empty() || list.back() != node) list.push_back(node);
        }
    return users;
}

namespace {

Attributes mapped(const Attributes& attributes, const std::function<Int(const Int&)>& lengths) {
    Attributes r = attributes;
    for (const auto& [name, value] : attributes.entries()) {
        if (const Int* x = std::get_if<Int>(&value)) {
            r.set(name, lengths(*x));
        } else if (const auto* list = std::get_if<std::vector<Int>>(&value)) {
            std::vector<Int> copy = *list;
            for (Int& x : copy) x = lengths(x);
            r.set(name, copy);
        }
    }
    return r;
}

Attributes substitute(const Attributes& attributes, const Substitution& lengths) {
    return mapped(attributes, [&](const Int& x) { return substitute(x, lengths); });
}

// Lengths of `old` that are symbols now equal those of `now`.
void unify(const Node& old, const NodePtr& now, Substitution& lengths) {
    const Shape &before = old.type.shape, &after = now->type.shape;
    for (std::size_t i = 0; i < before.size() && i < after.size(); ++i)
        if (const std::uint64_t id = before[i].symbol_id(); id && !(before[i] == after[i]))
            lengths.emplace(id, after[i]);
    if (const Attribute* symbol = old.attributes.find("symbol"))
        if (const std::optional<Int> length = length_of(now))
            lengths.emplace(std::get<Int>(*symbol).symbol_id(), *length);
}

}  // namespace

NodePtr with_attributes(const NodePtr& node, Nodes inputs, Attributes attributes) {
    NodePtr made = make_node(node->op, std::move(inputs), std::move(attributes), node->where, node->name);
    if (!node->origins.empty() || !node->rules.empty() || !node->title.empty() || node->of_gradient) {
        auto* fresh = const_cast<Node*>(made.get());  // not shared yet
        fresh->of_gradient = node->of_gradient;
        fresh->title = node->title;
        fresh->origins = node->origins;
        fresh->rules = node->rules;
    }
    return made;
}

NodePtr with_inputs(const NodePtr& node, Nodes inputs, const Substitution& lengths) {
    return with_attributes(node, std::move(inputs),
                           lengths.empty() ? node->attributes : substitute(node->attributes, lengths));
}

NodePtr with_lengths(const NodePtr& node, Nodes inputs, const std::function<Int(const Int&)>& lengths) {
    Attributes attributes = mapped(node->attributes, lengths);
    const bool stays = inputs == node->inputs && attributes == node->attributes;
    return stays ? node : with_attributes(node, std::move(inputs), std::move(attributes));
}

Rebuilding::Rebuilding(std::function<bool(const Node&)> stays, Substitution lengths)
    : stays_(std::move(stays)), lengths_(std::move(lengths)) {}

NodePtr Rebuilding::operator()(const NodePtr& root) {
    roots_.push_back(root);
    std::vector<std::pair<NodePtr, std::size_t>> stack;
    // Barriers: what a replaced node depended on is not walked through it.
    const auto visit = [&](const NodePtr& node) {
        if (done_.contains(node.get())) return;
        if (stays_ && stays_(*node))
            done_[node.get()] = node;
        else
            stack.emplace_back(node, 0);
    };
    visit(root);
    while (!stack.empty()) {
        auto& [node, next] = stack.back();
        if (done_.contains(node.get())) {
            stack.pop_back();
        } else if (next < node->inputs.size()) {
            visit(node->inputs[next++]);
        } else {
            done_[node.get()] = made(node);
            stack.pop_back();
        }
    }
    return done_.at(root.get());
}

NodePtr Rebuilding::made(const NodePtr& node) const {
    Nodes inputs;
    bool changed = false;
    for (const NodePtr& input : node->inputs) {
        inputs.push_back(done_.at(input.get()));
        changed |= inputs.back() != input;
    }
    if (!lengths_.empty() && !changed) {
        // A node without changed operands may still mention a replaced length in its attributes.
        changed =
            node->op->kind != OpKind::leaf && !(substitute(node->attributes, lengths_) == node->attributes);
    }
    return changed ? with_inputs(node, std::move(inputs), lengths_) : node;
}

Nodes replace(const Nodes& roots, const NodeMap& with) {
    Substitution lengths;
    for (const auto& [old, now] : with)
        if (old->op == input_op()) unify(*old, now, lengths);
    Rebuilding rebuilt({}, std::move(lengths));
    for (const auto& [old, now] : with) rebuilt.replace(*old, now);
    Nodes r;
    for (const NodePtr& root : roots) r.push_back(rebuilt(root));
    return r;
}

}  // namespace bitale
