// The programs in the documents compile without a warning, run, and print what the page says they print.
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale {
namespace {

struct Program {
    std::string page, source, output;
};

// Fenced blocks of C++ that begin with an #include are programs; the block of text that follows is their
// output.
std::vector<Program> programs_of(const std::string& page) {
    std::ifstream file(std::string(BITALE_SOURCE_DIR) + "/docs/" + page);
    REQUIRE(file);
    std::vector<Program> programs;
    std::string* block = nullptr;
    std::string source;
    for (std::string line; std::getline(file, line);) {
        if (line == "```cpp") {
            source.clear();
            block = &source;
        } else if (line == "```text" && source.find("#include") == 0) {
            programs.push_back({page, source, ""});
            block = &programs.back().output;
            source.clear();
        } else if (line.find("```") == 0) {
            block = nullptr;
        } else if (block) {
            *block += line + "\n";
        }
    }
    INFO(page << ": the output of the last program is missing");
    CHECK(source.find("#include") != 0);
    return programs;
}

// A command that is no example: those have a folder of their own.
Finished run(const std::string& command) {
    Finished f;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    REQUIRE(pipe);
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) f.output += static_cast<char>(c);
    const int status = pclose(pipe);
    f.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return f;
}

TEST_CASE("programs in the documents print what the documents say") {
    int count = 0;
    for (const char* page : {"install.md", "guide.md", "from-theano.md", "from-pytorch.md"}) {
        const std::vector<Program> programs = programs_of(page);
        INFO(page);
        CHECK(!programs.empty());
        for (const Program& program : programs) {
            ++count;
            const test::TemporaryFolder folder;
            std::ofstream(folder / "program.cpp") << program.source;
            const Finished compiled =
                run(std::string(BITALE_CXX_COMMAND) + " -std=c++20 -Wall -Wextra -Wpedantic -Werror -I" +
                    BITALE_SOURCE_DIR + "/include " + (folder / "program.cpp") + " -o " +
                    (folder / "program") + " " + BITALE_LINK);
            INFO(program.source << compiled.output);
            REQUIRE(compiled.status == 0);
            const Finished ran = run(folder / "program");
            CHECK(ran.status == 0);
            CHECK(ran.output == program.output);
        }
    }
    CHECK(count >= 4);
}

}  // namespace
}  // namespace bitale
