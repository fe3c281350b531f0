// Drops whole lines only: a comment behind code stays, and so does what looks like one inside of a string.
#include "codegen/print/comments.h"

#include <algorithm>

namespace bitale {

std::string without_comments(std::string_view text) {
    std::string kept;
    kept.reserve(text.size());
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        const std::string_view line = text.substr(0, end);
        const std::size_t first = line.find_first_not_of(' ');
        if (first == std::string_view::npos || !line.substr(first).starts_with("//")) kept += line;
        text.remove_prefix(end);
    }
    return kept;
}

}  // namespace bitale
