// A loop on a GPU runs without the host, a compiler works for seconds: neither keeps others waiting.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/slices.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr std::int64_t endless = std::int64_t{1} << 60;
// A loop that nobody ends goes on for 65,536 steps at least, and the steps below are slow: whoever waits for
// its end is beyond this, whoever waits for a step, or ten milliseconds, is far from it.
constexpr std::int64_t few_steps = 20000;
constexpr std::chrono::hours forever{1000};

class LongestLaunch {
  public:
    explicit LongestLaunch(std::chrono::nanoseconds time) { cuda::set_longest_launch(time); }
    ~LongestLaunch() { cuda::set_longest_launch(before_); }
    LongestLaunch(const LongestLaunch&) = delete;
    LongestLaunch& operator=(const LongestLaunch&) = delete;

  private:
    const std::chrono::nanoseconds before_ = cuda::longest_launch();
};

// In a thread of its own, until it is told to stop.
class EndlessLoop {
  public:
    EndlessLoop() {
        const Expr i = lscalar("i");
        const Shared w = shared(zeros({4000}), "w");
        function_ = function({i}, {}, {.updates = {{w, w + cast(i, float32)}}, .device = tested_gpu()});
        thread_ = std::thread([this] { function_.loop(0, endless, stop_); });
        wait_for(10);
    }
    ~EndlessLoop() {
        stop_.request();
        thread_.join();
    }
    EndlessLoop(const EndlessLoop&) = delete;
    EndlessLoop& operator=(const EndlessLoop&) = delete;

    // How many steps there are while `f` runs.
    template <class F>
    std::int64_t steps_during(F&& f) {
        const std::int64_t before = function_.steps_done();
        wait_for(before + 10);  // of one launch
        f();
        // Steps that somebody else has run are not told before the loop's own thread looks again.
        wait_for(function_.steps_done() + 1);
        return function_.steps_done() - before;
    }
    void wait_for(std::int64_t steps) const {
        while (function_.steps_done() < steps) std::this_thread::yield();
    }

  private:
    Function function_;
    StopToken stop_;
    std::thread thread_;
};

void fork_and_wait() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
}

// A script that calls the compiler when somebody has said `go`, and only waits where it shall compile a
// source with such a word in it.
struct WaitingCompiler {
    TemporaryFolder folder;
    std::string path = folder.path() + "/compiler";

    explicit WaitingCompiler(const std::string& word = "") {
        std::ofstream(path) << "#!/bin/sh\n"
                            << "for a in \"$@\"; do case \"$a\" in *.cpp) source=$a ;; esac; done\n"
                            << "case \"$*\" in *-shared*) if grep -q '" << word << "' \"$source\"; then\n"
                            << ": > " << folder.path() << "/begun\n"
                            << "while [ ! -e " << folder.path() << "/go ]; do sleep 0.02; done; fi ;; esac\n"
                            << "exec " KERNEL_COMPILER " \"$@\"\n";
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }
    bool has_begun() const { return std::filesystem::exists(folder.path() + "/begun"); }
    void go() const { std::ofstream(folder.path() + "/go") << "go"; }
};

template <class F>
bool comes_true(F&& f) {
    constexpr std::chrono::milliseconds nap{5};
    for (int k = 0; k < 6000 && !f(); ++k) std::this_thread::sleep_for(nap);
    return f();
}

Options with_compiler(const std::string& path) {
    Options changed = options();
    changed.compiler = path;
    changed.cache = false;
    changed.emulator_devices = 4;
    return changed;
}

}  // namespace

TEST_CASE("nobody waits for the end of a loop on a GPU that he has no part in") {
    if (tested_gpu_skipped()) return;
    const LongestLaunch scope(forever);
    const Expr x = scalar("x");
    const Shared v = shared(Array(1.0f), "v");
    Function touch = function({}, {}, {.updates = {{v, v + 1}}, .device = tested_gpu()});
    Function host = function({}, {v * 2}, {.device = "cpu"});
    Function idle = function({x}, {x * 3}, {.device = tested_gpu()});
    idle(1.0f);
    touch();
    EndlessLoop loop;
    CHECK(loop.steps_during([&] { CHECK(v.get_value().at(0) == 2); }) < few_steps);
    touch();
    CHECK(loop.steps_during([&] { CHECK(double(host()) == 6); }) < few_steps);
    CHECK(loop.steps_during([&] { idle = Function(); }) < few_steps);
    touch();
    CHECK(loop.steps_during([&] {
        std::thread reader([&] { (void)v.get_value(); });
        fork_and_wait();
        reader.join();
    }) < few_steps);
}

TEST_CASE("what waits for a GPU without a word does not wait for a loop") {
    if (tested_gpu_skipped()) return;
    const cuda::RuntimeTable& runtime =
        on_emulator() ? cuda::emulated_runtime() : cuda::runtime_library().table;
    REQUIRE(runtime.cudaSetDevice(0) == cuda::success);
    void* block = nullptr;
    REQUIRE(runtime.cudaMalloc(&block, 1000) == cuda::success);
    EndlessLoop loop;
    CHECK(loop.steps_during([&] { CHECK(runtime.cudaFree(block) == cuda::success); }) < few_steps);
}

TEST_CASE("a loop is cut into launches by the time of its steps, and has the results of a whole one") {
    if (left_out()) return;
    const auto loop = [](std::chrono::nanoseconds longest, std::int64_t& graphs) {
        const LongestLaunch scope(longest);
        const Shared n = shared(Array(0.0f), "n");
        const Expr i = lscalar("i");
        Function f = function({i}, {cast(i, float32) + n}, {.updates = {{n, n + 1}}, .device = "emulator"});
        f.loop(0, 20);
        const std::int64_t before = cuda::launches_so_far().graphs;
        const Array result = f.loop(std::vector<std::int64_t>{5, 3, 9, 1, 0, 2, 2, 8})[0];
        graphs = cuda::launches_so_far().graphs - before;
        CHECK(f.steps_done() == 8);
        CHECK(n.get_value().at(0) == 28);
        return result;
    };
    std::int64_t whole = 0, cut = 0;
    const Array expected = loop(forever, whole);
    CHECK(difference(loop(std::chrono::nanoseconds(0), cut), expected) == "");
    CHECK(whole == 1);
    CHECK(cut == 8);
}

TEST_CASE("calls and loops on a GPU go on while a function is compiled for it") {
    if (left_out()) return;
    const Expr i = lscalar("i"), x = scalar("x");
    const Shared n = shared(Array(std::int64_t{0}), "n");
    Function count = function({i}, {}, {.updates = {{n, n + 1 + i * 0}}, .device = "emulator"});
    const WaitingCompiler compiler;
    const ScopedOptions scope(with_compiler(compiler.path));
    double built = 0;
    std::thread builder([&] {
        Function f = function({x}, {x * 5}, {.device = "emulator"});
        built = double(f(3.0f));
    });
    CHECK(comes_true([&] { return compiler.has_begun(); }));
    std::atomic<bool> done{false};
    std::thread caller([&] {
        for (int k = 0; k < 5; ++k) count(std::int64_t{0});
        count.loop(0, 20);
        done = n.get_value().at(0) == 25;
    });
    CHECK(comes_true([&] { return done.load(); }));
    compiler.go();
    caller.join();
    builder.join();
    CHECK(built == 15);
}

// Graphs of loops hold the kernels that end a step, whoever loaded them.
TEST_CASE("kernels of loops stay where a slower thread compiles them too") {
    if (left_out()) return;
    const Expr i = lscalar("i");
    const Shared n = shared(Array(std::int64_t{0}), "n"), m = shared(Array(std::int64_t{0}), "m");
    const auto counting = [&](const Shared& v) {
        // On a device that no other case of this file uses.
        return function({i}, {}, {.updates = {{v, v + 1 + i * 0}}, .device = "emulator:3"});
    };
    const WaitingCompiler compiler("bitale_advance");
    const ScopedOptions scope(with_compiler(compiler.path));
    std::thread slower([&] { counting(m).loop(0, 20); });
    CHECK(comes_true([&] { return compiler.has_begun(); }));
    const ScopedOptions at_once(with_compiler(""));
    Function count = counting(n);
    count.loop(0, 20);
    compiler.go();
    slower.join();
    count.loop(0, 20);
    CHECK(n.get_value().at(0) == 40);
    CHECK(m.get_value().at(0) == 20);
}

TEST_CASE("calls and loops on a GPU need no compiler") {
    if (left_out()) return;
    const ScopedOptions scope(with_compiler(""));
    const Expr i = lscalar("i");
    const Shared n = shared(Array(std::int64_t{0}), "n");
    // On a device that no other case of this file uses.
    Function count = function({i}, {}, {.updates = {{n, n + 1 + i * 0}}, .device = "emulator:1"});
    const ScopedOptions without(with_compiler("/nowhere/c++"));
    count.loop(0, 20);
    count(std::int64_t{0});
    count(std::int64_t{0});
    CHECK(n.get_value().at(0) == 22);
    CHECK_THAT(count.report(Detail::complete), ContainsSubstring("a loop is one launch"));
}

TEST_CASE("only a function that may loop needs the kernels of loops") {
    if (left_out()) return;
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/compiler";
    std::ofstream(path)
        << "#!/bin/sh\n"
        << "for a in \"$@\"; do case \"$a\" in *.cpp) grep -q bitale_advance \"$a\" && exit 1 ;; "
           "esac; done\nexec " KERNEL_COMPILER " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    const ScopedOptions scope(with_compiler(path));
    const Expr i = lscalar("i"), x = scalar("x");
    Function plain = function({x}, {x * 7}, {.device = "emulator:2"});
    CHECK(double(plain(2.0f)) == 14);
    CHECK(double(plain(2.0f)) == 14);
    CHECK_THROWS_WITH(function({i}, {i * 7}, {.device = "emulator:2"}),
                      ContainsSubstring("the kernels that end a loop's steps"));
    const ScopedOptions mended(with_compiler(""));
    Function loops = function({i}, {i * 7}, {.device = "emulator:2"});
    CHECK(loops.loop(0, 4)[0].at(3) == 21);
}
