#include "codegen/group/lookups.h"

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/nest/tree.h"
#include "graph/walk/traverse.h"
#include "ops/shape/gather.h"
#include "ops/shape/sort.h"

namespace bitale {

namespace {

// Looking at an index takes about half a nanosecond for a vector of results, sorting one about ten.
bool is_worth_sorting(const Node& scatter, const Target& target) {
    constexpr double fewest_rows = 32;
    const double rows = typical(scatter.type.shape[0]), indices = typical_count(nest_of(scatter).reduced);
    if (scatter.inputs[1]->type.rank() > 0 && count_of(scatter.inputs[1]->type.shape).is(1))
        return rows >= fewest_rows;  // in order as it is
    const auto shape_of = [&](Operand operand) -> const Shape& {
        return scatter.inputs[static_cast<std::size_t>(operand.input())]->type.shape;
    };
    return !scatter.type.shape[0].is(1) && scatter.inputs[1]->type.rank() > 0 && rows >= fewest_rows &&
           rows * indices >= target.looks_of_sort && !tree_of(nest_of(scatter), shape_of).split;
}

}  // namespace

void sort_lookups(Graph& graph, const Target& target) {
    if (std::isinf(target.looks_of_sort)) return;
    std::map<std::pair<const Node*, Int>, SortedKeys> sorts;
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
        if (node->op == scatter_op() && is_worth_sorting(*node, target)) {
            const std::pair<const Node*, Int> key{own->inputs[1].get(), own->type.shape[0]};
            auto at = sorts.find(key);
            if (at == sorts.end())
                at = sorts.emplace(key, make_sorted(own->inputs[1], own->type.shape[0], own->where)).first;
            auto sums = std::make_shared<Node>(*make_scatter_of_sorted(own, at->second));
            sums->name = own->name;
            sums->origins = own->origins;
            own = sums;
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
