// Program <-> JSON.
#pragma once

#include <string>

#include "bitale/io.h"
#include "codegen/program.h"

namespace bitale {

// Everything of the program as JSON text, the same text for equal programs: symbols are numbered in order of
// appearance. Of a shared variable only name, dtype and shape are kept, not its value.
std::string program_to_json(const Program& program);

// The program, with fresh symbols; its shared variables are new ones, filled with zeros. Throws FileError for
// text that is not a program of this version, and for one that asks for more memory than the limits allow.
Program program_from_json(const std::string& text, const LoadLimits& limits = {});

}  // namespace bitale
