// Numbers as text and back, the same in every locale: printf, strtod and streams take the point or comma of
// the program's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bitale {

// "0.5", "1e+30": of at most that many digits, as printf's %g writes it.
std::string number_text(double x, int digits = 6);

// The number that the whole text is.
std::optional<double> number_in(std::string_view text);

// Of ASCII alone. In locales of one byte a character, the standard's functions take a byte of UTF-8 for a
// letter or a control character.
constexpr bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
constexpr bool is_control_character(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

}  // namespace bitale
