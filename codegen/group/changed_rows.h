// Tables of which a step changes few rows: embeddings.
#pragma once

#include "codegen/group/values.h"
#include "graph/ir/graph.h"

namespace bitale {

// Where a step changes two tables by sums over runs of keys, and the change of one reads rows of the other,
// as in skip-gram models, the rows that the gather finds go into memory: so each table can be changed in
// place, row by row. Read from the table itself, they would have to be the old ones, and the new table
// another array.
void keep_rows_of_changed_tables(Values& values, const Graph& graph);

}  // namespace bitale
