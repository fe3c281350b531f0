// Text from outside (names of variables and functions, paths, values of options) on its way into text that
// people read: reports, messages, listings, pictures. Sources have an escaping of their own
// (codegen/print/writer.h).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bitale {

// The text on one line: control characters, bytes that are not UTF-8, and characters that change the
// direction of what follows are written as \n, \t or \x1b.
std::string printable(std::string_view text);

// The same in quotes, with quotes and backslashes inside escaped, so that its end is where it seems to be.
std::string in_quotes(std::string_view text);

// The pieces between the characters of `separators`, empty ones too. A stream would end quietly where memory
// runs out, and what it had not read would be missing.
std::vector<std::string> split(std::string_view text, std::string_view separators);

// The names that somebody who wrote `name` may have meant, nearest first: at most five that differ in few
// letters or contain it.
std::vector<std::string> names_like(std::string_view name, const std::set<std::string>& known);
// "; did you mean "device"?" for the nearest of them, or nothing.
std::string did_you_mean(std::string_view name, const std::set<std::string>& known);

}  // namespace bitale
