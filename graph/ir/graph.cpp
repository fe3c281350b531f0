#include "graph/ir/graph.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "graph/walk/traverse.h"

namespace bitale {

Nodes Graph::roots() const {
    Nodes r = outputs;
    for (const SharedUpdate& u : updates) r.push_back(u.value);
    for (const Check& c : checks) r.push_back(c.value);
    return r;
}

void Graph::set_roots(const Nodes& roots) {
    std::size_t i = 0;
    for (NodePtr& o : outputs) o = roots.at(i++);
    for (SharedUpdate& u : updates) u.value = roots.at(i++);
    for (Check& c : checks) c.value = roots.at(i++);
}

void collect_checks(Graph& graph) {
    graph.checks.clear();
    for (const NodePtr& node : topological(graph.roots())) {
        if (!node->op->checks) continue;
        for (Check& check : node->op->checks(*node)) {
            const bool known = std::any_of(graph.checks.begin(), graph.checks.end(), [&](const Check& c) {
                return c.value == check.value && c.low == check.low && c.high == check.high;
            });
            if (!known) graph.checks.push_back(std::move(check));
        }
    }
}

}  // namespace bitale
