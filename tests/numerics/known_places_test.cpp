// Lookups at places that ranges and constants give: as fast as slices where they are known, with a check
// where they may leave the array, on each device beside loops on the host.
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr std::int64_t elements_looked_at = 600;

Expr down(std::int64_t n) { return expand_dims(range(0, n), 1); }

struct PlaceForm {
    const char* name;
    std::int64_t rows, columns;
    std::function<Expr(std::int64_t rows, std::int64_t columns)> index;
    std::function<std::int64_t(std::int64_t i, std::int64_t j)> place;
    bool known = true;
};

std::vector<PlaceForm> forms_of_places() {
    const auto one_column = [](std::int64_t, std::int64_t) {
        return constant(Array(std::vector<std::int32_t>{7, 9, 11}));
    };
    return {
        {"windows", 20, 5, [](auto n, auto m) { return down(n) + range(0, m); },
         [](auto i, auto j) { return i + j; }},
        {"rows", 24, 25, [](auto n, auto m) { return down(n) * 25 + range(0, m); },
         [](auto i, auto j) { return i * 25 + j; }},
        {"backwards", 30, 20, [](auto n, auto m) { return 599 - down(n) * 20 - range(0, m); },
         [](auto i, auto j) { return 599 - i * 20 - j; }},
        {"turned", 25, 24, [](auto n, auto m) { return down(n) + range(0, m) * 25; },
         [](auto i, auto j) { return i + j * 25; }},
        {"int32", 12, 40,
         [](auto n, auto m) { return cast(down(n), int32) * 50 + cast(range(3, m + 3), int32); },
         [](auto i, auto j) { return i * 50 + j + 3; }},
        {"bytes", 3, 10, [](auto n, auto m) { return cast(down(n), uint8) * 50 + cast(range(0, m), uint8); },
         [](auto i, auto j) { return i * 50 + j; }},
        {"a constant", 1, 3, one_column, [](auto, auto j) { return 7 + 2 * j; }},
        {"no sequence", 1, 3,
         [](auto, auto) {
             return constant(Array(std::vector<std::int64_t>{5, 6, 8}));
         },
         [](auto, auto j) { return j == 2 ? 8 : 5 + j; }, false},
        {"a product of two", 20, 20, [](auto n, auto m) { return down(n) * range(0, m); },
         [](auto i, auto j) { return i * j; }, false},
        {"bytes that wrap", 3, 10,
         [](auto n, auto m) { return cast(down(n) * 100 + range(50, m + 50), uint8); },
         [](auto i, auto j) { return (i * 100 + j + 50) % 256; }, false},
    };
}

}  // namespace

TEST_CASE("lookups at known places are views, without a check") {
    Random random(41);
    const Array x = random_array(float32, {elements_looked_at}, random),
                rows = random_array(float32, {elements_looked_at, 3}, random);
    for (const std::string& device :
         {std::string(tested_device()), std::string("emulator"), std::string("reference")})
        for (const PlaceForm& form : forms_of_places()) {
            INFO(form.name << " on " << device);
            const Expr v = input(float32, Dims{elements_looked_at}, "v"),
                       m = input(float32, Dims{elements_looked_at, 3}, "m"),
                       index = form.index(form.rows, form.columns);
            Function f = function({v, m},
                                  {gather(v, index), exp(gather(m, index)) * 2, sum(gather(v, index)),
                                   grad(sum(sqr(gather(v, index))), v)},
                                  {.device = device});
            const Results r = f(x, rows);
            double total = 0;
            std::vector<double> gradient(elements_looked_at, 0);
            for (std::int64_t i = 0; i < form.rows; ++i)
                for (std::int64_t j = 0; j < form.columns; ++j) {
                    const std::int64_t place = form.place(i, j), at = i * form.columns + j;
                    total += x.at(place);
                    gradient[static_cast<std::size_t>(place)] += 2 * x.at(place);
                    REQUIRE(r[0].at(at) == x.at(place));
                    REQUIRE(r[1].at(at * 3 + 2) == Approx(2 * std::exp(rows.at(place * 3 + 2))));
                }
            CHECK(r[2].at(0) == Approx(total).margin(1e-4));
            for (std::int64_t k = 0; k < elements_looked_at; ++k)
                REQUIRE(r[3].at(k) == Approx(gradient[static_cast<std::size_t>(k)]).margin(1e-5));
            if (device == tested_device() && form.known) {
                Function alone = function({v}, gather(v, index), {.device = device});
                CHECK_THAT(alone.report(Detail::complete), !ContainsSubstring("out of range"));
            }
        }
}

TEST_CASE("places that ranges take out of the array are refused") {
    const Expr x = input(float32, Dims{10}, "x"), n = vector("n");
    for (const std::string& device : {std::string(tested_device()), std::string("emulator")}) {
        INFO(device);
        Function beyond = function({x}, gather(x, range(0, 6) * 2), {.device = device}),
                 before = function({x}, gather(x, range(0, 4) - 1), {.device = device}),
                 by_length = function({x, n}, gather(x, range(0, n.length(0)) + 3), {.device = device});
        const Array ten = ones({10});
        CHECK_THAT(error_of([&] { beyond(ten); }), ContainsSubstring("10 at element 5"));
        CHECK_THAT(error_of([&] { before(ten); }), ContainsSubstring("-1 at element 0"));
        CHECK(by_length(ten, ones({7}))[0].at(6) == 1);
        CHECK_THAT(error_of([&] { by_length(ten, ones({8})); }), ContainsSubstring("10 at element 7"));
    }
}

namespace {

struct WindowForm {
    const char* name;
    std::int64_t fewest;  // rows that it needs
    std::function<Expr(const Expr& rows)> index;
};

std::vector<WindowForm> windows_by_length() {
    const auto frames = [](const Expr& n, std::int64_t length, std::int64_t hop) {
        return expand_dims(range(0, floordiv(n - length, hop) + 1), 1) * hop + range(0, length);
    };
    return {
        {"windows of 5", 5, [=](const Expr& n) { return frames(n, 5, 1); }},
        {"frames of 8 every 4", 8, [=](const Expr& n) { return frames(n, 8, 4); }},
        {"frames of 7 every 3", 7, [=](const Expr& n) { return frames(n, 7, 3); }},
        {"frames of 3 every 5", 3, [=](const Expr& n) { return frames(n, 3, 5); }},
        {"backwards", 1, [](const Expr& n) { return n - 1 - range(0, n); }},
        {"every third", 3, [](const Expr& n) { return range(0, floordiv(n, 3)) * 3 + 1; }},
        {"windows of windows", 6,
         [](const Expr& n) {
             return expand_dims(expand_dims(range(0, n - 5), 1), 2) + expand_dims(range(0, 3), 1) +
                    range(0, 4);
         }},
        {"turned windows", 4, [](const Expr& n) { return range(0, n - 3) + expand_dims(range(0, 4), 1); }},
        {"a window of which half is beside", 4,
         [](const Expr& n) { return expand_dims(range(2, n - 1), 1) - range(0, 3); }},
    };
}

}  // namespace

TEST_CASE("windows by ranges of unknown lengths, and their gradients, have neither checks nor sorts") {
    Random random(43);
    for (const WindowForm& form : windows_by_length()) {
        for (const bool rows : {false, true}) {
            const Expr x = rows ? input(float32, {-1, 3}, "x") : vector("x"), index = form.index(x.length(0));
            const Expr taken = gather(x, index), again = gather(x, index) * 2;
            const Tolerance near{.absolute = 1e-5, .relative = 1e-5};
            OnTwoDevices both({x}, {{"taken", taken, near},
                                    {"squares", grad(sum(sqr(taken)), x), near},
                                    {"twice", grad(sum(exp(taken) * again), x), near}});
            for (const std::int64_t n : {form.fewest, form.fewest + 1, std::int64_t{29}, std::int64_t{64}}) {
                INFO(form.name << (rows ? ", rows of 3, " : ", ") << n);
                CHECK(both({random_array(float32, rows ? Dims{n, 3} : Dims{n}, random)}) == "");
            }
            if (std::string(tested_device()) != "cpu") continue;
            INFO(form.name << (rows ? ", rows of 3" : ""));
            const std::string report = both.tested().report(Detail::complete);
            CHECK_THAT(report, !ContainsSubstring("out of range"));
            CHECK_THAT(report, !ContainsSubstring("argsort"));
        }
    }
}

TEST_CASE("stacks of many slices at equal distances are windows") {
    Random random(44);
    const auto stacked = [](const Expr& x, std::int64_t step, int axis, int at, bool backwards) {
        constexpr std::int64_t parts = 13;
        const Expr count = x.length(axis) - (parts - 1) * step;
        std::vector<Expr> slices;
        for (std::int64_t k = 0; k < parts; ++k) {
            const std::int64_t start = (backwards ? parts - 1 - k : k) * step;
            const Slice rows{start, count + start};
            slices.push_back(axis == 0 ? x[rows] : x[{colon, rows}]);
        }
        return stack(slices, at);
    };
    for (const bool known : {false, true})
        for (const std::int64_t n : {5, 6, 7, 11, 12, 13, 14, 26, 40}) {
            INFO((known ? "known " : "unknown ") << n);
            const Array values = random_array(float32, {n}, random),
                        both = random_array(float32, {3, n}, random);
            const Expr x = known ? input(float32, Dims{n}, "x") : vector("x"),
                       y = known ? input(float32, Dims{3, n}, "y") : matrix("y");
            // Where slices have several lengths there is no stack: on all devices, and when it is known at
            // once.
            const auto outcome = [&](const std::string& device) {
                return error_of([&] {
                    const Expr lags = stacked(x, 1, 0, 1, false);
                    function({x}, {lags, grad(sum(sqr(lags)), x)}, {.device = device})(values);
                });
            };
            const bool fits = outcome("reference").empty();
            CHECK(outcome(tested_device()).empty() == fits);
            CHECK(fits == (n <= 6 || n >= 12));
            if (!fits || n < 12) continue;
            const Expr lags = stacked(x, 1, 0, 1, false), back = stacked(x, 1, 0, 0, true),
                       columns = stacked(y, n >= 26 ? 2 : 1, 1, 2, false), first = stacked(y, 1, 1, 0, true);
            const Tolerance near{.absolute = 1e-5, .relative = 1e-5};
            OnTwoDevices two({x, y},
                             {{"lags", lags, near},
                              {"backwards", back, near},
                              {"columns", columns, near},
                              {"in front", first, near},
                              {"gradient of lags", grad(sum(exp(lags) * transpose(back)), x), near},
                              {"gradient of columns", grad(sum(sqr(columns)) + sum(exp(first)), y), near}});
            CHECK(two({values, both}) == "");
        }
}

TEST_CASE("the gradient of a few elements reads none beside them") {
    PackedCases cases(tested_device());
    Random random(7);
    for (const std::int64_t length : {20, 600, 5000})
        for (const std::int64_t step : {1, 2, 5}) {
            const Expr x = input(float32, Dims{length}, "x"), i = range(0, 3) * step + 4;
            cases.add(fmt::format("{} by {}", length, step), {x}, {random_array(float32, {length}, random)},
                      grad(sum(sqr(x[i])), x));
        }
    cases.run();
}
