// The documents follow the code: options and paths that they name exist.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "graph/base/options.h"
#include "tests/support/catch.h"

namespace bitale {
namespace {

const std::filesystem::path root = BITALE_SOURCE_DIR;

std::string text_of_file(const std::filesystem::path& path) {
    std::ifstream file(path);
    INFO(path);
    REQUIRE(file);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

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

TEST_CASE("the paths that documents name exist") {
    const std::regex path(
        "`((graph|ops|codegen|runtime|include|tests|examples|scripts|docs|cmake|data|benchmarks)/"
        "[A-Za-z0-9_./]*)`");
    for (const char* page : {"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md",
                             "docs/guide.md", "docs/options.md"}) {
        const std::string text = text_of_file(root / page);
        for (std::sregex_iterator it(text.begin(), text.end(), path); it != std::sregex_iterator(); ++it) {
            if ((*it)[1].str().find("/NAME_") != std::string::npos) continue;  // a pattern
            INFO(page << " names " << (*it)[1]);
            CHECK(std::filesystem::exists(root / (*it)[1].str()));
        }
    }
}

}  // namespace
}  // namespace bitale
