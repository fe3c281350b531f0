// Lines of kernels for debuggers and profilers (debug_kernels=on).
#pragma once

#include <string>
#include <string_view>

namespace bitale {

// Assembly without the lines of `source` itself in functions that have lines of other files: helpers of
// the prelude that were inlined into a kernel then count to the statement that calls them. Nor are they
// functions any more, but blocks (DW_TAG_lexical_block), for tools name the file of the innermost function. A
// kernel's own statements have lines of the user's files, by #line.
std::string with_lines_of_callers(std::string_view assembly, std::string_view source);

}  // namespace bitale
