#include "graph/base/numbers.h"

#include <charconv>

namespace bitale {

std::string number_text(double x, int digits) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, x, std::chars_format::general, digits).ptr};
}

std::optional<double> number_in(std::string_view text) {
    double x = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, x);
    return problem == std::errc{} && stop == end ? std::optional(x) : std::nullopt;
}

}  // namespace bitale
