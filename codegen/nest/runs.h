// Sums over runs of equal keys: a nest that visits the points of its reduced loop where an element of a list
// in ascending order is the number of the row. These points follow each other, so that a schedule looks for
// where they begin and end instead of looking at all.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

struct RunForm {
    std::uint64_t key = 0;  // the symbol of the let that is an element of the list
    Operand keys;           // the list
    DType dtype = DType::int32;
};

// Of a sum with one reduced loop, whose first loop over results numbers the rows. The list is in ascending
// order by what the op says.
std::optional<RunForm> run_form(const Nest& nest);
bool sums_runs(const Nest& nest);

// A sum in which each row of results looks at all keys, for those that are its own: adding what is selected,
// in order, is all that it does, so partial sums of its points would save nothing.
bool looks_for_own_keys(const Nest& nest);

}  // namespace bitale
