// Names of kernels, from their text.
#pragma once

#include <string>

namespace bitale {

// Sixteen digits, for names; nothing that has to withstand anybody.
std::string hash_text(const std::string& text);
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace bitale
