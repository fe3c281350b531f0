// The README tells the truth: its program is examples/readme.cpp, and its output is what that prints.
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale {
namespace {

std::string text_of_file(const std::string& path) {
    std::ifstream file(path);
    REQUIRE(file);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fenced block after the given fence.
std::string block(const std::string& text, const std::string& fence) {
    const std::size_t begin = text.find("\n" + fence + "\n");
    REQUIRE(begin != std::string::npos);
    const std::size_t first = begin + fence.size() + 2, last = text.find("\n```\n", first);
    REQUIRE(last != std::string::npos);
    return text.substr(first, last + 1 - first);
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

const std::string source_dir = BITALE_SOURCE_DIR;

TEST_CASE("the README's program is an example") {
    const std::string example = text_of_file(source_dir + "/examples/readme.cpp");
    const std::size_t first_include = example.find("#include");
    CHECK(block(text_of_file(source_dir + "/README.md"), "```cpp") == example.substr(first_include));
}

// Numbers may differ in their last digit between machines: matrix products sum in an order of their own.
TEST_CASE("the README's output is the program's") {
    const Finished f = run_program("readme " + source_dir + "/data/mnist");
    INFO(f.output);
    REQUIRE(f.status == 0);
    const auto expected = words_of(block(text_of_file(source_dir + "/README.md"), "```text"));
    const auto actual = words_of(f.output);
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
        if (actual[i] == expected[i]) continue;
        char* end = nullptr;
        const double number = std::strtod(actual[i].c_str(), &end);
        REQUIRE(*end == 0);
        CHECK(number == Approx(std::stod(expected[i])).margin(0.002));
    }
}

TEST_CASE("the README's picture shows the step as it is planned") {
    const test::TemporaryFolder folder;
    const Finished f = run_program("/usr/bin/env BITALE_DUMP=" + folder.path() + " " EXAMPLES "/readme " +
                                   source_dir + "/data/mnist");
    INFO(f.output);
    REQUIRE(f.status == 0);
    const auto plan = nlohmann::json::parse(text_of_file(folder / "001_step/memory_plan.json"));
    CHECK(plan["steps"].size() == 3);
    std::vector<std::int64_t> stored, shared;
    for (const auto& buffer : plan["buffers"]) {
        if (buffer["kind"] == "temporary" || buffer["kind"] == "saved") stored.push_back(buffer["bytes"]);
        if (buffer["kind"] == "shared") shared.push_back(buffer["bytes"]);
    }
    CHECK(stored == std::vector<std::int64_t>{24000, 2400, 4});
    CHECK(shared == std::vector<std::int64_t>{47040000, 60000, 31360, 40});
    const std::string picture = text_of_file(source_dir + "/docs/pictures/readme_step.svg");
    for (const char* shown :
         {"47.0 MB", "60 kB", "31 kB", "40 B", "the sum, 4 B", "24 kB", "2.4 kB", "Kernel 3"})
        CHECK_THAT(picture, ContainsSubstring(shown));
    CHECK(picture.find("Kernel 4") == std::string::npos);
}

}  // namespace
}  // namespace bitale
