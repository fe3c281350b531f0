// The programs in the documents compile without a warning, run, and print what the page says they print.
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

TEST_CASE("programs in the documents print what the documents say") {
    int count = 0;
    for (const char* page : {"install.md", "guide.md", "from-theano.md", "from-pytorch.md"}) {
        const std::vector<PageProgram> programs = programs_of(page);
        INFO(page);
        CHECK(!programs.empty());
        for (const PageProgram& program : programs) {
            ++count;
            const test::TemporaryFolder folder;
            std::ofstream(folder / "program.cpp") << program.source;
            const Finished compiled = run_command(std::string(BITALE_CXX_COMMAND) +
                                                  " -std=c++20 -Wall -Wextra -Wpedantic -Werror -I" +
                                                  BITALE_SOURCE_DIR + "/include " + (folder / "program.cpp") +
                                                  " -o " + (folder / "program") + " " + BITALE_LINK);
            INFO(program.source << compiled.output);
            REQUIRE(compiled.status == 0);
            const Finished ran = run_command(folder / "program");
            CHECK(ran.status == 0);
            CHECK(ran.output == program.output);
        }
    }
    CHECK(count >= 4);
}

}  // namespace
}  // namespace bitale
