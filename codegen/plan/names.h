// Names of kernels, from their text, and of what they compute.
#pragma once

#include <string>
#include <vector>

#include "codegen/program.h"
#include "graph/ir/node.h"

namespace bitale {

// Sixteen digits, for names; nothing that has to withstand anybody.
std::string hash_text(const std::string& text);
// By line and name, each once.
void sort_origins(std::vector<Origin>& list);
const char* name_of(BufferInfo::Kind kind);
std::string describe(const Program& program, int buffer);  // "input "x", uint8 [60000, 28, 28]"
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace bitale
