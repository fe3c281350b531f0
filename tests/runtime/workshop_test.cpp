// Where kernels are compiled: what is said and what is left where that fails.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "runtime/cache/workshop.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/small_disk.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Of kernels that no other test has compiled.
Function made(int number) {
    const Expr x = vector("x");
    return function({x}, exp(x) * static_cast<double>(getpid()) + number, {.device = "cpu"});
}

Options compiling(const std::string& compiler, const std::string& cache) {
    Options o;
    o.compiler = compiler;
    o.cache = !cache.empty();
    o.cache_directory = cache;
    return o;
}

std::string failing_compiler(const TemporaryFolder& folder, const std::string& text) {
    const std::string path = folder / "cc";
    write_file(path, "#!/bin/sh\n" + text);
    REQUIRE(chmod(path.c_str(), 0700) == 0);
    return path;
}

std::string refusal(int number) {
    return message_of<CompileError>([&] { made(number); });
}

std::string source_in(const std::string& message) {
    const std::size_t at = message.find("source: ") + 8;
    return message.substr(at, message.find('\n', at) - at);
}

}  // namespace

TEST_CASE("the folder of a failure stays once for each kernel, and messages name it",
          "[core][runtime][compiler]") {
    const TemporaryFolder folder, temporary;
    const ScopedVariable variable("TMPDIR", temporary.path());
    const auto kept = [&] {
        const std::filesystem::directory_iterator entries(temporary.path());
        return std::distance(begin(entries), end(entries));
    };
    int number = 0;
    for (const bool cached : {false, true}) {
        const std::string cache = cached ? folder / "cache" : "";
        for (const bool hangs : {false, true}) {
            const char* const script =
                hangs ? "[ \"$1\" = --version ] && exit 0\nsleep 100\n" : "echo nonsense\nexit 3\n";
            Options o = compiling(failing_compiler(folder, script), cache);
            if (hangs) o.compiler_seconds = 1;
            CAPTURE(cached, hangs);
            const ScopedOptions scoped(o);
            const auto before = kept();
            const int f = ++number, g = ++number;
            const std::string first = refusal(f);
            CHECK(kept() == before + 1);
            const std::string source = source_in(first);
            CHECK(source.starts_with(temporary.path() + "/"));
            for (int i = 0; i < (hangs ? 1 : 5); ++i) CHECK(source_in(refusal(f)) == source);
            CHECK(kept() == before + 1);
            CHECK_THAT(text_of_file(source), ContainsSubstring("extern \"C\""));
            CHECK(source_in(refusal(g)) != source);
            CHECK(kept() == before + 2);
            // Who has tidied up gets the files again.
            std::filesystem::remove_all(std::filesystem::path(source).parent_path());
            CHECK_FALSE(text_of_file(source_in(refusal(f))).empty());
            CHECK(kept() == before + 2);
        }
    }
}

TEST_CASE("a cache in which nothing can be built is told once for a folder", "[core][runtime][compiler]") {
    if (geteuid() != 0) return;  // for others the folder cannot be used in the first place
    FILE* const said = tmpfile();
    REQUIRE(said);
    const pid_t child = fork();
    if (child == 0) {
        dup2(fileno(said), STDERR_FILENO);
        const ScopedOptions scoped(compiling("", "/proc"));
        for (const int number : {101, 102, 103}) made(number);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    std::string text(20000, '\0');
    rewind(said);
    text.resize(fread(text.data(), 1, text.size(), said));
    fclose(said);
    const std::string words = "nothing can be built in \"/proc\"";
    const std::size_t first = text.find(words);
    REQUIRE(first != std::string::npos);
    CHECK(text.find(words, first + 1) == std::string::npos);
}

TEST_CASE("where nothing can be compiled for want of a folder, room or files, the cure says so",
          "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const auto where = Catch::Matchers::StartsWith("workshop_test.cpp:");
    {
        const ScopedOptions scoped(compiling("", ""));
        const ScopedVariable variable("TMPDIR", folder / "absent");
        CHECK_THAT(refusal(201), where && ContainsSubstring("cannot be made") &&
                                     ContainsSubstring("of function") && ContainsSubstring("TMPDIR"));
    }
    {
        const ScopedOptions scoped(compiling(
            failing_compiler(folder, "echo 'cc1plus: error: No space left on device'\nexit 1\n"), ""));
        const ScopedVariable variable("TMPDIR", folder.path());
        CHECK_THAT(refusal(201), where && ContainsSubstring("Cure: make room") &&
                                     ContainsSubstring("TMPDIR") && !ContainsSubstring("BITALE_CXX"));
    }
    if (const SmallDisk disk(8); disk.mounted()) {
        const ScopedOptions scoped(compiling("", ""));
        const ScopedVariable variable("TMPDIR", disk.path());
        CHECK_THAT(refusal(201), where && ContainsSubstring("make room") && ContainsSubstring("TMPDIR"));
    }
    const ScopedOptions scoped(compiling("", ""));
    const ScopedVariable variable("TMPDIR", folder.path());
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int next = dup(0);
    close(next);
    for (const int more : {0, 1, 2, 3}) {
        rlimit few = before;
        few.rlim_cur = static_cast<rlim_t>(next + more);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
        std::string message;
        try {
            made(202);
        } catch (const CompileError& e) {
            message = e.what();
        }
        REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
        CAPTURE(more);
        if (message.empty()) break;  // as many as it needs
        CHECK_THAT(message, where && ContainsSubstring("ulimit -n") && !ContainsSubstring("BITALE_CXX"));
    }
}
