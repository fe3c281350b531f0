// New values of variables that one call both makes and reads: a large part that changes takes the old one's
// place before the rest of the call reads it, wherever an order allows that.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr std::int64_t cache_rows = 400, cache_width = 200, cache_bytes = cache_rows * cache_width * 4;

using Numbers = std::vector<double>;

Numbers numbers_of(const Array& a) {
    Numbers r;
    for (std::int64_t k = 0; k < a.size(); ++k) r.push_back(a.at(k));
    return r;
}

void put_row(Numbers& x, std::int64_t row, const Numbers& from, std::int64_t from_row) {
    for (std::int64_t j = 0; j < cache_width; ++j)
        x[static_cast<std::size_t>(row * cache_width + j)] =
            from[static_cast<std::size_t>(from_row * cache_width + j)];
}

double total_of(const Numbers& x) {
    double sum = 0;
    for (const double v : x) sum += v;
    return sum;
}

// Two variables and a row, on each device.
void for_each_device(const std::function<void(const std::string& device, const Shared& x, const Shared& y,
                                              const Array& row)>& check) {
    Random random(6);
    const Array first = random_array(float32, {cache_rows, cache_width}, random),
                second = random_array(float32, {cache_rows, cache_width}, random),
                row = random_array(float32, {1, cache_width}, random);
    for (const std::string& device :
         {std::string(tested_device()), std::string("emulator"), std::string("reference")}) {
        INFO(device);
        check(device, shared(first, "x"), shared(second, "y"), row);
    }
}

void check_equal(const Shared& x, const Numbers& expected) {
    const Array now = x.get_value();
    for (std::int64_t k = 0; k < now.size(); ++k) {
        INFO("element " << k << " of " << x.name());
        REQUIRE(now.at(k) == Approx(expected[static_cast<std::size_t>(k)]));
    }
}

// Whether the function holds no second array of a variable's size.
bool is_in_place(const Function& f, std::int64_t variables) {
    return f.peak_bytes() < (variables + 0.5) * cache_bytes;
}

}  // namespace

TEST_CASE("what reads a cache after its row is set reads the variable itself") {
    for_each_device([](const std::string& device, const Shared& x, const Shared&, const Array& row) {
        const Expr v = matrix("v"), i = lscalar("i"), next = set_subtensor(x, i, v[0]);
        const Expr weights = softmax(dot(next, v[0]) / 20);
        Function f = function({v, i}, {dot(weights, next), sum(next), next[i]},
                              {.updates = {{x, next}}, .device = device});
        Numbers expected = numbers_of(x.get_value());
        for (const std::int64_t at : {7, 399, 0}) {
            const Results r = f(row, at);
            put_row(expected, at, numbers_of(row), 0);
            check_equal(x, expected);
            Numbers scores;
            double norm = 0;
            for (std::int64_t t = 0; t < cache_rows; ++t) {
                double score = 0;
                for (std::int64_t j = 0; j < cache_width; ++j)
                    score += expected[static_cast<std::size_t>(t * cache_width + j)] * row.at(j);
                scores.push_back(std::exp(score / 20));
                norm += scores.back();
            }
            for (std::int64_t j = 0; j < cache_width; ++j) {
                double mixed = 0;
                for (std::int64_t t = 0; t < cache_rows; ++t)
                    mixed += scores[static_cast<std::size_t>(t)] / norm *
                             expected[static_cast<std::size_t>(t * cache_width + j)];
                REQUIRE(r[0].at(j) == Approx(mixed).margin(1e-5));
                REQUIRE(r[2].at(j) == row.at(j));
            }
            CHECK(r[1].at(0) == Approx(total_of(expected)).margin(1e-2));
        }
        if (device != "reference") CHECK(is_in_place(f, 1));
    });
}

TEST_CASE("readers of the old value come before, those of the new one behind") {
    for_each_device([](const std::string& device, const Shared& x, const Shared&, const Array& row) {
        const Expr v = matrix("v"), i = lscalar("i"), next = inc_subtensor(x, i, v[0]);
        Function f = function({v, i}, {sum(x, {1}), sum(next, {1}), exp(x[i]), sum(sqr(next), {0})},
                              {.updates = {{x, next}}, .device = device});
        const Numbers before = numbers_of(x.get_value());
        const Results r = f(row, std::int64_t{33});
        for (std::int64_t t = 0; t < cache_rows; ++t) {
            double old = 0, changed = 0;
            for (std::int64_t j = 0; j < cache_width; ++j) {
                old += before[static_cast<std::size_t>(t * cache_width + j)];
                changed += t == 33 ? row.at(j) : 0;
            }
            REQUIRE(r[0].at(t) == Approx(old).margin(1e-4));
            REQUIRE(r[1].at(t) == Approx(old + changed).margin(1e-4));
        }
        for (std::int64_t j = 0; j < cache_width; ++j)
            REQUIRE(r[2].at(j) == Approx(std::exp(before[static_cast<std::size_t>(33 * cache_width + j)])));
        if (device != "reference") CHECK(is_in_place(f, 1));
    });
}

TEST_CASE("what reads both the old and the new value has both") {
    for_each_device([](const std::string& device, const Shared& x, const Shared&, const Array& row) {
        const Expr v = matrix("v"), i = lscalar("i"), next = set_subtensor(x, i, v[0]);
        Function f = function({v, i}, {sum(abs(next - x)), sum(next * flip(x, 0))},
                              {.updates = {{x, next}}, .device = device});
        const Numbers before = numbers_of(x.get_value());
        Numbers after = before;
        put_row(after, 5, numbers_of(row), 0);
        double change = 0, product = 0;
        for (std::int64_t t = 0; t < cache_rows; ++t)
            for (std::int64_t j = 0; j < cache_width; ++j) {
                const double now = after[static_cast<std::size_t>(t * cache_width + j)];
                change += std::abs(now - before[static_cast<std::size_t>(t * cache_width + j)]);
                product += now * before[static_cast<std::size_t>((cache_rows - 1 - t) * cache_width + j)];
            }
        const Results r = f(row, std::int64_t{5});
        CHECK(r[0].at(0) == Approx(change));
        CHECK(r[1].at(0) == Approx(product).margin(1e-2));
        check_equal(x, after);
    });
}

TEST_CASE("a check that fails leaves variables as they were, also where it looks at a new value") {
    for_each_device([](const std::string& device, const Shared& x, const Shared& y, const Array& row) {
        const Expr v = matrix("v"), i = lscalar("i"), next = set_subtensor(x, i, v[0]);
        const Numbers before = numbers_of(x.get_value());
        Function other = function({v, i}, {sum(next), Expr(y)[i + 1]},
                                  {.updates = {{x, next}}, .device = device}),
                 own = function({v, i}, {sum(next), Expr(y)[cast(next[0][1] * 0 + 401, int64)]},
                                {.updates = {{x, next}}, .device = device});
        CHECK_THAT(error_of([&] { other(row, std::int64_t{399}); }), ContainsSubstring("row 400 of \"y\""));
        CHECK_THAT(error_of([&] { own(row, std::int64_t{3}); }), ContainsSubstring("row 401 of \"y\""));
        check_equal(x, before);
        other(row, std::int64_t{398});
        Numbers after = before;
        put_row(after, 398, numbers_of(row), 0);
        check_equal(x, after);
    });
}

TEST_CASE("rows that two variables exchange, and one that follows from another's new value") {
    for_each_device([](const std::string& device, const Shared& x, const Shared& y, const Array&) {
        const Expr i = lscalar("i"), a = set_subtensor(x, i, Expr(y)[i]), b = set_subtensor(y, i, Expr(x)[i]);
        Function exchange = function({i}, {sum(a), sum(b)}, {.updates = {{x, a}, {y, b}}, .device = device});
        Numbers one = numbers_of(x.get_value()), two = numbers_of(y.get_value());
        const Numbers old_one = one, old_two = two;
        put_row(one, 9, old_two, 9);
        put_row(two, 9, old_one, 9);
        const Results r = exchange(std::int64_t{9});
        CHECK(r[0].at(0) == Approx(total_of(one)).margin(1e-2));
        CHECK(r[1].at(0) == Approx(total_of(two)).margin(1e-2));
        check_equal(x, one);
        check_equal(y, two);

        const Expr c = inc_subtensor(x, i, 1), d = set_subtensor(y, i + 1, c[i] + c[i + 1]);
        Function chain =
            function({i}, {sum(d, {0}), sum(c, {0})}, {.updates = {{x, c}, {y, d}}, .device = device});
        chain(std::int64_t{20});
        for (std::int64_t j = 0; j < cache_width; ++j) {
            one[static_cast<std::size_t>(20 * cache_width + j)] += 1;
            two[static_cast<std::size_t>(21 * cache_width + j)] =
                one[static_cast<std::size_t>(20 * cache_width + j)] +
                one[static_cast<std::size_t>(21 * cache_width + j)];
        }
        check_equal(x, one);
        check_equal(y, two);
        if (device != "reference") CHECK(is_in_place(chain, 2));
    });
}

TEST_CASE("a loop sets one row after another, and reads them all each time") {
    for_each_device([](const std::string& device, const Shared& x, const Shared&, const Array& row) {
        const Shared v = shared(row, "v");
        const Expr i = lscalar("i"), next = set_subtensor(x, i, Expr(v)[0] * cast(i, float32));
        Function f = function({i}, {sum(next)}, {.updates = {{x, next}}, .device = device});
        Numbers expected = numbers_of(x.get_value());
        const Results r = f.loop(0, 6);
        for (std::int64_t step = 0; step < 6; ++step) {
            for (std::int64_t j = 0; j < cache_width; ++j)
                expected[static_cast<std::size_t>(step * cache_width + j)] =
                    row.at(j) * static_cast<double>(step);
            CHECK(r[0].at(step) == Approx(total_of(expected)).margin(1e-2));
        }
        check_equal(x, expected);
    });
}
