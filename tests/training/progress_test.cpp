// Loops that report: the results of a whole loop, reports at the right steps, and ends.
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("a loop that reports has the results of one that does not") {
    for (const char* device : {"cpu", "emulator", "reference"}) {
        INFO(device);
        const Shared a = shared(zeros({3}), "a"), b = shared(zeros({3}), "b");
        const Expr i = lscalar("i"), x = cast(i, float32);
        const auto make = [&](const Shared& s) {
            return function({i}, {sum(s) + x, s * 2, Expr(i)}, {.updates = {{s, s + x}}, .device = device});
        };
        Function plain = make(a), told = make(b);
        const Results whole = plain.loop(5, 22);
        std::vector<std::int64_t> at;
        std::int64_t rows = 0;
        const Results parts = told.loop(5, 22, {.every = 5, .on_progress = [&](const Progress& p) {
                                                    at.push_back(p.done);
                                                    rows += (*p.part)[1].shape()[0];
                                                    CHECK((*p.part)[1].shape()[1] == 3);
                                                    CHECK(p.steps == 17);
                                                    CHECK(p.seconds >= 0);
                                                    CHECK(p.seconds_left >= 0);
                                                    CHECK(told.steps_done() == p.done);
                                                }});
        CHECK(at == std::vector<std::int64_t>{5, 10, 15, 17});
        CHECK(rows == 17);
        REQUIRE(parts.size() == 3);
        for (std::size_t k = 0; k < 3; ++k) CHECK(same(whole[k], parts[k]));
        CHECK(same(a.get_value(), b.get_value()));
        int reports = 0;
        const auto count = [&](const Progress&) { ++reports; };
        CHECK(told.loop(0, 4, {.on_progress = count})[0].size() == 4);
        CHECK(reports == 1);
        CHECK(told.loop(3, 3, {.every = 2, .on_progress = count})[1].shape() == Dims{0, 3});
        CHECK(reports == 1);
        CHECK(told.loop(0, 3, {.every = 1})[0].size() == 3);
        CHECK_THROWS_AS(told.loop(0, 3, {.every = -1}), Error);
    }
}

TEST_CASE("what reports progress may drop the function that loops") {
    for (const char* device : {"cpu", "emulator", "reference"}) {
        const Shared s = shared(Array(0), "s");
        const Expr i = lscalar("i");
        Function f = function({i}, {s + i}, {.updates = {{s, s + 1}}, .device = device});
        const auto drop = [&](const Progress&) { f = Function(); };
        CHECK(f.loop(0, 10, {.every = 5, .on_progress = drop})[0].size() == 10);
        CHECK(s.get_value() == 10);
    }
}

TEST_CASE("a loop that reports ends by requests, tokens and errors, after whole steps") {
    const Shared s = shared(Array(0), "s");
    const Expr i = lscalar("i");
    const Shared rows = shared(zeros({8}), "rows");
    Function f = function({i}, {rows[i]}, {.updates = {{s, s + 1}}, .device = "cpu"});
    const StopToken token;
    CHECK(f.loop(0, 8,
                 {.every = 2,
                  .on_progress =
                      [&](const Progress& p) {
                          if (p.done == 4) token.request();
                      },
                  .stop = token})[0]
              .size() == 4);
    CHECK(f.loop(0, 8, {.every = 3, .on_progress = [&](const Progress&) { f.request_stop(); }})[0].size() ==
          3);
    CHECK(s.get_value().item<int>() == 7);
    CHECK(f.loop(0, 2)[0].size() == 2);  // the request is used up
    const auto thrown = [](const Progress&) { throw std::runtime_error("enough"); };
    CHECK_THROWS_AS(f.loop(0, 8, {.every = 2, .on_progress = thrown}), std::runtime_error);
    CHECK(s.get_value().item<int>() == 11);
    const std::string message =
        message_of<IndexError>([&] { f.loop(0, 10, {.every = 3, .on_progress = [](const Progress&) {}}); });
    CHECK_THAT(message, ContainsSubstring("in step 8 of the loop, whose first argument is 8"));
    CHECK(s.get_value().item<int>() == 19);
}

TEST_CASE("progress as text") {
    CHECK(Progress{.done = 0, .steps = 10}.text() == "0 of 10 steps, 0.0 s left");
    const Results part({Array(std::vector<float>{0.25F, 0.5F})}), matrix({ones({2, 3})});
    CHECK(Progress{.done = 1200, .steps = 4680, .seconds = 2, .seconds_left = 4.04, .part = &part}.text() ==
          "1200 of 4680 steps, 0.375, 600 steps/s, 4.0 s left");
    CHECK(Progress{.done = 1, .steps = 2, .seconds = 1, .seconds_left = 125, .part = &matrix}.text() ==
          "1 of 2 steps, 1 steps/s, 2 min 5 s left");
    CHECK(Progress{.done = 1, .steps = 2, .seconds = 0, .seconds_left = 7500}.text() ==
          "1 of 2 steps, 2 h 5 min left");
    CHECK(Progress{.done = 2, .steps = 2, .seconds = 42}.text() == "2 of 2 steps, 0 steps/s, 42 s");
}
