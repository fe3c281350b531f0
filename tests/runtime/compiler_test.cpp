// The host compiler: missing, failing, cached, and how its failures read.
#include "runtime/cpu/compiler.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "bitale/function.h"
#include "bitale/ops.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cpu/objects.h"
#include "runtime/cpu/program.h"
#include "tests/support/catch.h"
#include "tests/support/small_disk.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

HostCompiler compiler() {
    const CompilerSearch search = find_compiler();
    REQUIRE(search.found);
    return *search.found;
}

// A program of one kernel that adds `amount` to an int64.
Program adding(const std::string& name, const std::string& amount) {
    Program p;
    p.name = name;
    p.prelude = "typedef long long i64;";
    p.kernels.push_back(
        {name,
         {name},
         "extern \"C\" void " + name +
             "(void* const* b, const i64* s, i64 first, i64 last) {\n  *(i64*)b[0] += " + amount + ";\n}",
         {},
         {},
         {},
         {}});
    return p;
}

std::int64_t run(const LoadedKernels& kernels) {
    std::int64_t x = 1;
    void* buffers[] = {&x};
    kernels.entries.at(0).at(0)(buffers, nullptr, 0, 1);
    return x;
}

Options with_cache(const std::string& directory) {
    Options o;
    o.cache_directory = directory;
    return o;
}

void make_script(const std::string& path, const std::string& text) {
    write_file(path, "#!/bin/sh\n" + text);
    REQUIRE(chmod(path.c_str(), 0700) == 0);
}

}  // namespace

TEST_CASE("the compiler is what the user names, or the first one on PATH", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    make_script(folder / "my c++", "exit 0\n");
    {
        const ScopedVariable variable("BITALE_CXX", folder / "my c++");
        REQUIRE(find_compiler().found->command == std::vector<std::string>{folder / "my c++"});
    }
    {
        const ScopedVariable variable("BITALE_CXX", "env g++");
        const CompilerSearch search = find_compiler();
        REQUIRE(search.found->command.size() == 2);
        REQUIRE(search.found->command[1] == "g++");
    }
    {
        const ScopedVariable variable("BITALE_CXX", "/no/such/compiler");
        const CompilerSearch search = find_compiler();
        REQUIRE(!search.found);
        REQUIRE_THAT(search.problem,
                     ContainsSubstring("/no/such/compiler") && ContainsSubstring("BITALE_CXX"));
        Options o;
        o.compiler = folder / "my c++";
        const ScopedOptions chosen(o);
        REQUIRE(find_compiler().found);
    }
    const ScopedVariable variable("BITALE_CXX", std::nullopt), path("PATH", folder.path());
    REQUIRE_THAT(find_compiler().problem, ContainsSubstring("c++") && ContainsSubstring("PATH"));
    make_script(folder / "clang++", "exit 0\n");
    REQUIRE(find_compiler().found->command[0] == folder / "clang++");
}

TEST_CASE("another compiler is another identity", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    make_script(folder / "cc", "exit 0\n");
    const ScopedVariable variable("BITALE_CXX", folder / "cc");
    const std::string before = find_compiler().found->identity;
    REQUIRE(find_compiler().found->identity == before);
    make_script(folder / "cc", "exit 0 # another one\n");
    REQUIRE(find_compiler().found->identity != before);
}

TEST_CASE("a text that does not compile is shown around its fault", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const ScopedOptions scoped(with_cache(folder / "cache"));
    Program p = adding("k_broken", "nonsense");
    const std::string message = message_of<CompileError>([&] { load_kernels(p, compiler(), 2); });
    REQUIRE_THAT(message, ContainsSubstring("exit status 1") && ContainsSubstring("-ffp-contract=off") &&
                              ContainsSubstring("> ") && ContainsSubstring("*(i64*)b[0] += nonsense") &&
                              ContainsSubstring("error") &&
                              ContainsSubstring("\nCure: another compiler, named by BITALE_CXX"));
    // The source that the message names is still there.
    const std::size_t at = message.find("source: ") + 8;
    const std::string source = message.substr(at, message.find('\n', at) - at);
    REQUIRE_THAT(text_of_file(source), ContainsSubstring("nonsense"));
}

TEST_CASE("a compiler that dies, lies or cannot start is a CompileError", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const ScopedOptions scoped(with_cache(folder / "cache"));
    const auto failure = [&](const std::string& script) {
        make_script(folder / "cc", script);
        const ScopedVariable variable("BITALE_CXX", folder / "cc");
        return message_of<CompileError>([&] { load_kernels(adding("k_any", "1"), compiler(), 1); });
    };
    const auto by_hand = Catch::Matchers::EndsWith(
        "\nCure: run the command by hand to see what it lacks, or name another compiler by BITALE_CXX or by "
        "compiler= in BITALE_FLAGS");
    REQUIRE_THAT(failure("echo my own words; exit 3\n"),
                 ContainsSubstring("exit status 3") && ContainsSubstring("my own words") && by_hand);
    REQUIRE_THAT(
        failure("kill -9 $$\n"),
        ContainsSubstring("killed by signal 9, which is what the system does when memory runs out") &&
            by_hand);
    REQUIRE_THAT(failure("kill -11 $$\n"), ContainsSubstring("killed by signal 11)") && by_hand);
    REQUIRE_THAT(failure("exit 0\n"), ContainsSubstring("no object"));
    REQUIRE_THAT(failure("echo internal compiler error: here; exit 1\n"),
                 ContainsSubstring("exit status 1") && ContainsSubstring("internal compiler error: here"));
    REQUIRE_THAT(failure("while [ \"$1\" != -o ]; do shift; done; echo junk > \"$2\"\n"),
                 ContainsSubstring("cannot be loaded"));
    write_file(folder / "not a program", "\x7f junk");
    REQUIRE(chmod((folder / "not a program").c_str(), 0700) == 0);
    const ScopedVariable variable("BITALE_CXX", folder / "not a program");
    REQUIRE_THROWS_AS(load_kernels(adding("k_any", "1"), compiler(), 1), CompileError);
}

TEST_CASE("a kernel in which the compiler finds an error of its own is compiled without vectors",
          "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const ScopedOptions scoped(with_cache(folder / "cache"));
    const std::string real = compiler().command.front();
    make_script(folder / "cc",
                "case \"$*\" in\n*-fno-tree-vectorize*|*--version*|*-print-prog-name*) exec '" + real +
                    "' \"$@\";;\n*) echo 'internal compiler error: in extract_insn'; exit 1;;\nesac\n");
    const ScopedVariable variable("BITALE_CXX", folder / "cc");
    REQUIRE_NOTHROW(load_kernels(adding("k_any", "1"), compiler(), 1));
}

namespace {

// What the child of this process says that does it, or how the child ended; ended itself after half a minute.
template <class Work>
std::string said_by_a_child(const TemporaryFolder& folder, Work&& work) {
    const std::string said = folder / "said";
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        std::string text;
        try {
            text = work();
        } catch (const CompileError& e) {
            text = std::string("CompileError: ") + e.what();
        } catch (const std::exception& e) {
            text = std::string("another error: ") + e.what();
        }
        write_file(said, text);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    return text_of_file(said);
}

// A compiler that works, and then does something with its object, "$2".
void make_careless_compiler(const std::string& path, const std::string& then) {
    make_script(path,
                KERNEL_COMPILER " \"$@\" || exit\nwhile [ \"$1\" != -o ]; do shift; done\n" + then + "\n");
}

}  // namespace

TEST_CASE("an object that cannot be loaded is a CompileError, whatever it is", "[core][runtime][compiler]") {
    const TemporaryFolder folder, temporary;
    const ScopedVariable variable("TMPDIR", temporary.path());
    const ScopedOptions scoped(with_cache(folder / "cache"));
    const auto failure = [&](const std::string& then) {
        make_careless_compiler(folder / "cc", then);
        const ScopedVariable named("BITALE_CXX", folder / "cc");
        return said_by_a_child(folder, [] {
            load_kernels(adding("k_careless", "1"), compiler(), 1);
            return std::string("loaded");
        });
    };
    for (const char* size : {"200", "4096", "8192", "-1"}) {
        INFO("truncate -s " << size);
        CHECK_THAT(failure("truncate -s " + std::string(size) + " \"$2\""),
                   ContainsSubstring("CompileError") && ContainsSubstring("cannot be loaded") &&
                       ContainsSubstring("is cut off") && ContainsSubstring("k_careless") &&
                       ContainsSubstring("BITALE_CXX"));
    }
    CHECK_THAT(failure("rm \"$2\"; mkfifo \"$2\""),
               ContainsSubstring("CompileError") && ContainsSubstring("is no regular file"));
    CHECK_THAT(failure("rm \"$2\"; mkdir \"$2\""),
               ContainsSubstring("CompileError") && ContainsSubstring("is no regular file"));
    CHECK_THAT(failure(": > \"$2\""), ContainsSubstring("CompileError"));
    CHECK_THAT(failure("echo > '" + (folder / "empty.cpp") + "'; c++ -shared -fPIC -o \"$2\" '" +
                       (folder / "empty.cpp") + "'"),
               ContainsSubstring("CompileError") && ContainsSubstring("has no k_careless") &&
                   ContainsSubstring("BITALE_CXX"));
}

TEST_CASE("an object in the cache that cannot be loaded is compiled again", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const std::string directory = folder / "cache";
    const auto runs_in_child = [&](const std::string& name) {
        return said_by_a_child(folder, [&] {
            const ScopedOptions scoped(with_cache(directory));
            const LoadedKernels kernels = load_kernels(adding(name, "1"), compiler(), 1);
            return run(kernels) == 2 ? std::to_string(kernels.compiler_runs) : "a wrong result";
        });
    };
    const auto keys = [&] {
        std::vector<std::string> list;
        for (const auto& entry : std::filesystem::directory_iterator(directory))
            if (entry.path().extension() == ".so") list.push_back(entry.path().stem());
        return list;
    };
    REQUIRE(runs_in_child("k_one") == "1");
    const std::string key = keys().at(0);
    REQUIRE(runs_in_child("k_two") == "1");
    REQUIRE(runs_in_child("k_one") == "0");
    DiskCache cache(directory, std::int64_t{1} << 30);
    const std::string good = *cache.read(key);
    for (const std::string& each : keys()) {
        if (each == key) continue;
        INFO("an object of other kernels");
        REQUIRE(cache.keep(key, *cache.read(each), "source").empty());
        CHECK(runs_in_child("k_one") == "1");
        CHECK(runs_in_child("k_one") == "0");
    }
    for (const std::size_t size : {std::size_t{100}, std::size_t{4096}, std::size_t{8192}}) {
        INFO("the first " << size << " of " << good.size() << " bytes");
        REQUIRE(cache.keep(key, good.substr(0, size), "source").empty());
        CHECK(runs_in_child("k_one") == "1");
        CHECK(runs_in_child("k_one") == "0");
    }
}

TEST_CASE("a compiler that hangs at whatever it is asked costs its limit once", "[core][runtime][compiler]") {
    const TemporaryFolder folder, temporary;
    const ScopedVariable temporary_folder("TMPDIR", temporary.path());
    Options o = with_cache(folder / "cache");
    o.compiler_seconds = 1;
    const ScopedOptions scoped(o);
    const auto asked = [&](const std::string& name, const std::string& answers) {
        make_script(folder / name,
                    answers + "echo \"$1\" >> '" + (folder / name) + ".log'\nexec sleep 100\n");
        const ScopedVariable variable("BITALE_CXX", folder / name);
        CHECK_THAT(message_of<CompileError>([&] { load_kernels(adding("k_hangs", "1"), compiler(), 1); }),
                   ContainsSubstring("took more than 1 s") && ContainsSubstring("without an answer"));
        return text_of_file((folder / name) + ".log");
    };
    // Each of them takes the whole limit.
    CHECK(asked("silent", "") == "--version\n");
    CHECK(asked("named", "[ \"$1\" = --version ] && echo my own 1.0 && exit\n") ==
          "-print-prog-name=cc1plus\n");
    // The next function tries anew.
    {
        const ScopedVariable variable("BITALE_CXX", folder / "silent");
        CHECK_THROWS_AS(load_kernels(adding("k_hangs", "2"), compiler(), 1), CompileError);
    }
    CHECK_THAT(text_of_file(folder / "silent.log"), ContainsSubstring("--version\n-std=c++17\n"));
}

TEST_CASE("a compiler that hangs is ended, with what it has started", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    Options o = with_cache(folder / "cache");
    o.compiler_seconds = 1;
    const ScopedOptions scoped(o);
    // The compiler proper is a child of its driver.
    make_script(folder / "cc", "[ \"$1\" = --version ] && exit 0\necho so far so good\necho begun >> '" +
                                   (folder / "begun") + "'\nsh -c 'echo $$ > \"" + (folder / "pid") +
                                   "\"; exec sleep 100' \n");
    const ScopedVariable variable("BITALE_CXX", folder / "cc");
    const std::string message =
        message_of<CompileError>([&] { load_kernels(adding("k_slow", "1"), compiler(), 1); });
    REQUIRE_THAT(message, ContainsSubstring("took more than 1 s") && ContainsSubstring("compiler_seconds") &&
                              ContainsSubstring("the kernels k_slow of function \"k_slow\"") &&
                              ContainsSubstring("so far so good"));
    // Another folder would not make it faster; what it was compiling stays, where nothing is swept.
    REQUIRE(text_of_file(folder / "begun") == "begun\n");
    const std::size_t named = message.find("source: ") + 8;
    const std::string source = message.substr(named, message.find('\n', named) - named);
    REQUIRE_THAT(text_of_file(source), ContainsSubstring("k_slow"));
    REQUIRE_FALSE(source.starts_with(folder.path() + "/cache"));
    std::filesystem::remove_all(std::filesystem::path(source).parent_path());
    REQUIRE(std::none_of(std::filesystem::directory_iterator(folder / "cache"), {}, [](const auto& entry) {
        return entry.path().filename().string().starts_with("bitale-work-");
    }));
    const pid_t child = std::stoi(text_of_file(folder / "pid"));
    for (int i = 0; i < 200 && kill(child, 0) == 0 &&
                    text_of_file("/proc/" + std::to_string(child) + "/stat").find(") Z") == std::string::npos;
         ++i)
        usleep(10000);
    const bool gone =
        kill(child, 0) != 0 ||
        text_of_file("/proc/" + std::to_string(child) + "/stat").find(") Z") != std::string::npos;
    REQUIRE(gone);
}

TEST_CASE("what a compiler says is read to 64 KB, however much it is", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    // 100 MB, and a child that keeps the output open after the end.
    make_script(folder / "talker", "yes nonsense | head -c 100000000\nsleep 30 &\nexit 3\n");
    const auto start = std::chrono::steady_clock::now();
    const Ended ended = run_program({folder / "talker"}, 20);
    REQUIRE(ended.how == Ended::How::exited);
    REQUIRE(ended.number == 3);
    REQUIRE(ended.said.size() == 65536);
    REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    // Forever.
    make_script(folder / "talker", "yes nonsense\n");
    REQUIRE(run_program({folder / "talker"}, 1).how == Ended::How::too_long);
    make_script(folder / "talker", "kill -11 $$\n");
    REQUIRE(run_program({folder / "talker"}, 0).number == 11);
    REQUIRE_THROWS_AS(run_program({folder / "absent"}, 0), CompileError);
}

TEST_CASE("programs get the usual PATH where there is none", "[core][runtime][compiler]") {
    const char* const before = getenv("PATH");
    REQUIRE(before);
    const std::string kept = before;
    unsetenv("PATH");
    const Ended ended = run_program({"sh", "-c", "env"}, 20);
    setenv("PATH", kept.c_str(), 1);
    CHECK(ended.succeeded());
    CHECK_THAT(ended.said, ContainsSubstring("PATH=/usr/local/bin:/usr/bin:/bin"));
}

TEST_CASE("a wrapper is asked once which compiler it starts", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const auto version = [&](const std::string& text) {
        make_script(folder / "inner", "echo " + text + "\n");
        struct stat s {};
        REQUIRE(stat((folder / "inner").c_str(), &s) == 0);
    };
    make_script(folder / "wrap", "echo asked >> " + (folder / "log") + "\nexec " + (folder / "inner") + "\n");
    version("g++ 12");
    const ScopedVariable variable("BITALE_CXX", folder / "wrap");
    const std::string before = find_compiler().found->identity;
    REQUIRE_THAT(before, ContainsSubstring("g++ 12"));
    REQUIRE(find_compiler().found->identity == before);
    REQUIRE(text_of_file(folder / "log") == "asked\nasked\n");  // its version, and what it starts
    // Another process would find another compiler behind the same wrapper.
    version("g++ 13");
    const pid_t child = fork();
    if (child == 0) {
        make_script(folder / "wrap2", text_of_file(folder / "wrap").substr(10));
        setenv("BITALE_CXX", (folder / "wrap2").c_str(), 1);
        const std::string now = find_compiler().found->identity;
        _exit(now.find("g++ 13") != std::string::npos ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    // Two words: the arguments are asked with the program.
    const ScopedVariable two("BITALE_CXX", "env " + (folder / "inner"));
    REQUIRE_THAT(find_compiler().found->identity, ContainsSubstring("g++ 13"));
}

TEST_CASE("kernels come from memory, then from disk, then from the compiler", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const ScopedOptions scoped(with_cache(folder / "cache"));
    const std::string name = "k_cached_" + std::to_string(getpid());
    const Program p = adding(name, "41");
    const LoadedKernels first = load_kernels(p, compiler(), 2);
    REQUIRE(first.compiler_runs == 1);
    REQUIRE(run(first) == 42);
    const LoadedKernels second = load_kernels(p, compiler(), 2);
    REQUIRE(second.compiler_runs == 0);
    REQUIRE(second.from_memory == 1);
}

TEST_CASE("a new process finds what another one compiled, and compiles what was damaged",
          "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    const std::string name = "k_process_" + std::to_string(getpid());
    // The child exits with the number of compiler runs, or 100 for a wrong result.
    const auto in_child = [&] {
        const pid_t child = fork();
        if (child == 0) {
            int code = 101;
            {
                const ScopedOptions scoped(with_cache(folder / "cache"));
                const LoadedKernels kernels = load_kernels(adding(name, "1"), *find_compiler().found, 1);
                code = run(kernels) == 2 ? kernels.compiler_runs : 100;
            }
            _exit(code);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
    };
    REQUIRE(in_child() == 1);
    REQUIRE(in_child() == 0);
    for (const auto& entry : std::filesystem::directory_iterator(folder / "cache"))
        if (entry.path().extension() == ".so") write_file(entry.path(), text_of_file(entry.path()).substr(1));
    REQUIRE(in_child() == 1);
    REQUIRE(in_child() == 0);
}

TEST_CASE("without a usable cache kernels are compiled all the same, with one warning",
          "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    write_file(folder / "file", "");
    const ScopedOptions scoped(with_cache(folder / "file"));
    std::string warned;
    const ScopedLog log([&](const std::string& line) { warned += line; });
    const LoadedKernels kernels =
        load_kernels(adding("k_uncached_" + std::to_string(getpid()), "2"), compiler(), 1);
    REQUIRE(kernels.compiler_runs == 1);
    REQUIRE(run(kernels) == 3);
    REQUIRE_THAT(warned, ContainsSubstring("not kept between runs") && ContainsSubstring("is not a folder"));
}

TEST_CASE("a cache is never why kernels cannot be built", "[core][runtime][compiler]") {
    static int number = 0;
    const auto builds = [&](const Options& options) {
        const ScopedOptions scoped(options);
        const std::string name = "k_anywhere_" + std::to_string(getpid()) + "_" + std::to_string(++number);
        const LoadedKernels kernels = load_kernels(adding(name, "5"), compiler(), 1);
        return kernels.compiler_runs == 1 && run(kernels) == 6;
    };
    std::string warned;
    const ScopedLog log([&](const std::string& line) { warned += line; });
    const TemporaryFolder folder, temporary;
    const ScopedVariable variable("TMPDIR", temporary.path());
    SECTION("of size 0") {
        Options o = with_cache(folder / "cache");
        o.cache_bytes = 0;
        CHECK(builds(o));
        CHECK(warned.empty());
    }
    SECTION("full, with entries from the future") {
        Options o = with_cache(folder / "cache");
        o.cache_bytes = 20000;
        for (int i = 0; i < 6; ++i) {
            CHECK(builds(o));
            for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
                const timespec late{4070908800, 0}, both[] = {late, late};
                utimensat(AT_FDCWD, entry.path().c_str(), both, 0);
            }
        }
        CHECK(warned.empty());
    }
    SECTION("on a disk that is full, at any moment") {
        int kept = 0;
        for (const int kilobytes : {4, 8, 12, 16, 20, 24, 28, 36, 64, 256}) {
            const SmallDisk disk(kilobytes);
            if (!disk.mounted()) {
                WARN("no file system can be mounted here");
                return;
            }
            INFO(kilobytes << " KB, " << warned);
            warned.clear();
            CHECK(builds(with_cache(disk / "cache")));
            kept += warned.empty() ? 1 : 0;
            CHECK((warned.empty() || warned.find("not kept between runs") != std::string::npos));
        }
        CHECK(kept >= 2);
        CHECK(kept < 10);
    }
    SECTION("on a disk whose files cannot be executed") {
        const SmallDisk disk(1024, MS_NOEXEC);
        if (!disk.mounted()) return;
        CHECK(builds(with_cache(disk / "cache")));
        CHECK_THAT(warned, ContainsSubstring("not kept between runs"));
    }
    CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("without a host compiler functions are interpreted, and that is said",
          "[core][runtime][compiler]") {
    const ScopedVariable variable("BITALE_CXX", "/no/such/compiler");
    std::string warned;
    const ScopedLog log([&](const std::string& line) { warned += line; });
    Expr x = bitale::vector("x");
    Function f = function({x}, x * 2, {.device = "cpu"});
    REQUIRE_THAT(warned, ContainsSubstring("no host compiler") && ContainsSubstring("/no/such/compiler") &&
                             ContainsSubstring("interpreted"));
    REQUIRE(f(std::vector<float>{1, 2}).operator Array().to_vector<int>() == std::vector<int>{2, 4});
    Options o;
    o.interpret = false;
    const ScopedOptions strict(o);
    REQUIRE_THAT(
        message_of<CompileError>([&] { function({x}, x * 3, {.device = "cpu"}); }),
        ContainsSubstring("\"/no/such/compiler\", named by BITALE_CXX, is not a program; name g++ or "
                          "clang++, or name none") &&
            ContainsSubstring("interpret=off"));
}

TEST_CASE("a failing compiler leaves shared variables as they were", "[core][runtime][compiler]") {
    const TemporaryFolder folder;
    make_script(folder / "cc", "echo out of luck; exit 1\n");
    const ScopedVariable variable("BITALE_CXX", folder / "cc");
    const ScopedOptions scoped(with_cache(folder / "cache"));
    Shared w = shared(Array(std::vector<float>{1, 2}), "w");
    REQUIRE_THAT(message_of<CompileError>([&] {
                     function({}, {}, {.updates = {{w, w * 3 + 17}}, .device = "cpu"});
                 }),
                 ContainsSubstring("out of luck"));
    REQUIRE(w.get_value().to_vector<int>() == std::vector<int>{1, 2});
}

TEST_CASE("kernels are spread over files by length, the same on every machine", "[core][runtime][compiler]") {
    Program p;
    p.prelude = "// prelude";
    REQUIRE(translation_units(p).empty());
    for (int k = 0; k < 100; ++k)
        p.kernels.push_back({"k" + std::to_string(k),
                             {},
                             std::string(static_cast<std::size_t>(10 + k * 7), 'x'),
                             {},
                             {},
                             {},
                             {}});
    const std::vector<TranslationUnit> units = translation_units(p);
    REQUIRE(units.size() == 7);
    std::vector<int> seen(100, 0);
    std::size_t shortest = SIZE_MAX, longest = 0;
    for (const TranslationUnit& u : units) {
        for (const int k : u.kernels) ++seen[static_cast<std::size_t>(k)];
        REQUIRE(u.text.starts_with(p.prelude));
        shortest = std::min(shortest, u.text.size());
        longest = std::max(longest, u.text.size());
    }
    REQUIRE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
    REQUIRE(longest - shortest < 800);
    p.kernels.resize(2);
    REQUIRE(translation_units(p).size() == 1);
}

TEST_CASE("clang compiles sums, maxima and maps of every dtype, and they agree with those of g++") {
    const auto results = [](const std::string& compiler) {
        Options chosen = options();
        chosen.compiler = compiler;
        const ScopedOptions scope(chosen);
        if (!find_compiler().found) return std::vector<Array>();
        std::vector<Input> inputs;
        std::vector<Array> arguments;
        std::vector<Expr> outputs;
        for (const DType t :
             {float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, boolean}) {
            const Expr x = input(t, {3, 300}, std::string(name_of(t)));
            inputs.emplace_back(x);
            Array values(t, {3, 300});
            auto* bytes = static_cast<unsigned char*>(values.mutable_data());
            for (std::int64_t i = 0; i < 300; ++i) bytes[i * bytes_of(t)] = i % 7 == 0;
            arguments.push_back(values);
            for (const Expr& y :
                 {max(x, {1}), min(x, {0}), any(x, {1}), all(x, {0}), sum(cast(x, float64), {1})})
                outputs.push_back(y);
            outputs.push_back(where(x > cast(1, t), x, cast(0, t)));
        }
        const Results r = function(inputs, outputs, {.device = "cpu"}).call(arguments);
        std::vector<Array> all;
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
        return all;
    };
    if (!std::string(BITALE_SANITIZE).empty()) return;  // kernels are for the compiler of the program
    const std::vector<Array> of_clang = results("clang++"), of_gcc = results("g++");
    if (of_clang.empty() || of_gcc.empty()) return;  // not both of them are installed
    REQUIRE(of_clang.size() == of_gcc.size());
    for (std::size_t k = 0; k < of_gcc.size(); ++k)
        CHECK(std::memcmp(of_clang[k].data(), of_gcc[k].data(),
                          static_cast<std::size_t>(of_gcc[k].bytes())) == 0);
}
