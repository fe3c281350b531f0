#include "codegen/group/replace.h"

#include <memory>
#include <utility>

#include "graph/walk/traverse.h"

namespace bitale {

void replace_nodes(Graph& graph, const std::function<NodePtr(const NodePtr&)>& replacement) {
    replace_nodes(graph, [&](const NodePtr& node, const Node&) { return replacement(node); });
}

void replace_nodes(Graph& graph,
                   const std::function<NodePtr(const NodePtr&, const Node& before)>& replacement) {
    NodeMap now;  // of nodes that are others than before
    for (const NodePtr& node : topological(graph.roots())) {
        Nodes inputs = node->inputs;
        bool changed = false;
        for (NodePtr& input : inputs)
            if (const auto at = now.find(input.get()); at != now.end()) {
                input = at->second;
                changed = true;
            }
        NodePtr own = changed ? with_inputs(node, std::move(inputs)) : node;
        if (const NodePtr other = replacement(own, *node)) {
            auto named = std::make_shared<Node>(*other);
            named->name = own->name;
            named->origins = own->origins;
            own = named;
        }
        if (own != node) now.emplace(node.get(), own);
    }
    if (now.empty()) return;
    Nodes roots = graph.roots();
    for (NodePtr& root : roots)
        if (const auto at = now.find(root.get()); at != now.end()) root = at->second;
    graph.set_roots(roots);
}

}  // namespace bitale
