// Long sums over shared variables that a function does not update are computed once for each version of the
// variables. The sums are right wherever their first reader stands in the plan, and follow new values.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Results as float64 beside sums that the test adds up itself.
void check_equal(const Array& got, const std::vector<double>& expected) {
    const Array wide = got.as(float64);
    REQUIRE(wide.size() == static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO("element " << i);
        CHECK(wide.view<double>()[i] == Approx(expected[i]).epsilon(1e-4));
    }
}

std::vector<double> squares_along(const Array& a, std::int64_t rows, std::int64_t columns, int axis) {
    const Array wide = a.as(float64);
    const auto view = wide.view<double>();
    std::vector<double> sums(static_cast<std::size_t>(axis == 0 ? columns : rows));
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            const double x = view[static_cast<std::size_t>(i * columns + j)];
            sums[static_cast<std::size_t>(axis == 0 ? j : i)] += x * x;
        }
    return sums;
}

double total(const std::vector<double>& values) {
    double t = 0;
    for (const double v : values) t += v;
    return t;
}

}  // namespace

TEST_CASE("sums over shared variables are there for the first kernel of a call") {
    Random random(1);
    for (const auto& shape : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 20000}, {4096, 16}, {4096, 101}, {300, 257}, {129, 512}}) {
        const std::int64_t rows = shape.first, columns = shape.second;
        INFO(rows << " x " << columns);
        const Array value = random_array(float32, {rows, columns}, random);
        Shared w = shared(value, "w");
        const Expr x = input(float32, {columns}, "x"), y = input(float32, {3}, "y");
        Function f = function({x, y}, {x * sum(sqr(Expr(w)), {0}), y * sum(sqr(Expr(w)))}, here());
        const Array ones = Array(std::vector<float>(static_cast<std::size_t>(columns), 1.0F));
        const Array three = Array(std::vector<float>{1, 2, -1});
        const auto check = [&](const Array& now) {
            const Results r = f.call(std::vector<Array>{ones, three});
            const std::vector<double> sums = squares_along(now, rows, columns, 0);
            check_equal(r[0], sums);
            const double t = total(sums);
            check_equal(r[1], {t, 2 * t, -t});
        };
        check(value);
        check(value);
        const Array other = random_array(float32, {rows, columns}, random, 0, 1);
        w.set_value(other);
        check(other);
    }
}

TEST_CASE("sums over shared variables feed other sums that run once, and updates") {
    Random random(2);
    const std::int64_t rows = 4096, columns = 24;
    const Array value = random_array(float32, {rows, columns}, random);
    Shared w = shared(value, "w"), step = shared(0.0F, "step");
    const Expr x = input(float32, {columns}, "x");
    const Expr sums = sum(sqr(Expr(w)), {0});
    // The second sum needs the first: both run once, one after the other.
    const Expr spread = sum(sqr(Expr(w) / sums), {0});
    Function f = function({x}, {x + spread, sums}, here({{step, Expr(step) + sum(sums)}}));
    std::vector<double> expected = squares_along(value, rows, columns, 0), spreads;
    for (const double s : expected) spreads.push_back(1 / s);
    const Array zeros = Array(std::vector<float>(static_cast<std::size_t>(columns), 0.0F));
    for (int call = 1; call < 4; ++call) {
        const Results r = f.call(std::vector<Array>{zeros});
        check_equal(r[0], spreads);
        check_equal(r[1], expected);
        check_equal(step.get_value().reshaped({1}), {call * total(expected)});
    }
}

TEST_CASE("edges of a graph that does not change are sorted once") {
    const std::int64_t nodes = 700, edges = 9001;
    const auto numbers = [&](std::int64_t a, std::int64_t b) {
        std::vector<std::int32_t> r;
        for (std::int64_t i = 0; i < edges; ++i)
            r.push_back(static_cast<std::int32_t>((i * a + i * i % b) % nodes));
        return r;
    };
    std::vector<std::int32_t> from = numbers(7, 11), to = numbers(13, 17);
    Shared source = shared(Array(from, {edges}), "source"), target = shared(Array(to, {edges}), "target");
    const Expr x = input(float32, {nodes, 3}, "x"), zero = zeros_like(x),
               arriving = grad(sum(gather(zero, target) * gather(x, source)), zero);
    Function f = function({x}, arriving, here());
    if (std::string(tested_device()) == "cpu")
        CHECK(f.report().find("after shared variables have changed") != std::string::npos);
    Random random(5);
    const Array value = random_array(float32, {nodes, 3}, random, 0, 1);
    const auto check = [&] {
        std::vector<double> expected(static_cast<std::size_t>(nodes * 3));
        for (std::size_t e = 0; e < from.size(); ++e)
            for (std::int64_t j = 0; j < 3; ++j)
                expected[static_cast<std::size_t>(to[e] * 3 + j)] += value.at(from[e] * 3 + j);
        check_equal(f(value)[0].reshaped({nodes * 3}), expected);
    };
    check();
    check();
    to = numbers(29, 5);
    target.set_value(Array(to, {edges}));
    check();
    // A row that is none is an error of each call, though nothing is sorted anew.
    std::vector<std::int32_t> wrong = from;
    wrong[4000] = static_cast<std::int32_t>(nodes);
    source.set_value(Array(wrong, {edges}));
    CHECK_THROWS_AS(f(value), IndexError);
    CHECK_THROWS_AS(f(value), IndexError);
    source.set_value(Array(from, {edges}));
    check();
}

TEST_CASE("sums that depend on lengths or indices of a call run in every call") {
    Random random(3);
    const std::int64_t height = 8192, columns = 24;
    const Array value = random_array(float32, {height, columns}, random);
    Shared w = shared(value, "w");
    const Expr x = input(float32, 1, "x"), n = lscalar("n");
    const Expr head = rows(w, 0, x.length(0));
    const Expr tail = rows(w, n, 4096);
    Function f = function({x, n}, {x[Expr(0)] * sum(sqr(head), {0}), sum(sqr(tail), {0})}, here());
    for (const std::int64_t length : {4096, 8192, 5000}) {
        const Array ones = Array(std::vector<float>(static_cast<std::size_t>(length), 1.0F));
        const std::int64_t from = length / 2;
        const Results r = f.call(std::vector<Array>{ones, Array(from)});
        INFO("length " << length);
        check_equal(r[0], squares_along(value.rows(0, length), length, columns, 0));
        check_equal(r[1], squares_along(value.rows(from, from + 4096), 4096, columns, 0));
    }
}
