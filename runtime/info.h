// What this installation can do, for people: the text of bitale-info.
#pragma once

#include <string>

namespace bitale {

std::string info_text();
// Removes the compiled kernels on disk; what was done, in words.
std::string clear_cache();

}  // namespace bitale
