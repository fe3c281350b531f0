#include "graph/walk/import.h"

#include <algorithm>
#include <unordered_map>

#include "graph/base/lines.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

// Nodes that the library made on the way to others have the line of who uses them first.
std::unordered_map<const Node*, Where> lines_of_users(const Graph& graph, const Nodes& order) {
    std::unordered_map<const Node*, Where> lines;
    if (std::none_of(order.begin(), order.end(),
                     [](const NodePtr& node) { return is_of_library(node->where); }))
        return lines;
    for (const SharedUpdate& update : graph.updates)
        if (is_of_library(update.value->where)) lines.emplace(update.value.get(), update.where);
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
        const auto at = lines.find(node->get());
        const Where where = at == lines.end() ? (*node)->where : at->second;
        if (is_of_library(where)) continue;
        for (const NodePtr& input : (*node)->inputs)
            if (is_of_library(input->where)) lines.emplace(input.get(), where);
    }
    return lines;
}

}  // namespace

void import(Graph& graph, Interner& interner) {
    const Nodes roots = graph.roots();
    NodeMap imported;
    const Nodes order = topological(roots);
    const std::unordered_map<const Node*, Where> lines = lines_of_users(graph, order);
    for (const NodePtr& node : order) {
        if (node->op == input_op()) {
            imported[node.get()] = node;
            continue;
        }
        auto copy = std::make_shared<Node>(*node);
        for (NodePtr& input : copy->inputs) input = imported.at(input.get());
        if (const auto at = lines.find(node.get()); at != lines.end()) copy->where = at->second;
        if (copy->origins.empty()) {
            const std::string title = node->name.empty() ? title_of(*node) : node->name;
            const std::string& what = node->name.empty() ? node->op->name : node->name;
            copy->origins = {{node->where, what, node->of_gradient, title == what ? "" : title}};
        }
        imported[node.get()] = interner.intern(copy);
    }
    Nodes fresh;
    fresh.reserve(roots.size());
    for (const NodePtr& root : roots) fresh.push_back(imported.at(root.get()));
    graph.set_roots(fresh);
}

}  // namespace bitale
