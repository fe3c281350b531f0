// The npy format, in memory.
#pragma once

#include <string>
#include <string_view>

#include "bitale/array.h"

namespace bitale {

// `path` is for messages. Throws FileError.
Array parse_npy(const std::string& path, std::string_view bytes);

}  // namespace bitale
