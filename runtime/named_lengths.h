// Names for lengths whose formulas are long, in texts that have them several times.
#pragma once

#include <string>
#include <vector>

#include "codegen/program.h"

namespace bitale {

struct NamedLengths {
    std::string text;                    // with names in place of the formulas
    std::vector<std::string> explained;  // "n, at most 128, = min(128, ...)"
};
// Of the lengths of the program's buffers.
NamedLengths with_named_lengths(std::string text, const Program& program);

}  // namespace bitale
