// BITALE_DUMP: what became of a function, as files.
#pragma once

#include "bitale/function.h"

namespace bitale {

// Writes FOLDER/NUMBER_NAME/: graph_before.txt, graph_after.txt, both as .dot, program.json, and the sources
// as the compiler will see them. Nothing without BITALE_DUMP; a folder that cannot be written is a warning.
void dump_before_compiling(Function::State& state);
void dump_report(const Function::State& state);  // report.txt beside them

}  // namespace bitale
