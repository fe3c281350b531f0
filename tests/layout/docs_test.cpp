// The documents follow the code: options and paths that they name exist.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/layout/files.h"
#include "tests/support/catch.h"

namespace bitale {
namespace {

TEST_CASE("every flag is documented, and no other") {
    const std::string page = text_of_file(root / "docs/options.md");
    const std::size_t begin = page.find("| flag |");
    REQUIRE(begin != std::string::npos);
    const std::string table = page.substr(begin, page.find("\n\n", begin) - begin);
    std::istringstream help(flags_help());
    std::ptrdiff_t flags = 0;
    for (std::string line; std::getline(help, line);) {
        std::smatch name;
        if (!std::regex_search(line, name, std::regex("([a-z_]+)="))) continue;
        ++flags;
        CHECK_THAT(table, ContainsSubstring("| `" + name[1].str() + "` |"));
    }
    CHECK(flags > 5);
    CHECK(std::count(table.begin(), table.end(), '\n') == flags + 1);  // a heading, a rule, a row for each
}

// README.md and the others at the top, and all below docs/.
std::vector<std::filesystem::path> pages() {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(root))
        if (entry.path().extension() == ".md") found.push_back(entry.path());
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs"))
        if (entry.path().extension() == ".md") found.push_back(entry.path());
    return found;
}

// The names by which GitHub links to headings, "## `a` and B" as "a-and-b", and those of <a name="...">.
std::set<std::string> anchors_of(const std::string& text) {
    std::set<std::string> anchors;
    std::istringstream lines(text);
    bool in_block = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("```", 0) == 0) in_block = !in_block;
        const std::size_t marks = line.find_first_not_of('#');
        if (!in_block && marks > 0 && marks != std::string::npos && line[marks] == ' ') {
            std::string name;
            for (const char c : line.substr(marks + 1)) {
                if (c == ' ') name += '-';
                if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
                    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            }
            anchors.insert(name);
        }
        std::smatch name;
        if (std::regex_search(line, name, std::regex("<a name=\"([^\"]+)\">"))) anchors.insert(name[1]);
    }
    return anchors;
}

TEST_CASE("the links between documents lead somewhere") {
    const std::regex link("\\]\\(([^)#]*)(?:#([^)]*))?\\)");
    int links = 0;
    for (const std::filesystem::path& page : pages()) {
        const std::string text = text_of_file(page);
        for (std::sregex_iterator it(text.begin(), text.end(), link); it != std::sregex_iterator(); ++it) {
            const std::string to = (*it)[1], anchor = (*it)[2];
            if (to.find("://") != std::string::npos || to.find(' ') != std::string::npos) continue;
            if (to.empty() && anchor.empty()) continue;  // code: [](...)
            ++links;
            const std::filesystem::path target = to.empty() ? page : page.parent_path() / to;
            INFO(page << " links to " << to << "#" << anchor);
            CHECK(std::filesystem::exists(target));
            if (!anchor.empty() && std::filesystem::is_regular_file(target))
                CHECK(anchors_of(text_of_file(target)).count(anchor) == 1);
        }
    }
    CHECK(links > 100);
}

TEST_CASE("the paths that documents name exist") {
    const std::regex path(
        "`((graph|ops|codegen|runtime|include|tests|examples|scripts|docs|cmake|data|benchmarks)/"
        "[A-Za-z0-9_./]*)`");
    for (const std::filesystem::path& page : pages()) {
        const std::string text = text_of_file(page);
        for (std::sregex_iterator it(text.begin(), text.end(), path); it != std::sregex_iterator(); ++it) {
            if ((*it)[1].str().find("/NAME_") != std::string::npos) continue;  // a pattern
            INFO(page << " names " << (*it)[1]);
            const std::string name = (*it)[1];  // or that of a test
            CHECK((std::filesystem::exists(root / name) ||
                   std::filesystem::exists(root / "tests" / (name + "_test.cpp"))));
        }
    }
}

// All sources of the library as one text, string literals of several lines joined.
std::string messages_of_sources() {
    std::string all;
    for (const char* folder : {"graph", "ops", "codegen", "runtime"})
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
            if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h")
                all += text_of_file(entry.path());
    std::string joined;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t next = all[i] == '"' ? all.find_first_not_of(" \n", i + 1) : i;
        if (next > i + 1 && next != std::string::npos && all[next] == '"')
            i = next;
        else
            joined += all[i];
    }
    return joined;
}

TEST_CASE("the messages that the index of errors lists are those of the library") {
    const std::string sources = messages_of_sources();
    std::istringstream page(text_of_file(root / "docs/errors.md"));
    int rows = 0;
    for (std::string line; std::getline(page, line);) {
        std::smatch row;
        if (!std::regex_match(line, row, std::regex("\\| `([^`]+)` \\| (\\w+) \\| .+ \\|"))) continue;
        ++rows;
        INFO(line);
        CHECK(sources.find(row[1].str()) != std::string::npos);
    }
    CHECK(rows > 40);
}

// Else libbitale.so hides what they declare.
TEST_CASE("every public header makes its names visible") {
    int headers = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root / "include/bitale")) {
        const std::string text = text_of_file(entry.path());
        const std::size_t names = text.find("\nnamespace bitale {\n");
        if (names == std::string::npos) continue;
        ++headers;
        INFO(entry.path());
        CHECK(text.find("\n#pragma GCC visibility push(default)\n") < names);
        CHECK(text.rfind("\n#pragma GCC visibility pop\n") > names);
        CHECK(text.rfind("\n#pragma GCC visibility pop\n") != std::string::npos);
    }
    CHECK(headers > 10);
}

TEST_CASE("the ops of the public headers are in the guide") {
    const std::string guide = text_of_file(root / "docs/guide.md");
    std::istringstream header(text_of_file(root / "include/bitale/ops.h"));
    int ops = 0;
    for (std::string line; std::getline(header, line);) {
        std::smatch op;
        if (!std::regex_search(line, op, std::regex("^(?:Expr|TopK|std::vector<Expr>) ([a-z_0-9]+)\\(")))
            continue;
        ++ops;
        INFO(line);
        CHECK(guide.find(op[1].str()) != std::string::npos);
    }
    CHECK(ops > 40);
    std::istringstream table(text_of_file(root / "include/bitale/elementwise_table.h"));
    for (std::string line; std::getline(table, line);) {
        std::smatch op;
        if (!std::regex_search(line, op, std::regex("^BITALE_(?:UNARY|BINARY|TERNARY)\\(([a-z_0-9]+),")))
            continue;
        if (op[1].str().find("philox") == 0) continue;  // what RandomStream is made of
        INFO(line);
        CHECK(guide.find("`" + op[1].str() + "`") != std::string::npos);
    }
}

}  // namespace
}  // namespace bitale
