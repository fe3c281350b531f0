#include "codegen/plan/names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <tuple>

#include "graph/base/lines.h"
#include "graph/base/text.h"
#include "graph/types/shape.h"

namespace bitale {

// FNV-1a twice with different seeds: names of kernels, not security.
std::string hash_text(const std::string& text) {
    std::uint64_t a = 0xcbf29ce484222325ull, b = 0x9ae16a3b2f90404full;
    for (const char c : text) {
        a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
        b = (b ^ static_cast<unsigned char>(c)) * 0x3f58476d1ce4e5b9ull;
        b ^= b >> 29;
    }
    char name[40];
    std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(a ^ (b << 1)));
    return name;
}

void sort_origins(std::vector<Origin>& list) {
    std::sort(list.begin(), list.end(), [](const Origin& a, const Origin& b) {
        return std::tie(a.where.line, a.what, a.of_gradient) < std::tie(b.where.line, b.what, b.of_gradient);
    });
    list.erase(std::unique(list.begin(), list.end(),
                           [](const Origin& a, const Origin& b) {
                               return a.where.line == b.where.line && a.what == b.what;
                           }),
               list.end());
}

const char* name_of(BufferInfo::Kind kind) {
    switch (kind) {
        case BufferInfo::Kind::arena: return "arena";
        case BufferInfo::Kind::input: return "input";
        case BufferInfo::Kind::shared: return "shared";
        case BufferInfo::Kind::constant: return "constant";
        case BufferInfo::Kind::output: return "output";
        case BufferInfo::Kind::errors: return "errors";
        case BufferInfo::Kind::slice: return "slice";
        case BufferInfo::Kind::counters: return "counters";
    }
    return "";
}

std::string describe(const Program& program, int buffer) {
    const BufferInfo& b = program.buffers[static_cast<std::size_t>(buffer)];
    std::string s = std::string(name_of(b.kind)) + (b.name.empty() ? "" : " " + in_quotes(b.name)) + ", " +
                    text_of(b.type);
    for (const Origin& origin : b.origins)
        if (const std::string at = at_line(origin.where); !at.empty()) return s + at;
    return s;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

}  // namespace bitale
