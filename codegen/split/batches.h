// Which values of a graph may be meant by its batch.
#pragma once

#include <vector>

#include "codegen/split/batch_roles.h"

namespace bitale {

// The likeliest first: unknown first lengths of inputs; inputs of one known first length, together with
// shared variables of that length that no update replaces, or without; rows of a known number that are read
// of something; such variables alone. Of known lengths, those by which more is computed row by row come
// first. The last two count only where all inputs have known first lengths.
std::vector<Batch> possible_batches(const Graph& graph);

}  // namespace bitale
