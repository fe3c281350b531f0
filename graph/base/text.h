// Text from outside (names of variables and functions, paths, values of options) on its way into text that
// people read: reports, messages, listings, pictures. Sources have an escaping of their own
// (codegen/print/writer.h).
#pragma once

#include <string>
#include <string_view>

namespace bitale {

// The text on one line: control characters, bytes that are not UTF-8, and characters that change the
// direction of what follows are written as \n, \t or \x1b.
std::string printable(std::string_view text);

// The same in quotes, with quotes and backslashes inside escaped, so that its end is where it seems to be.
std::string in_quotes(std::string_view text);

}  // namespace bitale
