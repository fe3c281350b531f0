// What the readable text of a kernel says beside the statements: names of the user's, axes, lines. Nothing of
// it is in the text that is compiled, unless the target's debug_lines asks for that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

class Writer;

struct ReadingNotes {
    std::vector<std::string> places;             // of each place, what it holds; may be empty
    std::map<std::uint64_t, std::string> loops;  // of a loop's variable, which axis it walks
    bool lines = false;                          // each line of code is one of the user's program (#line)
};

// `buffers`: what each of the launch's holds, as "input "x" uint8 [60000, 28, 28]".
ReadingNotes notes_for_reading(const KernelIR& kernel, const std::vector<std::string>& buffers);

// Comments of them, where there are some.
void note_place(const ReadingNotes* notes, std::size_t place, Writer& to);
void note_loop(const ReadingNotes* notes, const Int& variable, Writer& to);

}  // namespace bitale
