// The lessons: their programs print what the pages say, and each page leads to the next one.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale {
namespace {

const std::filesystem::path folder = std::string(BITALE_SOURCE_DIR) + "/docs/lessons";

// "01-expressions", "02-shared-variables" and so on.
std::vector<std::string> lessons() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

TEST_CASE("the programs of the lessons print what the lessons say") {
    for (const std::string& name : lessons()) {
        const std::vector<PageProgram> programs = programs_of("lessons/" + name + ".md");
        INFO(name);
        REQUIRE(programs.size() == 1);
        // On stderr they print what differs from machine to machine.
        const Finished ran = run_program(LESSONS "/" + name.substr(3) + " 2>/dev/null");
        INFO(ran.output);
        CHECK(ran.status == 0);
        CHECK(ran.output == programs[0].output);
    }
}

TEST_CASE("the lessons are numbered, and each leads to the next one") {
    const std::vector<std::string> names = lessons();
    CHECK(names.size() >= 12);
    const std::string guide = test::text_of_file(BITALE_SOURCE_DIR "/docs/guide.md");
    for (std::size_t k = 0; k < names.size(); ++k) {
        const std::string number = std::to_string(k + 1);
        INFO(names[k]);
        CHECK(names[k].find((k < 9 ? "0" : "") + number + "-") == 0);
        CHECK(guide.find("(lessons/" + names[k] + ".md)") != std::string::npos);
        const std::string text = test::text_of_file(folder / (names[k] + ".md"));
        CHECK(text.find("# " + number + ". ") == 0);
        if (k > 0) CHECK(text.find("(" + names[k - 1] + ".md)") != std::string::npos);
        if (k + 1 < names.size()) CHECK(text.find("(" + names[k + 1] + ".md)") != std::string::npos);
    }
}

}  // namespace
}  // namespace bitale
