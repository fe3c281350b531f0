#include "codegen/split/sliced_batches.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/shape/slice.h"

namespace bitale {

namespace {

struct Slices {
    Int length;
    Nodes nodes;
};

bool is_slice_of_data(const NodePtr& node) {
    if (node->op != slice_op() && node->op != rows_op()) return false;
    return node->inputs[0]->op->kind == OpKind::leaf && node->type.rank() > 0 &&
           !node->type.shape[0].is_constant();
}

std::vector<Slices> slices_of(const Graph& graph) {
    std::vector<Slices> all;
    for (const NodePtr& node : topological(graph.roots())) {
        if (!is_slice_of_data(node)) continue;
        const Int& length = node->type.shape[0];
        auto at = std::find_if(all.begin(), all.end(), [&](const Slices& s) { return s.length == length; });
        if (at == all.end()) at = all.insert(all.end(), {length, {}});
        at->nodes.push_back(node);
    }
    return all;
}

// An atom of the length, and what it is where the length is `symbol`: solved for it, the equation of both
// replaces the length wherever it is a part of a formula.
std::optional<std::pair<AtomPtr, Int>> solved(const Int& length, const Int& symbol) {
    std::optional<std::pair<AtomPtr, Int>> found;
    for (const Int::Term& t : length.terms()) {
        if (t.atoms.size() != 1 || (t.factor != 1 && t.factor != -1)) continue;
        const AtomPtr& atom = t.atoms.front();
        const Int rest = length - t.factor * Int::from(atom);
        if (found && atom->kind == Atom::Kind::symbol) continue;
        found.emplace(atom, t.factor * (symbol - rest));
    }
    return found;
}

std::optional<SlicedBatch> sliced_batch(const Graph& graph, const Slices& slices) {
    const Int symbol = Int::symbol("rows of the slice", slices.length.range());
    const auto replaced = solved(slices.length, symbol);
    if (!replaced) return {};
    SlicedBatch batch{graph, {}, symbol.symbol_id()};
    NodeMap by;
    const auto length = [&](const Int& x) { return with_atom(x, replaced->first, replaced->second); };
    for (const NodePtr& slice : slices.nodes) {
        Type type = slice->type;
        type.shape[0] = symbol;
        const NodePtr variable = make_input(type, "slice", slice->where);
        by.emplace(slice.get(), variable);
        batch.stand_ins.emplace(variable.get(), slice);
        batch.graph.inputs.push_back(variable);
    }
    for (const NodePtr& node : topological(graph.roots())) {
        if (by.contains(node.get())) continue;
        Nodes inputs;
        for (const NodePtr& input : node->inputs) inputs.push_back(by.at(input.get()));
        by.emplace(node.get(),
                   node->op->kind == OpKind::leaf ? node : with_lengths(node, std::move(inputs), length));
    }
    Nodes roots;
    for (const NodePtr& root : graph.roots()) roots.push_back(by.at(root.get()));
    // A tensor of the same length beside the slice is needed as a whole: each part has other rows of it.
    for (const NodePtr& node : topological(roots))
        if (node->op->kind == OpKind::leaf && !batch.stand_ins.contains(node.get()))
            for (const Int& n : node->type.shape)
                if (!(length(n) == n)) return {};
    batch.graph.set_roots(roots);
    for (Check& check : batch.graph.checks) check.low = length(check.low), check.high = length(check.high);
    return batch;
}

}  // namespace

std::vector<SlicedBatch> sliced_batches(const Graph& graph) {
    std::vector<SlicedBatch> all;
    for (const Slices& slices : slices_of(graph))
        if (std::optional<SlicedBatch> batch = sliced_batch(graph, slices)) all.push_back(std::move(*batch));
    return all;
}

}  // namespace bitale
