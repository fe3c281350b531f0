#include "codegen/group/sorted_rows.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "graph/walk/traverse.h"
#include "ops/shape/sort.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using AxesOfTranspose = std::vector<std::int64_t>;

constexpr double shortest_row = 16, fewest_elements = 1 << 14;

// A transpose whose rows are long, and lie across those of what it is of.
bool lies_across(const Node& node) {
    if (node.op != permute_op() || node.type.rank() < 2) return false;
    const std::int64_t last = node.attributes.get<AxesOfTranspose>("axes").back();
    const Node& of = *node.inputs[0];
    double behind = 1;
    for (std::size_t d = static_cast<std::size_t>(last) + 1; d < of.type.shape.size(); ++d)
        behind *= typical(of.type.shape[d]);
    return behind >= shortest_row && typical(node.type.shape.back()) >= shortest_row &&
           typical(count_of(node.type.shape)) >= fewest_elements;
}

}  // namespace

void copy_sorted_rows(Graph& graph, const Target& target) {
    if (!target.has_vectors()) return;
    std::set<const Node*> across;
    for (const NodePtr& node : topological(graph.roots())) {
        if (node->op != argsort_op()) continue;
        std::vector<const Node*> found{node->inputs[0].get()};
        while (!found.empty()) {
            const Node* const one = found.back();
            found.pop_back();
            if (lies_across(*one)) across.insert(one);
            if (one->op->kind != OpKind::map || one->type.rank() == 0) continue;
            for (const NodePtr& input : one->inputs) found.push_back(input.get());
        }
    }
    if (across.empty()) return;
    replace_nodes(graph, [&](const NodePtr& node) -> NodePtr {
        if (!across.contains(node.get())) return nullptr;
        return make_transposed_copy(node->inputs[0], node->attributes.get<AxesOfTranspose>("axes"),
                                    node->where);
    });
}

}  // namespace bitale
