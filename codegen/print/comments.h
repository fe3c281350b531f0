// Comments of generated text tell where a kernel comes from; nothing that is compiled depends on them.
#pragma once

#include <string>
#include <string_view>

namespace bitale {

// The text without the lines that are comments alone. Names of kernels and keys of caches are made of this: a
// program whose lines moved finds its kernels again, and kernels that differ in their origins only are one.
std::string without_comments(std::string_view text);

}  // namespace bitale
