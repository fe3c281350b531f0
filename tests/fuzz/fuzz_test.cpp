// The fuzz targets, a second each; a minute each as slow tests. tests/fuzz/libfuzzer has the same targets for
// clang's libFuzzer.
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tests/fuzz/mutate.h"
#include "tests/support/catch.h"

using namespace bitale::fuzz;

namespace {

std::string readable(const std::string& bytes) {
    std::string s;
    for (const char c : bytes) {
        if (c >= 32 && c < 127 && c != '\\') {
            s += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        s += std::string("\\x") + "0123456789abcdef"[byte >> 4] + "0123456789abcdef"[byte & 15];
    }
    return s;
}

std::vector<std::string> kept(const Target& target) {
    return corpus_of(std::string(BITALE_SOURCE_DIR "/tests/fuzz/corpus/") + target.name);
}

void run(double seconds, std::uint64_t seed, const std::string& only = "") {
    REQUIRE((only.empty() || target_named(only)));
    for (const Target& target : targets()) {
        if (!only.empty() && target.name != only) continue;
        const Outcome outcome = fuzz(target, kept(target), {.seconds = seconds, .seed = seed});
        std::cout << target.name << ": " << outcome.executions << " executions\n";
        INFO(target.name << ", seed " << seed << ", execution " << outcome.executions);
        INFO((outcome.finding ? outcome.finding->what + ": " + readable(outcome.finding->input) : ""));
        CHECK_FALSE(outcome.finding);
        CHECK(outcome.executions > kept(target).size());
    }
}

}  // namespace

TEST_CASE("kept inputs reach behind the first check of each target") {
    for (const Target& target : targets()) {
        INFO(target.name);
        const std::vector<std::string> inputs = kept(target);
        CHECK(inputs.size() >= 3);
        // Mutations of inputs that a target refuses end where these do: at the version of a format, say.
        CHECK(std::count_if(inputs.begin(), inputs.end(), target.run) >= 1);
    }
    CHECK(target_named("npz"));
    CHECK_FALSE(target_named("none"));
}

TEST_CASE("what leaves a target is found, and found again by its seed") {
    const Target planted{"planted", [](std::string_view bytes) {
                             if (bytes.size() > 2 && bytes[1] == 'x') throw std::runtime_error("planted");
                             return true;
                         }};
    const Effort effort{.seconds = 60, .executions = 1000000, .seed = 7};
    const Outcome one = fuzz(planted, {"abcdef"}, effort), two = fuzz(planted, {"abcdef"}, effort);
    REQUIRE(one.finding);
    CHECK(one.finding->what == "planted");
    CHECK(one.finding->input == two.finding->input);
    CHECK(one.executions == two.executions);
}

TEST_CASE("a second of each target") { run(1, 1); }

// BITALE_FUZZ_SECONDS and BITALE_FUZZ_SEED for longer runs, BITALE_FUZZ_TARGET for one target alone.
TEST_CASE("a minute of each target", "[slow]") {
    const char* seconds = std::getenv("BITALE_FUZZ_SECONDS");
    const char* seed = std::getenv("BITALE_FUZZ_SEED");
    const char* only = std::getenv("BITALE_FUZZ_TARGET");
    run(seconds ? std::atof(seconds) : 60, seed ? static_cast<std::uint64_t>(std::atoll(seed)) : 2,
        only ? only : "");
}
