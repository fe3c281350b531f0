// Grouping: which stored values share a kernel.
//
// Vertically, a value joins the group of a value it reads when both walk the same first axis and every read
// stays in its own row of that axis: a task then computes the row of all of them, and what no other group
// reads never leaves its scratch. Horizontally, groups of one dependency level become segments of one kernel:
// every task of the launch belongs to one segment. Levels are as late as users allow, so that all parameter
// updates meet in the last one; earlier where less lives at once then (peak.h).
//
// On a CPU, maps of a library's product at the same point belong to the product: they run on each slice of it
// while it is in the cache.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/tree.h"

namespace bitale {

struct Group {
    std::vector<int> values;  // in the order of computation
    std::vector<int> checks;  // numbers of graph.checks tested by this group's tasks
    bool by_library = false;  // one value, computed by a call, and maps of it that run slice by slice
    bool split = false;       // reductions cut into the same chunks: partial results, then a second phase
    bool tiled = false;       // one value that is computed as a whole: a product in a GPU's tiles, a sort
    bool once = false;        // depends on shared variables that the function does not update, alone
    bool commits = false;     // computes a new value of a shared variable
    bool may_fail = false;    // has checks, or calls a routine that may end without a result
    Int extent = 1;           // of the common first axis; 1 for scalars
    int level = 0;
    std::set<int> needs;  // numbers of groups
    int statements = 0;
};

struct Grouping {
    std::vector<Group> groups;
    std::vector<Nest> nests;  // per value: composed, staged reads kept (stored and staged values only)
    std::vector<ReductionTree> trees;  // per value: of its nest
    std::vector<int> group_of;         // per value: its group, -1 for the others
    int levels = 0;
};

// Whether a group comes after another one, through any of those that it needs.
bool depends(const Grouping& grouping, int group, int on);

Grouping form_groups(const Values& values, const Graph& graph, const Target& target);

}  // namespace bitale
