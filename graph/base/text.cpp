#include "graph/base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

namespace bitale {

namespace {

// The length of the UTF-8 character that `text` begins with, and its code; length 0 where there is none.
struct Character {
    std::size_t length = 0;
    std::uint32_t code = 0;
};

Character first_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {1, lead};
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || length > text.size()) return {};
    std::uint32_t code = lead & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};  // no longer than need be
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least.at(length) || surrogate || code > 0x10ffff ? Character{} : Character{length, code};
}

bool is_shown(std::uint32_t code) {
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0),
               line_end = code == 0x2028 || code == 0x2029,
               direction = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                           code == 0x200e || code == 0x200f;
    return !control && !line_end && !direction;
}

void escape(std::string& to, unsigned char byte) {
    constexpr const char* digits = "0123456789abcdef";
    switch (byte) {
        case '\n': to += "\\n"; return;
        case '\t': to += "\\t"; return;
        case '\r': to += "\\r"; return;
        default: to.append({'\\', 'x', digits[byte >> 4], digits[byte & 15]});
    }
}

std::string escaped(std::string_view text, std::string_view marked) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const Character c = first_character(text);
        const std::size_t length = c.length ? c.length : 1;
        const bool shown = c.length && is_shown(c.code);
        if (shown && marked.find(text[0]) != std::string_view::npos) result += '\\';
        for (const char byte : text.substr(0, length)) {
            if (shown)
                result += byte;
            else
                escape(result, static_cast<unsigned char>(byte));
        }
        text.remove_prefix(length);
    }
    return result;
}

// Letters to insert, remove or replace.
std::size_t letters_between(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row.back();
}

}  // namespace

std::vector<std::string> names_like(std::string_view name, const std::set<std::string>& known) {
    constexpr std::size_t most_names = 5, longest = 100, shortest_part = 3;
    if (name.size() > longest) return {};
    const std::size_t most_letters = std::max<std::size_t>(name.size() / 3, 2);
    std::vector<std::pair<std::size_t, std::string>> near;
    for (const std::string& other : known) {
        const std::size_t letters = letters_between(name, other);
        const bool contains = name.size() >= shortest_part && other.find(name) != std::string::npos;
        if (letters <= most_letters || contains) near.emplace_back(letters, other);
    }
    std::sort(near.begin(), near.end());
    if (near.size() > most_names) near.resize(most_names);
    std::vector<std::string> names;
    for (auto& [letters, other] : near) names.push_back(std::move(other));
    return names;
}

std::string did_you_mean(std::string_view name, const std::set<std::string>& known) {
    const std::vector<std::string> near = names_like(name, known);
    return near.empty() ? "" : "; did you mean " + in_quotes(near[0]) + "?";
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
    std::vector<std::string> pieces;
    for (;;) {
        const std::size_t end = text.find_first_of(separators);
        pieces.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return pieces;
        text.remove_prefix(end + 1);
    }
}

std::string printable(std::string_view text) { return escaped(text, {}); }

std::string in_quotes(std::string_view text) { return "\"" + escaped(text, "\"\\") + "\""; }

}  // namespace bitale
