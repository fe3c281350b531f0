// The language of a program's kernels, and where a program keeps what is printed in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "codegen/program.h"
#include "codegen/target.h"

namespace bitale {

enum class Dialect : std::uint8_t { cpp, cuda };

Dialect dialect_of(const Target& target);

std::string& body_in(KernelText& kernel, Dialect dialect);
// The helper functions that the names mention (print/prelude.h).
void add_prelude(Program& program, Dialect dialect, const std::set<std::string>& names);
// The type of the one argument of a CUDA kernel, in front of its body; nothing in C++.
std::string arguments_type(Dialect dialect, int buffers, std::size_t sizes);

}  // namespace bitale
