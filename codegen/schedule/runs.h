// Sums over runs of equal keys (nest/runs.h) on a CPU.
//
//     first, last = where the keys of the task's rows begin and end
//     sums[row, ..] = 0
//     for k in [first, last): sums[key(k) - the task's first row, ..] += body(k, ..)
//     results = sums
//
// A task has rows that are neighbours, or, where rows without keys stay as they are, those whose keys begin
// among so many, one at a time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "codegen/nest/runs.h"
#include "codegen/schedule/copies.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// Positions in the list of keys.
struct RunPart {
    Int first, last;
};

// How many rows a task has; 0 where no nest sums up runs.
std::int64_t rows_of_runs(const std::vector<Nest>& nests);

// Looks in the list for the keys of a task's rows, which are some of `all`.
RunPart find_part(int list, const TaskRows& rows, const Int& all, const KernelBuilder& builder,
                  Stmts& before);

// The member's results. `whole`: its nest before it is cut down to the task's rows.
Stmts schedule_runs(const Member& member, const Nest& whole, const TaskRows& rows, const RunPart& part,
                    KernelBuilder& builder);

// What leaves the group are new values of shared variables, written in place, that differ from the old ones
// only where the sums over runs are not 0. The list of keys: other rows than theirs need not be visited.
std::optional<int> list_of_changed_rows(const Group& group, const SegmentContext& context);

// Asks memory for the rows that are written for a later place of the list. `key`: the element of the list.
Stmts ask_for_rows(const Group& group, const Int& place, const Int& last_key,
                   const std::function<Scalar(const Int& place)>& key, const SegmentContext& context,
                   KernelBuilder& builder);

}  // namespace bitale
