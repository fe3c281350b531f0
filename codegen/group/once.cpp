#include "codegen/group/once.h"

#include <algorithm>
#include <cstdint>

#include "codegen/nest/compose.h"
#include "codegen/nest/walk.h"

namespace bitale {

bool depends_on_call(const Nest& nest) {
    std::set<std::uint64_t> bound;
    const auto bind = [&](const Int& variable) {
        if (variable.symbol_id()) bound.insert(variable.symbol_id());
    };
    for (const Loop& l : nest.parallel) bind(l.variable);
    for (const Loop& l : nest.reduced) bind(l.variable);
    for (const Let& let : nest.lets) bind(let.symbol);
    bool free = false;
    const auto look = [&](const Int& x) {
        for (const AtomPtr& symbol : symbols_of(x)) free = free || !bound.contains(symbol->id);
    };
    const auto look_at_guards = [&](const std::vector<Guard>& guards) {
        for (const Guard& g : guards)
            for (const Int& x : {g.value, g.low, g.high}) look(x);
    };
    for (const Loop& l : nest.parallel) look(l.extent);
    for (const Loop& l : nest.reduced) look(l.extent);
    for (const Let& let : nest.lets) look(let.extent);
    look_at_guards(nest.guards);
    for_each_part(nest, [&](const ScalarNode& s) {
        for (const Int& x : s.at) look(x);
        if (s.kind == ScalarNode::Kind::index) look(s.index);
        look_at_guards(s.guards);
    });
    return free;
}

void mark_once(const Values& values, const Graph& graph, Grouping& grouping) {
    std::set<const SharedState*> updated;
    for (const SharedUpdate& update : graph.updates) updated.insert(update.target.get());
    for (Group& group : grouping.groups) {
        if (!group.checks.empty() || group.by_library || group.values.empty()) continue;
        bool shared_read = false, only = true, worth_keeping = group.split, of_numbers = true, behind = false;
        for (const int v : group.values) {
            const Nest nest = fully_composed_nest(values, v);
            if (values.list[v].required || depends_on_call(nest)) only = false;
            worth_keeping = worth_keeping || is_order(nest.combine);
            of_numbers = of_numbers && !is_float(values.list[v].node->type.dtype);
            for_each_read(nest, [&](const ScalarNode& s) {
                const Value& operand = values.list[s.operand.value()];
                if (operand.storage == Value::Storage::leaf) {
                    const SharedPtr shared = shared_of(operand.node);
                    shared_read = shared_read || shared;
                    only = only && (is_constant(operand.node) || (shared && !updated.contains(shared.get())));
                } else if (const int g = grouping.group_of[s.operand.value()]; g >= 0) {
                    only = only && (&grouping.groups[g] == &group || grouping.groups[g].once);
                    behind = behind || grouping.groups[g].once;
                }
            });
        }
        group.once = only && (shared_read || behind) && (worth_keeping || (of_numbers && behind));
    }
}

}  // namespace bitale
