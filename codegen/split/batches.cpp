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

double elements_of(const NodePtr& node) {
    double elements = 1;
    for (const Int& length : node->type.shape)
        elements *= length.is_constant() ? static_cast<double>(length.constant()) : 1;
    return elements;
}

// Values of known first lengths that may be batches, by what they compute row by row.
class KnownBatches {
  public:
    explicit KnownBatches(const Graph& graph) : graph_(graph) {}

    // All nodes together, or each alone. Those of `beside` that have the same length come with them if more
    // is computed row by row then: labels are an argument, images a variable, weights a variable of that
    // length by chance.
    void add(std::int64_t rows, const Nodes& nodes, const Nodes& beside) {
        const double bytes = consider(rows, nodes);
        with_others(rows, nodes, beside, bytes);
        if (bytes > 0 || nodes.size() == 1) return;
        for (const NodePtr& one : nodes) consider(rows, {one});
    }

    // `only_useful`: those alone by which some value is computed row by row.
    void append_to(std::vector<Batch>& to, bool only_useful) {
        std::stable_sort(found_.begin(), found_.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        for (auto& [bytes, batch] : found_)
            if (bytes > 0 || !only_useful) to.push_back(std::move(batch));
    }

  private:
    double consider(std::int64_t rows, const Nodes& begins) {
        Batch batch{.rows = rows};
        for (const NodePtr& node : begins) batch.begins.insert(node.get());
        const double bytes = bytes_by_rows(graph_, batch);
        found_.emplace_back(bytes, std::move(batch));
        return bytes;
    }

    // Each set of values is looked at through the whole graph.
    void with_others(std::int64_t rows, const Nodes& nodes, Nodes beside, double most) {
        constexpr std::size_t most_tries = 8;
        if (beside.empty()) return;
        Nodes together = nodes;
        together.insert(together.end(), beside.begin(), beside.end());
        if (consider(rows, together) > 0 || beside.size() == 1) return;
        std::stable_sort(beside.begin(), beside.end(),
                         [](const NodePtr& a, const NodePtr& b) { return elements_of(a) > elements_of(b); });
        if (beside.size() > most_tries) beside.resize(most_tries);
        together = nodes;
        for (const NodePtr& other : beside) {
            together.push_back(other);
            if (const double bytes = consider(rows, together); bytes > most)
                most = bytes;
            else
                together.pop_back();
        }
    }

    const Graph& graph_;
    std::vector<std::pair<double, Batch>> found_;
};

void add_known(std::vector<Batch>& to, const Graph& graph, const ByLength& all, const ByLength& beside,
               bool only_useful) {
    KnownBatches known(graph);
    for (const auto& [rows, nodes] : all) {
        const auto others = beside.find(rows);
        known.add(rows, nodes, others == beside.end() ? Nodes{} : others->second);
    }
    known.append_to(to, only_useful);
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
    add_known(batches, graph, inputs, variables, false);
    if (!symbols.empty()) return batches;
    for (const ByLength* known : {&rows, &variables}) add_known(batches, graph, *known, {}, true);
    return batches;
}

}  // namespace bitale
