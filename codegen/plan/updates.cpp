#include "codegen/plan/updates.h"

#include <algorithm>
#include <variant>

#include "codegen/library/made.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/builder.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

// Reads the operand at its own point alone.
bool reads_own_element(const Nest& nest, int operand) {
    const std::vector<Int> identity = variables_of(nest.parallel);
    bool own = true;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (s.operand.value() == operand) own = own && s.at == identity;
    });
    return own;
}

// A product by a library, which looks at no check that may have failed on a device.
bool writes_anywhere(const Value& value, const Graph& graph) {
    return graph.checks.empty() && std::holds_alternative<GemmCall>(value.by_library->call);
}

}  // namespace

UpdatePlan plan_updates(const Graph& graph, const Values& values, const Grouping& grouping) {
    UpdatePlan plan;
    int last_check = 0;
    std::vector<std::size_t> order(values.list.size(), 0);  // of a value among its group
    for (const Group& group : grouping.groups) {
        if (group.may_fail) last_check = std::max(last_check, group.level);
        for (std::size_t i = 0; i < group.values.size(); ++i)
            order[static_cast<std::size_t>(group.values[i])] = i;
    }
    // Readers of shared variables, once for all updates.
    std::map<int, std::vector<int>> readers;  // leaf value -> stored values that read it
    std::map<const SharedState*, std::vector<int>> leaves;
    std::vector<Nest> full(values.list.size());
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        const Value& value = values.list[v];
        if (const SharedPtr shared = shared_of(value.node))
            leaves[shared.get()].push_back(static_cast<int>(v));
        if (grouping.group_of[v] < 0) continue;
        if (value.by_library) {
            for (const int operand : read_by_call(values, static_cast<int>(v)))
                readers[operand].push_back(static_cast<int>(v));
            continue;
        }
        full[v] = fully_composed_nest(values, static_cast<int>(v));
        for_each_read(full[v], [&](const ScalarNode& s) {
            std::vector<int>& list = readers[s.operand.value()];
            if (list.empty() || list.back() != static_cast<int>(v)) list.push_back(static_cast<int>(v));
        });
    }
    for (const SharedUpdate& update : graph.updates) {
        const int own = values.number.at(update.value.get());
        const int group = grouping.group_of[own];
        bool possible = group >= 0 && grouping.groups[group].level > last_check &&
                        (!values.list[own].by_library || writes_anywhere(values.list[own], graph));
        for (const SharedUpdate& other : graph.updates)
            if (&other != &update && (other.target == update.target || other.value == update.value))
                possible = false;
        for (const int leaf : leaves[update.target.get()])
            for (const int reader : readers[leaf]) {
                if (!possible) break;
                if (grouping.groups[grouping.group_of[reader]].level < grouping.groups[group].level) continue;
                // An element that is read before it is written, by the one task that has it. A library reads
                // all of its operands for each slice of its result, and a reduction while it writes it.
                const bool earlier = grouping.group_of[reader] == group && order[reader] < order[own],
                           itself = reader == own && full[reader].combine == Combine::none;
                const bool before = !values.list[reader].by_library && (earlier || itself);
                possible = before && reads_own_element(full[reader], leaf);
            }
        plan.in_place.push_back(possible);
    }
    return plan;
}

Segment copy_of_new_value(const SharedUpdate& update, int from, int to, const Target& target) {
    constexpr std::int64_t block = 4096;
    const Type& type = update.value->type;
    Segment segment;
    segment.title = "new value of " + in_quotes(update.target->name);
    const Int count = count_of(type.shape);
    segment.tasks = ceildiv(count, block);
    segment.task = make_loop("task", segment.tasks).variable;
    const Loop inside = make_loop("point", min(block, count - segment.task * block));
    const std::vector<Int> at = unflattened(segment.task * block + inside.variable, type.shape);
    segment.body = {loop(inside.variable, 0, inside.extent,
                         target.tasks_have_threads() ? Binding::threads : Binding::simd,
                         {set(to, at, place_read(type.dtype, from, at))})};
    return segment;
}

}  // namespace bitale
