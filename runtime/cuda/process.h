// Small tools that may be there: a disassembler, addr2line.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bitale::cuda {

// What the program prints, its own messages included; nothing when it is not there or fails. A name without a
// slash is looked for on PATH. No shell is involved.
std::optional<std::string> output_of(const std::vector<std::string>& command);

}  // namespace bitale::cuda
