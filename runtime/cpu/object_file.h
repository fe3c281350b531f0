// A shared object as a file, before the loader is given it.
#pragma once

#include <string>

namespace bitale {

// Why the file cannot be loaded, in words that go on "the object ..."; empty where it is a regular file that
// has all that its headers tell of. The loader itself would wait for the other end of a pipe, and end the
// process with SIGBUS where a file is shorter than its headers say.
std::string problem_of_object(const std::string& path);

}  // namespace bitale
