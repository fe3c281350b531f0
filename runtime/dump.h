// BITALE_DUMP: what became of a function, as files.
#pragma once

#include "bitale/function.h"

namespace bitale {

// FOLDER/NUMBER_NAME for the files of one function; empty without BITALE_DUMP or, with a warning, where it
// cannot be made.
std::string make_dump_folder(const std::string& name);

// Writes graph_before.txt, graph_after.txt, both as .dot, program.json, and the sources as the compiler will
// see them, with what NVRTC makes of those for a GPU, which may be emulated; the passes have left
// pass_NUMBER_NAME.txt there.
void dump_before_compiling(Function::State& state);
void dump_report(const Function::State& state);  // report.txt beside them

}  // namespace bitale
