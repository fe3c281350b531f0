// Lines of the user's program, as opposed to those of this library, which mean nothing to users.
#pragma once

#include <string>

#include "bitale/error.h"

namespace bitale {

// Whether the line is one of the library's own sources.
bool is_of_library(const Where& where);
// The line, or none where it is the library's.
Where of_user(const Where& where);
// " at net.cpp:12" for a line of the user's; else nothing.
std::string at_line(const Where& where);

}  // namespace bitale
