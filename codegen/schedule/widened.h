// Narrow integers that lanes read, as registers of 32-bit ones that are filled first: a loop over lanes of
// different widths would have few of them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/loops.h"

namespace bitale {

// The scalar with its casts of narrow integers from registers of `whole` lanes. Statements that fill them are
// added to `before`; `done` has those that there are.
Scalar widened(const Scalar& scalar, const Loop& lanes, std::int64_t whole,
               std::map<std::vector<Int>, Scalar>& done, Stmts& before, KernelBuilder& builder);

}  // namespace bitale
