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

std::string_view first_line(std::string_view text) {
    return text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
}

// Whether the line is the tag of DW_TAG_inlined_subroutine, as g++ or clang writes it among abbreviations.
bool is_tag_of_inlined(std::string_view line, std::string_view behind) {
    if (line.find(".byte\t29 ") != std::string_view::npos)
        return line.find("DW_TAG_inlined_subroutine") != std::string_view::npos;
    if (line != "\t.uleb128 0x1d\n" || behind.empty()) return false;
    const std::string_view children = first_line(behind);
    behind.remove_prefix(children.size());
    return children.starts_with("\t.byte") && behind.starts_with("\t.uleb128");
}

}  // namespace

std::string with_lines_of_callers(std::string_view assembly, std::string_view source) {
    const std::string ending = std::string(source.substr(source.rfind('/') + 1)) + "\"";
    std::set<int> own;  // numbers of the source among the files
    bool has_others = false, in_abbreviations = false;
    std::string kept;
    kept.reserve(assembly.size());
    while (!assembly.empty()) {
        const std::string_view line = first_line(assembly);
        assembly.remove_prefix(line.size());
        if (line.find(".section") != std::string_view::npos)
            in_abbreviations = line.find(".debug_abbrev") != std::string_view::npos;
        if (in_abbreviations && is_tag_of_inlined(line, assembly)) {
            kept += line[1] == '.' && line[2] == 'b' ? "\t.byte\t11\n" : "\t.uleb128 0xb\n";
            continue;
        }
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
