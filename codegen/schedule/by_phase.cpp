#include "codegen/schedule/by_phase.h"

#include <utility>

#include "codegen/nest/phases.h"

namespace bitale {

std::vector<Member> members_by_phase(const Member& member) {
    // Lanes and chunks are parts of the whole sum, whose terms they count.
    if (member.tree.split || member.tree.lanes > 1) return {};
    std::vector<Member> members;
    for (ResultPhase& phase : phases_of(member.nest)) {
        Member own = member;
        own.nest = std::move(phase.nest);
        for (Destination& d : own.destinations)
            for (Int& x : d.at) x = substitute(x, phase.results);
        members.push_back(std::move(own));
    }
    return members;
}

}  // namespace bitale
