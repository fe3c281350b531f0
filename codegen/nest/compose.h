// Composition of nests: a read of a value that is not stored becomes the value's own body at that index. This
// one mechanism fuses casts, slices, gathers, pads and elementwise chains into whatever reads them.
#pragma once

#include <functional>

#include "graph/ir/nest.h"

namespace bitale {

// The nest whose body replaces reads of a value, or null to keep them. Its parallel loops match the value's
// axes and it has combine == none; its own reads are replaced in turn.
using InlineValue = std::function<const Nest*(int value)>;

// Likewise, for each read by itself: `guards` hold wherever the result of the read is used.
using InlineRead = std::function<const Nest*(const ScalarNode& read, const std::vector<Guard>& guards)>;

// Equal reads of one value share one copy of its body, so the result grows with the number of values fused.
Nest compose(const Nest& nest, const InlineValue& inlined);
Nest compose_reads(const Nest& nest, const InlineRead& inlined);
// The nest with other operands in its reads.
Nest renumber(const Nest& nest, const std::function<Operand(Operand)>& number);

// Drops guards that the ranges prove, reduced loops of length 1, and a combine of one value or of none.
Nest simplify(const Nest& nest);

// Distinct scalar operations (apply, cast, select, read) in the body and the lets; stops counting at `limit`.
int count_statements(const Nest& nest, int limit = 1 << 20);
// Rough cycles for one evaluation of the body.
int cost_of(const Nest& nest);
// Whether an evaluation takes as long as that of a function, as exp.
constexpr int cost_of_a_function = 10;
bool is_costly(const Nest& nest);
bool is_costly(const Scalar& value);

}  // namespace bitale
