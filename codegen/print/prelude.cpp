// Takes the headers of codegen/device apart at their blank lines and selects what is used.
#include "codegen/print/prelude.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "codegen/device/embedded.h"
#include "codegen/print/functions.h"

namespace bitale {

namespace {

struct Header {
    std::string_view text;
    bool wide;  // only for programs with f64
};
// What a text uses comes earlier in this list, or earlier in its own file.
constexpr Header headers[] = {
    {device_convert, false},  {device_integer, false},     {device_index, false},
    {device_warp, false},     {device_vector, false},      {device_lanes, false},
    {device_best, false},     {device_pair, false},        {device_bytes, false},
    {device_columns, false},  {device_sort, false},        {device_past, false},
    {device_tile, false},     {device_phases, false},      {device_philox, false},
    {device_real, false},     {device_exp_f32, false},     {device_log_f32, false},
    {device_trig_f32, false}, {device_special_f32, false}, {device_inverse_f32, false},
    {device_exp_f64, true},   {device_log_f64, true},      {device_trig_f64, true},
    {device_erf_f64, true},   {device_inverse_f64, true}};
constexpr std::string_view wide = "f64";

bool is_helper(std::string_view word) { return word.starts_with("b_") || word.starts_with("B_"); }

// The lines for one of the two dialects: `#ifdef __CUDACC__ ... #else ... #endif` is decided here.
std::string one_dialect(std::string_view text, bool cuda) {
    struct Condition {
        bool decided, taken;
    };
    std::vector<Condition> open;
    std::string kept;
    for (const std::string_view line : lines_of(text)) {
        bool decided = false;
        if (line.starts_with("#if")) {
            decided = line == "#ifdef __CUDACC__";
            open.push_back({decided, !decided || cuda});
        } else if (line.starts_with("#else") && open.back().decided) {
            decided = true;
            open.back().taken = !open.back().taken;
        }
        bool keep = !decided;
        for (const Condition& c : open) keep = keep && c.taken;
        if (line.starts_with("#endif")) {
            keep = !open.back().decided;
            open.pop_back();
            for (const Condition& c : open) keep = keep && c.taken;
        }
        if (keep) kept.append(line).push_back('\n');
    }
    return kept;
}

struct Part {
    std::string text;
    bool wide = false;
    std::set<std::string> defines, uses;
};

Part part_of(std::string text) {
    Part part;
    part.text = std::move(text);
    for (const std::string_view line : lines_of(part.text)) {
        if (line.starts_with("//")) continue;
        const std::vector<std::string_view> words = words_of(line);
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (!is_helper(words[i])) continue;
            part.uses.emplace(words[i]);
            // B_FN type NAME( · B_TABLE type NAME[ · #define NAME · struct NAME · GENERATOR(NAME, ...
            const std::string_view before = i > 0 ? words[i - 1] : "", first = i > 1 ? words[i - 2] : "";
            if (first == "B_FN" || first == "B_COLD" || first == "B_TABLE" || before == "define" ||
                before == "struct" || (i == 1 && before.starts_with("B_")))
                part.defines.emplace(words[i]);
        }
    }
    return part;
}

std::vector<Part> parts_of(const Header& header, bool cuda) {
    std::vector<Part> parts;
    const std::string dialect = one_dialect(header.text, cuda);
    std::string current;
    const auto close = [&] {
        Part part = part_of(std::move(current));
        part.wide = header.wide;
        if (!part.defines.empty()) parts.push_back(std::move(part));
        current.clear();
    };
    const std::vector<std::string_view> lines = lines_of(dialect);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool within =
            i + 1 < lines.size() && lines[i + 1].starts_with(' ');  // a function's body goes on
        if (lines[i].empty() && !within)
            close();
        else
            current.append(lines[i]).push_back('\n');
    }
    close();
    return parts;
}

struct Library {
    std::string base;
    std::vector<Part> parts;
    std::map<std::string, std::vector<std::size_t>> defining;  // a name's overloads may lie in several parts
};

Library read_library(bool cuda) {
    Library library;
    // Without the file's opening comment, which explains the folder.
    library.base = one_dialect(device_base.substr(device_base.find("\n\n") + 2), cuda);
    for (const Header& header : headers) {
        std::vector<Part> parts = parts_of(header, cuda);
        library.parts.insert(library.parts.end(), std::make_move_iterator(parts.begin()),
                             std::make_move_iterator(parts.end()));
    }
    for (std::size_t i = 0; i < library.parts.size(); ++i)
        for (const std::string& name : library.parts[i].defines) library.defining[name].push_back(i);
    return library;
}

const Library& library_of(bool cuda) {
    if (cuda) {
        static const Library& for_cuda = *new Library(read_library(true));
        return for_cuda;
    }
    static const Library& for_cpu = *new Library(read_library(false));
    return for_cpu;
}

}  // namespace

std::set<std::string> device_names(std::string_view text) {
    std::set<std::string> names;
    for (const std::string_view word : words_of(text))
        if (is_helper(word) || word == wide) names.emplace(word);
    return names;
}

std::string device_prelude(bool cuda, const std::set<std::string>& used) {
    const Library& library = library_of(cuda);
    std::vector<bool> taken(library.parts.size(), false);
    std::vector<std::string> todo(used.begin(), used.end());
    while (!todo.empty()) {
        const auto found = library.defining.find(todo.back());
        todo.pop_back();
        if (found == library.defining.end()) continue;
        for (const std::size_t i : found->second) {
            if (taken[i] || (library.parts[i].wide && !used.contains(std::string(wide)))) continue;
            taken[i] = true;
            todo.insert(todo.end(), library.parts[i].uses.begin(), library.parts[i].uses.end());
        }
    }
    std::string text = library.base;
    for (std::size_t i = 0; i < taken.size(); ++i)
        if (taken[i]) text += "\n" + library.parts[i].text;
    return text;
}

std::string device_prelude(bool cuda) {
    std::set<std::string> all = {std::string(wide)};
    for (const auto& [name, parts] : library_of(cuda).defining) all.insert(name);
    return device_prelude(cuda, all);
}

}  // namespace bitale
