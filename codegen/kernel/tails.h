// Loops in vector lanes whose length is no whole number of registers: the iterations that are left run as one
// full register, of which only so many lanes are stored. Compilers make narrower registers and scalars of
// them; maps of ten channels or rows of ten classes consist of nothing else.
#pragma once

#include "codegen/kernel/ir.h"

namespace bitale {

// So many points in lanes, and more lanes that fill up registers: nobody reads what those compute. The loop
// has the number of points as its `high`.
Stmt filled_lanes(Int lane, Int count, std::int64_t filled, Stmts body);

// For a CPU with registers of so many bytes. Lanes beyond the end are computed from what lies behind in
// memory: there is always room to read.
void fill_tails(KernelIR& kernel, std::int64_t vector_bytes);

// Takes the lanes away that nobody reads. Where a tool looks for data races, their reads are such: memory
// behind a row may belong to another task.
void read_exactly(KernelIR& kernel);

}  // namespace bitale
