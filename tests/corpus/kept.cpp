#include "tests/corpus/kept.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace bitale::corpus {

namespace {

std::string path_of(const std::string& name) { return BITALE_SOURCE_DIR "/tests/corpus/" + name; }

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

}  // namespace

bool updates_files() {
    const char* value = std::getenv("BITALE_TEST_UPDATE");
    return value && std::string(value) == "1";
}

std::string kept(const std::string& name) {
    std::ifstream file(path_of(name));
    std::ostringstream text;
    if (file) text << file.rdbuf();
    return text.str();
}

void keep(const std::string& name, const std::string& text) {
    std::ofstream file(path_of(name));
    file << text;
    if (!file.flush()) throw std::runtime_error(path_of(name) + " cannot be written");
}

std::string difference_of_lines(const std::string& before, const std::string& now) {
    if (before == now) return {};
    const std::vector<std::string> a = lines_of(before), b = lines_of(now);
    std::size_t i = 0, j = 0, shown = 0;
    std::string s;
    const auto show = [&](char mark, const std::string& line) {
        if (++shown <= 40) s += std::string(1, mark) + " " + line + "\n";
    };
    // The nearest line that both have again ends a difference.
    while (i < a.size() || j < b.size()) {
        if (i < a.size() && j < b.size() && a[i] == b[j]) {
            ++i, ++j;
            continue;
        }
        std::size_t skip_a = a.size() - i, skip_b = b.size() - j;
        for (std::size_t p = 0; p < a.size() - i && p < skip_a + skip_b; ++p)
            for (std::size_t q = 0; q < b.size() - j && p + q < skip_a + skip_b; ++q)
                if (a[i + p] == b[j + q]) skip_a = p, skip_b = q;
        for (; skip_a; --skip_a) show('-', a[i++]);
        for (; skip_b; --skip_b) show('+', b[j++]);
    }
    if (shown > 40) s += "... " + std::to_string(shown - 40) + " more lines\n";
    return s.empty() ? "the ends of lines differ\n" : s;
}

}  // namespace bitale::corpus
