#include "codegen/kernel/lane_masks.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool is_masked_by_others(const ScalarNode& read, const Int& lane) {
    const std::uint64_t id = lane.symbol_id();
    return std::any_of(read.guards.begin(), read.guards.end(), [&](const Guard& guard) {
        if (depends_on(guard, id)) return false;
        const std::vector<AtomPtr> compared = symbols_of(guard.value);
        return std::any_of(compared.begin(), compared.end(), [&](const AtomPtr& symbol) {
            return std::none_of(read.at.begin(), read.at.end(),
                                [&](const Int& x) { return depends_on(x, symbol->id); });
        });
    });
}

// Statements inside of the loop over lanes, if there is one.
bool masks_lanes(const Stmts& body, const Int* lane) {
    return std::any_of(body.begin(), body.end(), [&](const Stmt& s) {
        const bool is_lanes = s.kind == Stmt::Kind::loop && s.binding == Binding::simd;
        bool found = masks_lanes(s.body, is_lanes ? &s.variable : lane);
        if (lane && s.value)
            found = found || any_part(s.value, [&](const ScalarNode& part) {
                        return part.kind == ScalarNode::Kind::read && is_masked_by_others(part, *lane);
                    });
        return found;
    });
}

}  // namespace

bool masks_lanes_by_other_indices(const KernelIR& kernel) {
    for (const Phase& phase : kernel.phases)
        for (const Segment& segment : phase.segments)
            if (masks_lanes(segment.body, nullptr)) return true;
    return false;
}

std::string without_chosen_variables(const std::string& functions) {
    return "#pragma GCC push_options\n#pragma GCC optimize(\"no-ivopts\")\n" + functions +
           "#pragma GCC pop_options\n";
}

}  // namespace bitale
