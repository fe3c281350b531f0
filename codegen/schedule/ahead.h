// Rows that are found at run time, a minibatch in random order, are asked of memory some rows before they are
// read: their places are known, and waiting for them one by one takes most of the time of a pass over bytes.
#pragma once

#include "codegen/schedule/builder.h"

namespace bitale {

// For a nest whose lets depend on `row`, below `rows`: statements that ask for what some later row will read.
// Nothing where no rows are found at run time, or of unknown length.
Stmts ask_ahead(const Nest& nest, const Int& row, const Int& rows, const KernelBuilder& builder);

}  // namespace bitale
