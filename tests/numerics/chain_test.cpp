// Very deep graphs: compiled and run in a process of its own with a small stack.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr int links = 50'000;
constexpr rlim_t stack_bytes = 1 << 20;
constexpr long most_kilobytes = 2 << 20;

// Every node differs from its neighbours and none folds: a bounded value, alternately through two operations.
double after(int count, double x, double first) {
    for (int i = 0; i < count; ++i) x = std::sin(x) + first;
    return x;
}

struct Ended {
    int status = -1;
    long kilobytes = 0;  // the largest of the process and of those it started
    double seconds = 0;
};

// This program again, running one hidden test with a stack of 1 MB.
Ended run_with_small_stack(const char* test) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
        rlimit limit{};
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = stack_bytes;
        setrlimit(RLIMIT_STACK, &limit);
        execl("/proc/self/exe", "test", test, nullptr);
        _exit(127);
    }
    Ended r;
    rusage usage{};
    wait4(child, &r.status, 0, &usage);
    r.kilobytes = usage.ru_maxrss;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return r;
}

}  // namespace

TEST_CASE("chain in this process", "[.]") {
    const Expr x = vector("x");
    {
        Expr y = x;
        for (int i = 0; i < links; ++i) y = sin(y) + x;
        Function f = function({x}, y, {.name = "chain", .device = "cpu"});
        const std::vector<float> values = {0.25F, -0.5F, 0.125F};
        const Array got = f(values);
        REQUIRE(got.size() == 3);
        for (std::int64_t i = 0; i < 3; ++i) {
            const double first = values[static_cast<std::size_t>(i)];
            CHECK(std::fabs(got.at(i) - after(links, first, first)) < 1e-4);
        }
        fmt::print("{} kernels, {:.1f} s in function, {} runs of the compiler\n", f.kernels().size(),
                   f.compile_seconds(), f.compiler_runs());
    }
}

TEST_CASE("a chain of 100000 operations compiles and runs with 1 MB of stack") {
    const Ended ended = run_with_small_stack("chain in this process");
    std::cout << fmt::format("a chain of {} operations: {:.1f} s, {} MB\n", 2 * links, ended.seconds,
                             ended.kilobytes >> 10);
    CHECK(WIFEXITED(ended.status));
    CHECK(WEXITSTATUS(ended.status) == 0);
    CHECK(ended.kilobytes <= most_kilobytes);
    CHECK(ended.seconds <= 30);
}
