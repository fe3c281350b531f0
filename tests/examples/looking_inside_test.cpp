// docs/looking-inside.md: its program prints the report that stands there, and its dump has the text that
// stands there.
#include <filesystem>
#include <iterator>
#include <regex>
#include <string>

#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale {
namespace {

// The fenced block after the given fence, from `from` on, which is moved behind it.
std::string block(const std::string& text, const std::string& fence, std::size_t& from) {
    const std::size_t begin = text.find("\n" + fence + "\n", from);
    REQUIRE(begin != std::string::npos);
    const std::size_t first = begin + fence.size() + 2, last = text.find("\n```\n", first);
    REQUIRE(last != std::string::npos);
    from = last;
    return text.substr(first, last + 1 - first);
}

// Estimates and names of kernels change with the code that is generated, and columns with them.
std::string without_numbers(const std::string& text) {
    const std::string named = std::regex_replace(text, std::regex("k_[0-9a-f]{16}"), "k_HASH");
    return std::regex_replace(std::regex_replace(named, std::regex("[0-9]+([.][0-9]+)?"), "#"),
                              std::regex(" +"), " ");
}

// On the processor that the page names, whatever this machine has.
bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") != 0;
#else
    return false;
#endif
}

TEST_CASE("the page on looking inside shows what is seen") {
    if (!has_avx2()) return;
    const std::string page = test::text_of_file(std::string(BITALE_SOURCE_DIR) + "/docs/looking-inside.md");
    std::size_t at = 0;
    const std::string program = block(page, "```cpp", at), report = block(page, "```text", at),
                      readable = block(page, "```text", at);
    const test::TemporaryFolder folder;
    test::write_file(folder / "net.cpp", program);
    const Finished compiled =
        run_command(std::string(BITALE_CXX_COMMAND) + " -std=c++20 -Wall -Wextra -Wpedantic -Werror -I" +
                    BITALE_SOURCE_DIR + "/include " + (folder / "net.cpp") + " -o " + (folder / "net") + " " +
                    BITALE_LINK);
    INFO(compiled.output);
    REQUIRE(compiled.status == 0);
    const Finished ran = run_command(
        "BITALE_FLAGS=cpu_target=x86-64-v3,disable=onednn,threads=2,cache_dir=" + (folder / "cache") +
        " BITALE_DUMP=" + (folder / "dump") + " " + (folder / "net"));
    CHECK(ran.status == 0);
    CHECK(without_numbers(ran.output) == without_numbers(report));

    // The page shows the beginning of the kernel with the convolution.
    std::string shown;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "dump/001_step/kernels")) {
        if (!entry.path().filename().string().ends_with(".readable.cpp")) continue;
        const std::string text = test::text_of_file(entry.path().string());
        if (text.find(": conv2d + max_pool + pool_winner\n") != std::string::npos) shown = text;
    }
    CHECK(without_numbers(shown).starts_with(without_numbers(readable)));
}

}  // namespace
}  // namespace bitale
