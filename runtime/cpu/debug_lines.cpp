#include "runtime/cpu/debug_lines.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace bitale {

namespace {

// The number behind a directive, as in `.loc 3 17 5`; -1 where the line is something else.
int number_behind(std::string_view line, std::string_view directive) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(directive)) return -1;
    line.remove_prefix(directive.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    int number = -1;
    std::from_chars(line.data(), line.data() + line.size(), number);
    return number;
}

}  // namespace

std::string with_lines_of_callers(std::string_view assembly, std::string_view source) {
    const std::string ending = std::string(source.substr(source.rfind('/') + 1)) + "\"";
    std::set<int> own;  // numbers of the source among the files
    bool has_others = false;
    std::string kept;
    kept.reserve(assembly.size());
    while (!assembly.empty()) {
        const std::size_t end = std::min(assembly.find('\n'), assembly.size() - 1) + 1;
        const std::string_view line = assembly.substr(0, end);
        assembly.remove_prefix(end);
        if (line.find(".cfi_startproc") != std::string_view::npos) has_others = false;
        if (const int file = number_behind(line, ".file");
            file >= 0 && line.find(ending) != std::string_view::npos)
            own.insert(file);
        if (const int file = number_behind(line, ".loc"); file >= 0) {
            if (own.contains(file) && has_others) continue;
            has_others = has_others || !own.contains(file);
        }
        kept += line;
    }
    return kept;
}

}  // namespace bitale
