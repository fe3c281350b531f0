// BITALE_DUMP: what became of a function, as files.
#pragma once

#include "bitale/function.h"

namespace bitale {

// FOLDER/NUMBER_NAME for the files of one function; empty without BITALE_DUMP or, with a warning, where it
// cannot be made.
std::string make_dump_folder(const std::string& name);

// Writes graph_before.txt, graph_after.txt, both as .dot and .svg (or .svg.txt with the reason why there is
// none), program.json, and below kernels/ a file for each kernel as it is compiled, one for readers, and the
// prelude. For a GPU, which may be emulated, also the units as NVRTC sees them and what it makes of them. The
// passes have left pass_NUMBER_NAME.txt there.
void dump_before_compiling(Function::State& state);
void dump_report(const Function::State& state);  // report.txt and report_full.txt

}  // namespace bitale
