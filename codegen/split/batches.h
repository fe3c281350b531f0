// Which values of a graph may be meant by its batch.
#pragma once

#include <vector>

#include "codegen/split/batch_roles.h"

namespace bitale {

// The likeliest first: unknown first lengths of inputs; inputs of one known first length; rows of a known
// number that are read of something; shared variables that no update replaces. Of known lengths, those by
// which more is computed row by row come first. The last two count only where all inputs have known first
// lengths.
std::vector<Batch> possible_batches(const Graph& graph);

}  // namespace bitale
