// The thread pool: every range exactly once, nested calls, exceptions, many small jobs.
#include "runtime/cpu/pool.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "runtime/cpu/affinity.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

// More threads than cores are allowed here, so that the protocol is tried on any machine.
std::vector<int> cores_for(int threads) {
    const std::vector<int> usable = usable_cores();
    std::vector<int> cores;
    for (int i = 0; i < threads; ++i) cores.push_back(usable[static_cast<std::size_t>(i) % usable.size()]);
    return cores;
}

}  // namespace

TEST_CASE("a pool runs every task exactly once", "[core][runtime][pool]") {
    for (const int threads : {1, 2, 5}) {
        Pool pool(cores_for(threads));
        REQUIRE(pool.threads() == threads);
        for (const std::int64_t tasks : {0, 1, 2, 7, 64, 1000, 4096}) {
            std::vector<int> hits(static_cast<std::size_t>(tasks));
            pool.run(tasks, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) ++hits[static_cast<std::size_t>(i)];
            });
            REQUIRE(std::all_of(hits.begin(), hits.end(), [](int h) { return h == 1; }));
        }
    }
}

TEST_CASE("many small jobs in a row see each other's results", "[core][runtime][pool]") {
    Pool pool(cores_for(3));
    std::vector<std::int64_t> values(16);
    for (int round = 0; round < 20000; ++round)
        pool.run(16, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) values[static_cast<std::size_t>(i)] += i;
        });
    for (std::int64_t i = 0; i < 16; ++i) REQUIRE(values[static_cast<std::size_t>(i)] == 20000 * i);
}

TEST_CASE("workers that fell asleep wake up", "[core][runtime][pool]") {
    Pool pool(cores_for(2));
    for (int round = 0; round < 20; ++round) {
        usleep(1000);
        std::atomic<int> sum{0};
        pool.run(8, [&](std::int64_t first, std::int64_t last) { sum += static_cast<int>(last - first); });
        REQUIRE(sum == 8);
    }
}

TEST_CASE("a call from within a task runs inline", "[core][runtime][pool]") {
    Pool pool(cores_for(2));
    std::atomic<int> inner{0};
    pool.run(8, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i)
            pool.run(10, [&](std::int64_t a, std::int64_t b) { inner += static_cast<int>(b - a); });
    });
    REQUIRE(inner == 80);
}

TEST_CASE("the first exception of a task reaches the caller and the pool stays usable",
          "[core][runtime][pool]") {
    Pool pool(cores_for(2));
    for (int round = 0; round < 100; ++round) {
        REQUIRE_THROWS_WITH(pool.run(32,
                                     [&](std::int64_t, std::int64_t) {
                                         // Also from a nested call.
                                         pool.run(2, [](std::int64_t, std::int64_t) {
                                             throw std::runtime_error("task failed");
                                         });
                                     }),
                            "task failed");
        std::atomic<int> sum{0};
        pool.run(32, [&](std::int64_t first, std::int64_t last) { sum += static_cast<int>(last - first); });
        REQUIRE(sum == 32);
    }
}

TEST_CASE("threads of the user share one pool", "[core][runtime][pool]") {
    Pool pool(cores_for(2));
    std::atomic<std::int64_t> sum{0};
    std::vector<std::thread> users;
    for (int u = 0; u < 4; ++u)
        users.emplace_back([&] {
            for (int round = 0; round < 500; ++round)
                pool.run(16, [&](std::int64_t first, std::int64_t last) { sum += last - first; });
        });
    for (std::thread& user : users) user.join();
    REQUIRE(sum == 4 * 500 * 16);
}

TEST_CASE("shares of any sizes run exactly once, also inside a task", "[core][runtime][pool]") {
    Pool pool(cores_for(3));
    const Shares shares{{{5, 9}, {0, 5}, {9, 10}, {12, 64}, {10, 12}}, {0, 3, 3, 5}};
    std::vector<int> hits(64);
    const auto hit = [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) ++hits[static_cast<std::size_t>(i)];
    };
    for (int round = 0; round < 5000; ++round) pool.run(shares, hit);
    REQUIRE(std::all_of(hits.begin(), hits.end(), [](int h) { return h == 5000; }));
    std::fill(hits.begin(), hits.end(), 0);
    pool.run(1, [&](std::int64_t, std::int64_t) { pool.run(shares, hit); });
    REQUIRE(std::all_of(hits.begin(), hits.end(), [](int h) { return h == 1; }));
    REQUIRE_THROWS_AS(
        pool.run(shares, [](std::int64_t first, std::int64_t) { first == 12 ? throw 1 : void(); }), int);
}

TEST_CASE("a busy process on any of the cores does not stop the pool", "[runtime][pool]") {
    Pool pool(cores_for(2));
    std::vector<double> values(64, 1.0);
    std::int64_t jobs = 0;
    for (const int cpu : cores_for(2)) {
        const pid_t child = fork();
        if (child == 0) {
            cpu_set_t mask;
            CPU_ZERO(&mask);
            CPU_SET(cpu, &mask);
            sched_setaffinity(0, sizeof mask, &mask);
            for (;;) sched_getcpu();
        }
        for (const std::clock_t end = std::clock() + CLOCKS_PER_SEC / 3; std::clock() < end; ++jobs)
            pool.run(16, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = 4 * first; i < 4 * last; ++i)
                    for (int k = 0; k < 2000; ++k) values[static_cast<std::size_t>(i)] += 1.0;
            });
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    REQUIRE(jobs > 0);
    for (const double v : values) REQUIRE(v == 1.0 + 2000.0 * static_cast<double>(jobs));
}

TEST_CASE("slices of a thread are short for a while, and its priority stays", "[core][runtime][pool]") {
    std::thread([] {
        errno = 0;
        const int priority = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
        REQUIRE(errno == 0);
        const std::uint64_t before = Slices::current();
        Slices slices;
        slices.restore_when_calm();
        CHECK(Slices::current() == before);
        slices.shorten();
        // Systems that know no such request say 0, before and after.
        CHECK((Slices::current() == 100'000 || Slices::current() == before));
        slices.restore_when_calm();
        slices.shorten();
        std::this_thread::sleep_for(std::chrono::milliseconds(120));
        slices.restore_when_calm();
        CHECK(Slices::current() == before);
        CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())) == priority);
    }).join();
}

TEST_CASE("a forked child computes and exits", "[runtime][pool]") {
    Pool& pool = process_pool(0);
    const pid_t child = fork();
    if (child == 0) {
        std::int64_t sum = 0;
        pool.run(16, [&](std::int64_t first, std::int64_t last) { sum += last - first; });
        _exit(sum == 16 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
}

TEST_CASE("usable cores are distinct", "[core][runtime][pool]") {
    std::vector<int> cores = usable_cores();
    REQUIRE(!cores.empty());
    std::sort(cores.begin(), cores.end());
    REQUIRE(std::unique(cores.begin(), cores.end()) == cores.end());
}

TEST_CASE("the threads of a pool round to nearest, however the one that made it does",
          "[core][runtime][pool]") {
    const int before = fegetround();
    REQUIRE(fesetround(FE_UPWARD) == 0);
    {
        Pool pool(cores_for(3));
        std::atomic<int> others{0}, nearest{0};
        const std::thread::id caller = std::this_thread::get_id();
        for (int round = 0; round < 1000 && others == 0; ++round)
            pool.run(64, [&](std::int64_t, std::int64_t) {
                std::this_thread::sleep_for(std::chrono::microseconds(50));
                if (std::this_thread::get_id() == caller) return;
                nearest += fegetround() == FE_TONEAREST;
                ++others;
            });
        CHECK(others > 0);
        CHECK(nearest == others);
    }
    CHECK(fegetround() == FE_UPWARD);
    fesetround(before);
}
