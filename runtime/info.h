// What this installation can do, for people: the text of bitale-info.
#pragma once

#include <string>

#pragma GCC visibility push(default)  // bitale-info calls them in libbitale.so

namespace bitale {

std::string info_text();
// The same as a JSON object, whose fields docs/options.md lists.
std::string info_json();
std::string version();  // "0.1.0"
// Removes the compiled kernels on disk; what was done, in words.
std::string clear_cache();

}  // namespace bitale

#pragma GCC visibility pop
