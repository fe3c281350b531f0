// Names of kernels, from their text, and of what they compute.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

// Sixteen digits, for names; nothing that has to withstand anybody.
std::string hash_text(const std::string& text);
// By line and name, each once.
void sort_origins(std::vector<Origin>& list);
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace bitale
