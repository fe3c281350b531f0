// SHA-256 (FIPS 180-4), for cache keys and checksums.
#pragma once

#include <string>
#include <string_view>

namespace bitale {

std::string sha256(std::string_view bytes);  // 64 hexadecimal digits

}  // namespace bitale
