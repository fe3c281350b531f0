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
                             "docs/guide.md", "docs/options.md", "docs/install.md", "docs/errors.md",
                             "docs/from-theano.md", "docs/from-pytorch.md", "docs/looking-inside.md"}) {
        const std::string text = text_of_file(root / page);
        for (std::sregex_iterator it(text.begin(), text.end(), path); it != std::sregex_iterator(); ++it) {
            if ((*it)[1].str().find("/NAME_") != std::string::npos) continue;  // a pattern
            INFO(page << " names " << (*it)[1]);
            CHECK(std::filesystem::exists(root / (*it)[1].str()));
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
