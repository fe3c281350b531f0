#include "codegen/split/batches.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "ops/shape/slice.h"

namespace bitale {

namespace {

// Of nodes whose first length is known and more than 1, by that length.
using ByLength = std::map<std::int64_t, Nodes, std::greater<>>;

void add(ByLength& all, const NodePtr& node) {
    if (node->type.rank() == 0 || !node->type.shape[0].is_constant()) return;
    const std::int64_t rows = node->type.shape[0].constant();
    if (rows > 1) all[rows].push_back(node);
}

// Bytes of the values that are computed row by row, for one of the rows; none where the batch cannot be
// split.
double bytes_by_rows(const Graph& graph, const Batch& batch) {
    constexpr double unknown = 128;
    const BatchRoles roles = batch_roles(graph, batch);
    if (!roles.obstacle.empty()) return 0;
    double bytes = 0;
    for (const auto& [node, role] : roles.of) {
        if (!role.is_rows() || batch.begins.contains(node)) continue;
        double own = bytes_of(node->type.dtype);
        for (const Int& length : node->type.shape)
            own *= length.is_constant() ? static_cast<double>(length.constant()) : unknown;
        bytes += own;
    }
    return bytes;
}

// `only_useful`: those alone by which some value is computed row by row.
void add_known(std::vector<Batch>& to, const Graph& graph, const ByLength& all, bool only_useful) {
    std::vector<std::pair<double, Batch>> batches;
    for (const auto& [rows, nodes] : all) {
        const auto consider = [&, rows = rows](const Nodes& begins) {
            Batch batch{.rows = rows};
            for (const NodePtr& node : begins) batch.begins.insert(node.get());
            const double bytes = bytes_by_rows(graph, batch);
            batches.emplace_back(bytes, std::move(batch));
            return bytes > 0;
        };
        if (consider(nodes) || nodes.size() == 1) continue;
        for (const NodePtr& one : nodes) consider({one});
    }
    std::stable_sort(batches.begin(), batches.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [bytes, batch] : batches)
        if (bytes > 0 || !only_useful) to.push_back(std::move(batch));
}

}  // namespace

std::vector<Batch> possible_batches(const Graph& graph) {
    std::vector<Batch> batches;
    std::set<std::uint64_t> symbols;
    ByLength inputs, rows, variables;
    // Expressions that stand for variables come last, and are what a user means by the batch.
    for (std::size_t i = graph.inputs.size(); i-- > 0;) {
        const NodePtr& x = graph.inputs[i];
        const std::uint64_t symbol = x->type.rank() == 0 ? 0 : x->type.shape[0].symbol_id();
        if (symbol && symbols.insert(symbol).second) batches.push_back({.symbol = symbol});
        add(inputs, x);
    }
    std::set<const SharedState*> updated;
    for (const SharedUpdate& u : graph.updates) updated.insert(u.target.get());
    for (const NodePtr& node : topological(graph.roots())) {
        if (node->op == rows_op()) add(rows, node);
        if (const SharedPtr variable = shared_of(node); variable && !updated.contains(variable.get()))
            add(variables, node);
    }
    add_known(batches, graph, inputs, false);
    if (!symbols.empty()) return batches;
    for (const ByLength* known : {&rows, &variables}) add_known(batches, graph, *known, true);
    return batches;
}

}  // namespace bitale
