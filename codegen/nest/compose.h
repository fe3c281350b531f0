// Composition of nests: a read of a value that is not stored becomes the value's own body at that index. This
// one mechanism fuses casts, slices, gathers, pads and elementwise chains into whatever reads them.
#pragma once

#include <functional>

#include "graph/ir/nest.h"

namespace bitale {

// The nest whose body replaces reads of an operand, or null to keep them. Its parallel loops match the
// operand's axes and it has combine == none; its own reads are replaced in turn. Operands are numbered alike
// in all nests.
using InlineOperand = std::function<const Nest*(int operand)>;

// Likewise, for each read by itself: `guards` hold wherever the result of the read is used.
using InlineRead = std::function<const Nest*(const ScalarNode& read, const std::vector<Guard>& guards)>;

// Equal reads of one operand share one copy of its body, so the result grows with the number of values fused.
Nest compose(const Nest& nest, const InlineOperand& inlined);
Nest compose_reads(const Nest& nest, const InlineRead& inlined);
// The nest of a node with its operands renumbered: operand k becomes number(k).
Nest renumber(const Nest& nest, const std::function<int(int)>& number);

// Drops guards that the ranges prove, reduced loops of length 1, and a combine of one value or of none.
Nest simplify(const Nest& nest);

// Distinct scalar operations (apply, cast, select, read) in the body and the lets; stops counting at `limit`.
int count_statements(const Nest& nest, int limit = 1 << 20);
// Rough cycles for one evaluation of the body.
int cost_of(const Nest& nest);

}  // namespace bitale
