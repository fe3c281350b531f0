#include "graph/walk/import.h"

#include "graph/walk/traverse.h"

namespace bitale {

void import(Graph& graph, Interner& interner) {
    const Nodes roots = graph.roots();
    NodeMap imported;
    for (const NodePtr& node : topological(roots)) {
        if (node->op == input_op()) {
            imported[node.get()] = node;
            continue;
        }
        auto copy = std::make_shared<Node>(*node);
        for (NodePtr& input : copy->inputs) input = imported.at(input.get());
        if (copy->origins.empty())
            copy->origins = {
                {node->where, node->name.empty() ? node->op->name : node->name, node->of_gradient}};
        imported[node.get()] = interner.intern(copy);
    }
    Nodes fresh;
    fresh.reserve(roots.size());
    for (const NodePtr& root : roots) fresh.push_back(imported.at(root.get()));
    graph.set_roots(fresh);
}

}  // namespace bitale
