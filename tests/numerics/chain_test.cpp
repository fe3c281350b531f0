// Very deep graphs: compiled and run in a process of its own with a small stack.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

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
    long kilobytes = 0;                         // the largest of the process and of those it started
    double seconds = 0, processor_seconds = 0;  // the latter does not depend on what else runs
};

// Names the chain that a process is to compile.
constexpr const char* chosen = "BITALE_TEST_CHAIN";

// This program again, with a stack of 1 MB, running the same test for one chain.
Ended run_with_small_stack(const std::string& chain) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
        rlimit limit{};
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = stack_bytes;
        setrlimit(RLIMIT_STACK, &limit);
        setenv(chosen, chain.c_str(), 1);
        execl("/proc/self/exe", "test", "chains of many operations*", nullptr);
        _exit(127);
    }
    Ended r;
    rusage usage{};
    wait4(child, &r.status, 0, &usage);
    r.kilobytes = usage.ru_maxrss;
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
        r.processor_seconds += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return r;
}

void maps() {
    const Expr x = vector("x");
    Expr y = x;
    for (int i = 0; i < links; ++i) y = sin(y) + x;
    Function f = function({x}, y, {.name = "chain", .device = tested_device()});
    const std::vector<float> values = {0.25F, -0.5F, 0.125F};
    const Array got = f(values);
    REQUIRE(got.size() == 3);
    for (std::int64_t i = 0; i < 3; ++i) {
        const double first = values[static_cast<std::size_t>(i)];
        CHECK(std::fabs(got.at(i) - after(links, first, first)) < 1e-4);
    }
    // The text of a link is compiled once, however often it stands in the chain: its first and its last
    // kernel are what else there is.
    CHECK(f.compiler_runs() <= 2);
}

void reductions() {
    const Expr x = vector("x");
    Expr y = x;
    for (int i = 0; i < links / 10; ++i) y = (y + x) / (mean(abs(y)) + 1);
    Function f = function({x}, y, {.name = "reductions", .device = tested_device()});
    std::vector<float> values = {0.25F, -0.5F, 0.125F};
    const Array got = f(values);
    std::vector<double> expected(values.begin(), values.end());
    for (int i = 0; i < links / 10; ++i) {
        double mean = 0;
        for (const double v : expected) mean += std::fabs(v) / 3;
        for (std::size_t k = 0; k < 3; ++k) expected[k] = (expected[k] + values[k]) / (mean + 1);
    }
    for (std::size_t k = 0; k < 3; ++k)
        CHECK(std::fabs(got.at(static_cast<std::int64_t>(k)) - expected[k]) < 1e-4);
}

void gradient() {
    const Expr x = vector("x");
    Expr y = x;
    for (int i = 0; i < links / 10; ++i) y = sqr(y) * 0.5F + x;
    Function f = function({x}, {sum(y), grad(sum(y), x)}, {.name = "gradient", .device = tested_device()});
    const Results got = f(std::vector<float>{0.25F, -0.5F, 0.125F});
    // d y' = y d y + 1
    double total = 0;
    std::vector<double> slopes;
    for (const double first : {0.25, -0.5, 0.125}) {
        double value = first, slope = 1;
        for (int i = 0; i < links / 10; ++i) {
            slope = value * slope + 1;
            value = value * value / 2 + first;
        }
        total += value;
        slopes.push_back(slope);
    }
    CHECK(std::fabs(got[0].at(0) - total) < 1e-4);
    for (std::size_t k = 0; k < 3; ++k)
        CHECK(std::fabs(got[1].at(static_cast<std::int64_t>(k)) - slopes[k]) < 1e-3 * slopes[k]);
}

}  // namespace

TEST_CASE("chains of many operations compile and run with 1 MB of stack") {
    const std::map<std::string, void (*)()> chains = {
        {"100000 maps", maps}, {"5000 reductions", reductions}, {"a gradient", gradient}};
    if (const char* chain = std::getenv(chosen)) return chains.at(chain)();
    for (const auto& [name, compile] : chains) {
        const Ended ended = run_with_small_stack(name);
        std::cout << fmt::format("{}: {:.1f} s, {:.1f} s of processor time, {} MB\n", name, ended.seconds,
                                 ended.processor_seconds, ended.kilobytes >> 10);
        INFO(name);
        CHECK(WIFEXITED(ended.status));
        CHECK(WEXITSTATUS(ended.status) == 0);
        CHECK(ended.kilobytes <= most_kilobytes);
    }
}
