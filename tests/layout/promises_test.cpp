// Each row of docs/promises.md names tests that exist.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/layout/files.h"
#include "tests/support/catch.h"

namespace bitale {
namespace {

// Nothing where there is no such file.
std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Holder {
    std::string test, name;  // "faults/steps", and a case in its file
};

// `faults/steps` "name"; `faults/steps` "name": none where it reads otherwise.
std::optional<std::vector<Holder>> holders_in(std::string cell) {
    std::vector<Holder> holders;
    while (!cell.empty()) {
        const std::size_t tick = cell.find("` \""), quote = cell.find('"', tick + 3);
        if (cell[0] != '`' || tick == std::string::npos || quote == std::string::npos) return std::nullopt;
        holders.push_back({cell.substr(1, tick - 1), cell.substr(tick + 3, quote - tick - 3)});
        cell.erase(0, quote + 1);
        if (cell.rfind("; ", 0) == 0)
            cell.erase(0, 2);
        else if (!cell.empty())
            return std::nullopt;
    }
    return holders;
}

std::string without_spaces(const std::string& text) {
    std::string s;
    for (const char c : text)
        if (!std::isspace(static_cast<unsigned char>(c))) s += c;
    return s;
}

// What is wrong with the row of a table, or nothing.
std::string problem_of(const std::string& row) {
    const std::size_t bar = row.find(" | ");
    if (row.rfind("| ", 0) != 0 || bar == std::string::npos || row.size() < bar + 5) return "is no row";
    const std::string cell = row.substr(bar + 3, row.size() - bar - 5);
    if (row.substr(row.size() - 2) != " |" || cell.find('|') != std::string::npos)
        return "has not two columns";
    const auto holders = holders_in(cell);
    if (!holders || holders->empty()) return "names no test, or not as `FOLDER/NAME` \"case\"";
    for (const Holder& holder : *holders) {
        const std::string source = text_of(root / "tests" / (holder.test + "_test.cpp"));
        if (source.empty()) return "names " + holder.test + ", which is no test";
        // A long name may be broken into two literals.
        const std::string start = "TEST_CASE(\"" + holder.name + "\"";
        std::string flat = without_spaces(source);
        for (std::size_t at = 0; (at = flat.find("\"\"", at)) != std::string::npos;) flat.erase(at, 2);
        if (flat.find(without_spaces(start)) == std::string::npos)
            return "names \"" + holder.name + "\", which is no case of " + holder.test;
    }
    return "";
}

TEST_CASE("every promise names tests that exist") {
    std::istringstream page(text_of(root / "docs/promises.md"));
    int rows = 0;
    for (std::string line; std::getline(page, line);) {
        if (line.rfind("|", 0) != 0 || line == "| promise | held by |" || line == "|---|---|") continue;
        ++rows;
        INFO(line);
        CHECK(problem_of(line) == "");
    }
    CHECK(rows > 40);
}

TEST_CASE("rows that hold nothing are told") {
    CHECK(problem_of("| A | `layout/promises` \"rows that hold nothing are told\" |") == "");
    CHECK_THAT(problem_of("| A | `layout/promises` \"rows that hold\" |"), ContainsSubstring("no case of"));
    CHECK_THAT(problem_of("| A | `layout/absent` \"rows\" |"), ContainsSubstring("no test"));
    for (const char* row :
         {"| A |  |", "| A | |", "| A | a test |", "| A | `layout/promises` |",
          "| A | `layout/promises` \"rows that hold nothing are told\", |",
          "| A | `layout/promises` \"rows that hold nothing are told\" `layout/docs` \"x\" |"})
        CHECK(problem_of(row) != "");
}

// Where a case is started by itself, as in a process of its own, by its name in a test's source or a script.
bool is_selected(const std::string& name, const std::string& text) {
    constexpr std::string_view definition = "TEST_CASE(";
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        if (at == 0 || (text[at - 1] != '"' && text[at - 1] != '\'')) continue;
        const std::size_t before = at - 1;
        const bool is_definition =
            before >= definition.size() &&
            text.compare(before - definition.size(), definition.size(), definition) == 0;
        if (!is_definition) return true;
    }
    return false;
}

// Catch ends a name at a comma: it selects nothing then, and succeeds.
TEST_CASE("no case that is selected by its name has a comma in it") {
    std::string all;
    for (const char* folder : {"tests", "scripts"})
        for (const auto& file : std::filesystem::recursive_directory_iterator(root / folder))
            if (file.is_regular_file() && file.path().filename() != "promises_test.cpp")
                all += std::regex_replace(text_of(file.path()), std::regex("\"\\n *\""), "");
    int commas = 0;
    for (std::size_t at = 0; (at = all.find("TEST_CASE(\"", at)) != std::string::npos; ++at) {
        const std::size_t begin = at + 11, end = all.find('"', begin);
        const std::string name = all.substr(begin, end - begin);
        if (name.find(',') == std::string::npos) continue;
        ++commas;
        INFO(name);
        CHECK(!is_selected(name, all));
    }
    CHECK(commas > 20);
    CHECK(is_selected("a, b", "run 'a, b'"));
    CHECK(is_selected("a, b", "passes(\"a, b\")"));
    CHECK(!is_selected("a, b", "TEST_CASE(\"a, b\")"));
}

}  // namespace
}  // namespace bitale
