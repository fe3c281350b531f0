#include "codegen/group/changed_rows.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "graph/ir/shared.h"
#include "ops/shape/gather.h"
#include "ops/shape/sort.h"

namespace bitale {

namespace {

// What a value is computed from by steps that a kernel takes where they are read: not by sums, but for those
// over runs of keys.
std::set<const Node*> computed_in_place_from(const NodePtr& value) {
    std::vector<const Node*> stack{value.get()};
    std::set<const Node*> seen{value.get()};
    while (!stack.empty()) {
        const Node* node = stack.back();
        stack.pop_back();
        const bool reads_on = node->op->kind == OpKind::map || node->op->kind == OpKind::view ||
                              node->op == sum_runs_op() || node->op == gather_op();
        if (!reads_on) continue;
        for (const NodePtr& input : node->inputs)
            if (seen.insert(input.get()).second) stack.push_back(input.get());
    }
    return seen;
}

// But for constants.
std::set<const Node*> leaves_of(const NodePtr& value) {
    Nodes stack{value};
    std::set<const Node*> seen{value.get()}, leaves;
    while (!stack.empty()) {
        const NodePtr node = stack.back();
        stack.pop_back();
        if (node->inputs.empty() && !is_constant(node)) leaves.insert(node.get());
        for (const NodePtr& input : node->inputs)
            if (seen.insert(input.get()).second) stack.push_back(input);
    }
    return leaves;
}

// Rows of the very keys by which the value changes: each row of the table then reads itself alone.
bool are_own_rows(const Node& gather, const std::set<const Node*>& computed_from) {
    const std::set<const Node*> found = leaves_of(gather.inputs[1]);
    return std::any_of(computed_from.begin(), computed_from.end(), [&](const Node* node) {
        if (node->op != sum_runs_op()) return false;
        const std::set<const Node*> keys = leaves_of(node->inputs[1]);
        return std::includes(keys.begin(), keys.end(), found.begin(), found.end());
    });
}

bool changes_by_runs(const NodePtr& value) {
    for (const Node* node : computed_in_place_from(value))
        if (node->op == sum_runs_op() && node->type.shape == value->type.shape) return true;
    return false;
}

}  // namespace

void keep_rows_of_changed_tables(Values& values, const Graph& graph) {
    constexpr double small_part = 0.25;
    std::vector<const SharedUpdate*> tables;
    for (const SharedUpdate& update : graph.updates)
        if (changes_by_runs(update.value)) tables.push_back(&update);
    if (tables.size() < 2) return;
    for (const SharedUpdate* other : tables) {
        const std::set<const Node*> computed_from = computed_in_place_from(other->value);
        for (const Node* node : computed_from) {
            if (node->op != gather_op() || are_own_rows(*node, computed_from)) continue;
            const SharedPtr table = shared_of(node->inputs[0]);
            const bool changes = std::any_of(tables.begin(), tables.end(), [&](const SharedUpdate* update) {
                return update != other && update->target == table;
            });
            Value& rows = values.list[static_cast<std::size_t>(values.number.at(node))];
            if (!changes || rows.required ||
                typical(count_of(rows.shape)) > small_part * typical(count_of(node->inputs[0]->type.shape)))
                continue;
            rows.required = true;
            rows.reason = "rows of a table of which the step changes rows in place";
        }
    }
}

}  // namespace bitale
