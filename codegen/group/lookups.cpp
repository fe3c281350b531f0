#include "codegen/group/lookups.h"

#include <cmath>
#include <map>
#include <utility>

#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "codegen/nest/tree.h"
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
    replace_nodes(graph, [&](const NodePtr& node) -> NodePtr {
        if (node->op != scatter_op() || !is_worth_sorting(*node, target)) return nullptr;
        const std::pair<const Node*, Int> key{node->inputs[1].get(), node->type.shape[0]};
        auto at = sorts.find(key);
        if (at == sorts.end())
            at = sorts.emplace(key, make_sorted(node->inputs[1], node->type.shape[0], node->where)).first;
        return make_scatter_of_sorted(node, at->second);
    });
}

}  // namespace bitale
