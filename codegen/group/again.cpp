#include "codegen/group/again.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/walk/traverse.h"
#include "ops/autodiff/modifiers.h"

namespace bitale {

namespace {

// The groups that compute a value, or what it is made of where it is stored nowhere.
std::set<int> groups_of(const Values& values, const Grouping& grouping, const NodePtr& root) {
    std::set<int> groups;
    std::set<const Node*> seen;
    for (Nodes stack{root}; !stack.empty();) {
        const NodePtr node = stack.back();
        stack.pop_back();
        if (!seen.insert(node.get()).second) continue;
        const auto number = values.number.find(node.get());
        const int group =
            number == values.number.end() ? -1 : grouping.group_of[static_cast<std::size_t>(number->second)];
        if (group >= 0)
            groups.insert(group);
        else
            stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    }
    return groups;
}

// What a stored value waits for, by way of all that is computed where it is read.
Nodes waits_of(const Values& values, const Grouping& grouping, const NodePtr& root) {
    Nodes all;
    std::set<const Node*> seen;
    for (Nodes stack{root}; !stack.empty();) {
        const NodePtr node = stack.back();
        stack.pop_back();
        if (!seen.insert(node.get()).second) continue;
        if (const auto at = values.waits.find(node.get()); at != values.waits.end())
            all.insert(all.end(), at->second.begin(), at->second.end());
        for (const NodePtr& x : node->inputs) {
            const auto number = values.number.find(x.get());
            if (number == values.number.end() ||
                grouping.group_of[static_cast<std::size_t>(number->second)] < 0)
                stack.push_back(x);
        }
    }
    return all;
}

}  // namespace

Waits take_off_again(Graph& graph) {
    Waits waits;
    const Nodes roots = graph.roots(), order = topological(roots);
    if (std::none_of(order.begin(), order.end(), [](const NodePtr& n) { return n->op == again_op(); }))
        return waits;
    NodeMap done;
    for (const NodePtr& node : order) {
        if (node->op == again_op()) {
            done[node.get()] = done.at(node->inputs[0].get());
            continue;
        }
        Nodes inputs, after;
        for (const NodePtr& x : node->inputs) {
            inputs.push_back(done.at(x.get()));
            if (x->op == again_op() && x->inputs.size() > 1) after.push_back(done.at(x->inputs[1].get()));
        }
        const bool begins = std::any_of(node->inputs.begin(), node->inputs.end(),
                                        [](const NodePtr& x) { return x->op == again_op(); });
        const NodePtr made = inputs == node->inputs ? node : with_inputs(node, std::move(inputs));
        if (begins) waits[made.get()] = std::move(after);
        done[node.get()] = made;
    }
    Nodes fresh;
    for (const NodePtr& root : roots) fresh.push_back(done.at(root.get()));
    graph.set_roots(fresh);
    return waits;
}

std::vector<bool> behind_waits(const Values& values) {
    std::vector<bool> behind;
    if (values.waits.empty()) return behind;
    behind.assign(values.list.size(), false);
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        const NodePtr& node = values.list[v].node;
        bool found = values.waits.contains(node.get());
        for (const NodePtr& x : node->inputs)
            if (const auto at = values.number.find(x.get()); at != values.number.end())
                found = found || behind[static_cast<std::size_t>(at->second)];
        behind[v] = found;
    }
    return behind;
}

std::set<int> groups_before(const Values& values, const Grouping& grouping, int value) {
    std::set<int> groups;
    if (values.waits.empty()) return groups;
    for (const NodePtr& after : waits_of(values, grouping, values.list[static_cast<std::size_t>(value)].node))
        groups.merge(groups_of(values, grouping, after));
    return groups;
}

bool runs_early(const Values& values, const Group& group, const std::vector<bool>& behind) {
    return !behind.empty() && std::any_of(group.values.begin(), group.values.end(), [&](int v) {
        const Node& node = *values.list[static_cast<std::size_t>(v)].node;
        return behind[static_cast<std::size_t>(v)] || node.of_gradient;
    });
}

}  // namespace bitale
