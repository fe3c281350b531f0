// Threads that cannot be made: fewer do the work, and one warning says so.
#include <atomic>
#include <numeric>
#include <stdexcept>

#include "graph/base/faults.h"
#include "graph/base/log.h"
#include "runtime/cpu/affinity.h"
#include "runtime/cpu/pool.h"
#include "runtime/outside.h"
#include "tests/support/catch.h"

using namespace bitale;
using outside::Door;
using outside::Fault;

TEST_CASE("a pool has the threads that it got", "[faults]") {
    const std::vector<int> cores(4, usable_cores().front());
    for (std::int64_t refused = 1; refused <= 4; ++refused) {
        outside::plant(Fault{.door = Door::thread, .number = refused, .onwards = true});
        Pool pool(cores);
        outside::plant({});
        CHECK(pool.threads() == refused);
        for (const std::int64_t tasks : {1, 7, 1000}) {
            std::vector<int> hits(static_cast<std::size_t>(tasks));
            pool.run(tasks, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) ++hits[static_cast<std::size_t>(i)];
            });
            CHECK(std::accumulate(hits.begin(), hits.end(), 0) == tasks);
        }
    }
}

TEST_CASE("fewer threads do the work of many, with one warning", "[faults]") {
    int warnings = 0;
    const ScopedLog log([&](const std::string& line) {
        CHECK_THAT(line, ContainsSubstring("refuses threads"));
        ++warnings;
    });
    std::atomic<int> next{0}, done{0};
    const auto work = [&] {
        while (next++ < 10) ++done;
    };
    outside::plant(Fault{.door = Door::thread, .number = 2, .onwards = true});
    run_on_threads(4, work);
    outside::plant({});
    CHECK(done == 10);
    CHECK(warnings == 1);
    run_on_threads(4, work);
    CHECK(warnings == 1);
}

TEST_CASE("what a thread throws reaches the caller when all have ended", "[faults]") {
    std::atomic<int> begun{0}, ended{0};
    const auto work = [&] {
        struct End {
            std::atomic<int>& ended;
            ~End() { ++ended; }
        } end{ended};
        if (++begun == 2) throw std::bad_alloc();
    };
    CHECK_THROWS_AS(run_on_threads(3, work), std::bad_alloc);
    CHECK(ended == 3);
}

TEST_CASE("faults are read from a text", "[faults]") {
    const auto fault = outside::parse_fault("write:3+");
    REQUIRE(fault);
    CHECK((fault->door == Door::write && fault->number == 3 && fault->onwards));
    CHECK(outside::parse_fault("any:12:kill")->what == Fault::What::kill);
    CHECK(!outside::parse_fault("any:12:kill")->door);
    CHECK(outside::parse_fault("launch:1:wait=20")->milliseconds == 20);
    for (const char* text :
         {"", "write", "write:", "write:0", "door:1", "write:1:stop", "write:1x", "any:1:wait="})
        CHECK_FALSE(outside::parse_fault(text));
}
