// set_subtensor and inc_subtensor beside loops on the host: random indices of every kind, on each device, as
// results and as new values in the place of the old ones.
#include <algorithm>
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

// An index of one axis, and which elements it takes.
struct AxisIndex {
    Index::Item item;
    std::vector<std::int64_t> takes;
    bool is_dropped = false, is_list = false;
};

// Numbers that a call gives.
struct Call {
    Expr i = lscalar("i"), j = lscalar("j"), list = ivector("list");
    std::int64_t at_i = 0, at_j = 0;
    std::vector<std::int32_t> rows;
    std::vector<Input> inputs() const { return {i, j, list}; }
    std::vector<Array> arguments() const { return {Array(at_i), Array(at_j), Array(rows)}; }
};

std::vector<std::int64_t> from_to(std::int64_t first, std::int64_t end, std::int64_t step) {
    std::vector<std::int64_t> r;
    for (std::int64_t k = first; step > 0 ? k < end : k > end; k += step) r.push_back(k);
    return r;
}

AxisIndex random_index(std::int64_t n, const Call& call, Random& random) {
    const auto within = [&](std::int64_t x) { return std::clamp<std::int64_t>(x, 0, n); };
    switch (random.between(0, 7)) {
        case 0: return {colon, from_to(0, n, 1)};
        case 1: {
            const std::int64_t k = random.between(0, n - 1);
            return {random.chance(2) ? k : k - n, {k}, true};
        }
        case 2: {
            const std::int64_t a = random.between(0, n), b = random.between(0, n + 2);
            return {Slice{a, b}, from_to(a, within(b), 1)};
        }
        case 3: {
            const std::int64_t step = random.between(2, 3), a = random.between(0, n - 1);
            return {Slice{a, {}, step}, from_to(a, n, step)};
        }
        case 4: return {Slice{{}, {}, -2}, from_to(n - 1, -1, -2)};
        case 5: return {random.chance(2) ? call.i : cast(call.j, int32), {std::min(call.at_i, n - 1)}, true};
        case 6: return {Slice{call.i, call.i + 3}, from_to(call.at_i, within(call.at_i + 3), 1)};
        default:
            AxisIndex r{call.list, {}, false, true};
            r.takes.assign(call.rows.begin(), call.rows.end());
            return r;
    }
}

// What a call of one case makes of x, and the expression for it.
struct Case {
    std::vector<AxisIndex> at;
    Array y;
    bool adds = false;

    std::string text() const {
        std::string s = adds ? "inc at" : "set at";
        for (const AxisIndex& a : at) {
            s += a.is_dropped ? " one of" : " all of";
            for (const std::int64_t k : a.takes) s += " " + std::to_string(k);
            s += ";";
        }
        return s + " from " + text_of(y.shape());
    }

    Expr of(const Expr& x) const {
        Index index(Slice{});
        index.items.clear();
        for (const AxisIndex& a : at) index.items.push_back(a.item);
        return adds ? inc_subtensor(x, index, y) : set_subtensor(x, index, y);
    }

    Array expected(const Array& x) const {
        std::vector<double> r(static_cast<std::size_t>(x.size()));
        for (std::int64_t k = 0; k < x.size(); ++k) r[static_cast<std::size_t>(k)] = x.at(k);
        Dims part;
        for (std::size_t d = 0; d < x.shape().size(); ++d)
            if (d >= at.size() || !at[d].is_dropped)
                part.push_back(d < at.size() ? static_cast<std::int64_t>(at[d].takes.size()) : x.shape()[d]);
        std::vector<std::int64_t> place(x.shape().size(), 0);
        const auto visit = [&](auto&& next, std::size_t d, std::int64_t linear, const Dims& inside) -> void {
            if (d == x.shape().size()) {
                double& cell = r[static_cast<std::size_t>(linear)];
                const double value = y.at(broadcast_from(inside));
                cell = adds ? cell + value : value;
                return;
            }
            const std::int64_t n = x.shape()[d];
            const std::vector<std::int64_t> all = from_to(0, n, 1);
            const std::vector<std::int64_t>& takes = d < at.size() ? at[d].takes : all;
            for (std::size_t k = 0; k < takes.size(); ++k) {
                Dims more = inside;
                if (d >= at.size() || !at[d].is_dropped) more.push_back(static_cast<std::int64_t>(k));
                next(next, d + 1, linear * n + takes[k], more);
            }
        };
        visit(visit, 0, 0, {});
        return Array(r).reshaped(x.shape()).as(x.dtype());
    }

  private:
    std::int64_t broadcast_from(const Dims& at_part) const {
        const std::size_t missing = at_part.size() - y.shape().size();
        std::int64_t linear = 0;
        for (std::size_t d = 0; d < y.shape().size(); ++d)
            linear = linear * y.shape()[d] + (y.shape()[d] == 1 ? 0 : at_part[d + missing]);
        return linear;
    }
};

// Two lists, and a number that slices keep apart from a list behind them, are refused.
bool is_allowed(const std::vector<AxisIndex>& at) {
    const auto list = std::find_if(at.begin(), at.end(), [](const AxisIndex& a) { return a.is_list; });
    if (list == at.end() || list == at.begin())
        return std::count_if(at.begin(), at.end(), [](const AxisIndex& a) { return a.is_list; }) <= 1;
    for (auto one = at.begin(); one != at.end(); ++one) {
        if (one != list && one->is_list) return false;
        if (!one->is_dropped) continue;
        const auto [low, high] = std::minmax(one, list);
        if (!std::all_of(low + 1, high, [](const AxisIndex& a) { return a.is_dropped; })) return false;
    }
    return true;
}

Case random_case(const Dims& shape, DType dtype, const Call& call, Random& random) {
    Case c;
    const int axes = random.between(1, static_cast<int>(shape.size()));
    Dims part;
    do {
        c.at.clear();
        for (int d = 0; d < axes; ++d)
            c.at.push_back(random_index(shape[static_cast<std::size_t>(d)], call, random));
    } while (!is_allowed(c.at));
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (static_cast<int>(d) >= axes)
            part.push_back(shape[d]);
        else if (!c.at[d].is_dropped)
            part.push_back(static_cast<std::int64_t>(c.at[d].takes.size()));
    }
    c.adds = dtype != boolean && dtype != float16 && dtype != bfloat16 &&
             random.chance(2);  // numbers to compute on
    const auto missing = random.between(0, static_cast<int>(part.size()));
    Dims of_y(part.begin() + missing, part.end());
    for (std::int64_t& n : of_y)
        if (random.chance(4)) n = 1;
    c.y = random_array(int32, of_y, random, 0, dtype == boolean ? 1 : 9).as(dtype);  // exact in any order
    return c;
}

// Some cases, as results and as new values.
void check_cases(const Dims& shape, DType dtype, Random& random, int count) {
    const std::int64_t least = *std::min_element(shape.begin(), shape.end());
    Call call;
    call.at_i = call.at_j = random.between(0, least - 1);
    for (int k = random.between(0, 5); k > 0; --k) call.rows.push_back(random.between(0, least - 1));
    const Array start = random_array(int32, shape, random, 0, dtype == boolean ? 1 : 9).as(dtype);
    std::vector<Case> cases;
    for (int k = 0; k < count; ++k) cases.push_back(random_case(shape, dtype, call, random));
    const bool known = random.chance(2);
    const Expr x = known ? input(dtype, shape, "x") : input(dtype, static_cast<int>(shape.size()), "x");
    for (const std::string& device :
         {std::string(tested_device()), std::string("emulator"), std::string("reference")}) {
        std::vector<Expr> results;
        std::vector<Shared> kept;
        Updates updates;
        results.reserve(cases.size());
        for (const Case& c : cases) {
            results.push_back(c.of(x));
            kept.push_back(shared(start, "kept" + std::to_string(kept.size())));
            updates.emplace_back(kept.back(), c.of(kept.back()));
        }
        std::vector<Input> inputs = call.inputs();
        inputs.insert(inputs.begin(), Input(x));
        Function f = function(inputs, results,
                              {.updates = updates, .device = device, .on_unused_input = OnUnused::ignore});
        std::vector<Array> arguments = call.arguments();
        arguments.insert(arguments.begin(), start);
        const Results got = f.call(arguments);
        for (std::size_t k = 0; k < cases.size(); ++k) {
            const Array expected = cases[k].expected(start);
            INFO(name_of(dtype) << " " << text_of(shape) << ", case " << k << " on " << device << ": "
                                << cases[k].text());
            REQUIRE(difference(got[k], expected, {}).empty());
            REQUIRE(difference(kept[k].get_value(), expected, {}).empty());
        }
    }
}

}  // namespace

TEST_CASE("parts of every kind of index, set and added to") {
    Random random(41);
    for (const Dims& shape : std::vector<Dims>{{1}, {7}, {5, 3}, {1, 4}, {17, 33}, {4, 3, 6}, {3, 1, 5, 2}})
        check_cases(shape, float32, random, 12);
}

TEST_CASE("parts of arrays of every dtype, set and added to") {
    Random random(42);
    for (const DType dtype : all_dtypes) check_cases({6, 9}, dtype, random, 6);
}

TEST_CASE("a row of a cache that a call sets, and nothing else of it is touched") {
    Random random(3);
    const Array start = random_array(float32, {3, 200, 8}, random),
                row = random_array(float32, {3, 8}, random);
    for (const std::string& device : {std::string(tested_device()), std::string("emulator")}) {
        const Shared cache = shared(start, "cache");
        const Expr k = matrix("k"), position = lscalar("position");
        for (const bool adds : {false, true}) {
            const Index at{colon, position};
            const Expr next = adds ? inc_subtensor(cache, at, k) : set_subtensor(cache, at, k);
            Function f = function({k, position}, {}, {.updates = {{cache, next}}, .device = device});
            CHECK_THAT(f.report(Detail::complete), ContainsSubstring("the part that changes, in place"));
            f(row, std::int64_t{0});
            f(row, std::int64_t{199});
            f(row, std::int64_t{77});
            const Array before = cache.get_value();
            for (const std::int64_t beyond : {-1, 200})
                CHECK_THAT(
                    error_of([&] {
                        f(row, beyond);
                        cache.get_value();
                    }),
                    ContainsSubstring("row " + std::to_string(beyond)) && ContainsSubstring("out of range"));
            CHECK(difference(cache.get_value(), before, {}).empty());
        }
        const Array after = cache.get_value();
        for (std::int64_t c = 0; c < 3; ++c)
            for (std::int64_t t = 0; t < 200; ++t)
                for (std::int64_t j = 0; j < 8; ++j) {
                    const bool is_set = t == 0 || t == 199 || t == 77;
                    const std::int64_t at = (c * 200 + t) * 8 + j;
                    REQUIRE(after.at(at) == (is_set ? 2 * row.at(c * 8 + j) : start.at(at)));
                }
    }
}

TEST_CASE("a cache is read before and after its row is set") {
    Random random(4);
    const Array start = random_array(float32, {50, 4}, random), row = random_array(float32, {4}, random);
    for (const std::string& device : {std::string(tested_device()), std::string("emulator")}) {
        const Shared cache = shared(start, "cache");
        const Expr v = vector("v"), i = lscalar("i");
        const Expr next = set_subtensor(cache, i, v);
        Function f = function({v, i}, {sum(cache, {0}), sum(next, {0}), next[i] - cache[i], flip(cache, 0)},
                              {.updates = {{cache, next}}, .device = device});
        const Results r = f(row, std::int64_t{11});
        for (std::int64_t j = 0; j < 4; ++j) {
            double before = 0;
            for (std::int64_t t = 0; t < 50; ++t) before += start.at(t * 4 + j);
            const double change = row.at(j) - start.at(11 * 4 + j);
            CHECK(r[0].at(j) == Approx(before).margin(1e-5));
            CHECK(r[1].at(j) == Approx(before + change).margin(1e-5));
            CHECK(r[2].at(j) == Approx(change));
            CHECK(r[3].at(j) == start.at(49 * 4 + j));
            CHECK(cache.get_value().at(11 * 4 + j) == row.at(j));
        }
    }
}

TEST_CASE("rows of a table set by a list, the last of equal ones stays") {
    Random random(5);
    for (const std::int64_t count : {0, 1, 3, 500}) {
        const Array start = random_array(float32, {4000, 5}, random),
                    rows = random_array(float32, {count, 5}, random),
                    list = random_array(int32, {count}, random, 0, count == 500 ? 60 : 3999);
        for (const std::string& device : {std::string(tested_device()), std::string("emulator")}) {
            const Shared table = shared(start, "table");
            const Expr m = matrix("m"), i = ivector("i");
            Function f =
                function({m, i}, {}, {.updates = {{table, set_subtensor(table, i, m)}}, .device = device});
            f(rows, list);
            std::vector<double> expected;
            for (std::int64_t k = 0; k < start.size(); ++k) expected.push_back(start.at(k));
            for (std::int64_t k = 0; k < count; ++k)
                for (std::int64_t j = 0; j < 5; ++j)
                    expected[static_cast<std::size_t>(list.at(k)) * 5 + static_cast<std::size_t>(j)] =
                        rows.at(k * 5 + j);
            INFO(count << " rows on " << device);
            CHECK(difference(table.get_value(), Array(expected).reshaped({4000, 5}).as(float32), {}).empty());
        }
    }
}

TEST_CASE("rows that are not there are refused before anything is set") {
    const Expr x = input(float32, Dims{3, 4}, "x"), i = lscalar("i"), list = ivector("list");
    const Array a = ones({3, 4});
    for (const std::string& device :
         {std::string(tested_device()), std::string("emulator"), std::string("reference")}) {
        INFO(device);
        Function row = function({x, i}, set_subtensor(x, i, 0), {.device = device}),
                 rows = function({x, list}, set_subtensor(x, list, 0), {.device = device});
        CHECK_THAT(error_of([&] { row(a, std::int64_t{3}); }), ContainsSubstring("row 3 of \"x\""));
        CHECK_THAT(
            error_of([&] {
                rows(a, Array(std::vector<std::int32_t>{0, -1}));
            }),
            ContainsSubstring("row index of set_subtensor of \"x\"") && ContainsSubstring("-1 at element 1"));
    }
}

TEST_CASE("parts of wide rows, of which several tasks have one each, are set in place") {
    for (const std::string& device : {std::string(tested_device()), std::string("emulator")})
        for (const Dims& shape : std::vector<Dims>{{4, 300}, {5, 3, 200}, {64, 1024}}) {
            const auto run = [&](const std::string& name,
                                 const std::function<Expr(const Expr& x, const Expr& i)>& next,
                                 const std::function<double(std::int64_t row)>& expected) {
                const Shared x = shared(ones(shape), "x");
                const Expr i = lscalar("i");
                Function f = function(
                    {i}, {},
                    {.updates = {{x, next(x, i)}}, .device = device, .on_unused_input = OnUnused::ignore});
                f(std::int64_t{1});
                const Array now = x.get_value();
                const std::int64_t width = now.size() / shape[0];
                for (std::int64_t k = 0; k < now.size(); ++k) {
                    INFO(name << " on " << device << ", " << text_of(shape) << ", element " << k);
                    REQUIRE(now.at(k) == expected(k / width));
                }
            };
            const std::int64_t rows = shape[0];
            for (const std::int64_t step : {2, 3, -2, -3})
                run(
                    "stride " + std::to_string(step),
                    [&](const Expr& x, const Expr&) {
                        return inc_subtensor(x, Slice{{}, {}, step}, 1);
                    },
                    [&](std::int64_t r) {
                        return (step > 0 ? r % step : (rows - 1 - r) % -step) == 0 ? 2.0 : 1.0;
                    });
            run(
                "another row", [](const Expr& x, const Expr& i) { return set_subtensor(x * 2, i, x[i]); },
                [](std::int64_t r) { return r == 1 ? 1.0 : 2.0; });
            run(
                "a row of zeros",
                [](const Expr& x, const Expr& i) { return set_subtensor(zeros_like(x), i, x[i]); },
                [](std::int64_t r) { return r == 1 ? 1.0 : 0.0; });
            run(
                "two rows",
                [](const Expr& x, const Expr& i) { return inc_subtensor(inc_subtensor(x, i, 1), i - 1, 2); },
                [](std::int64_t r) { return r == 1   ? 2.0
                                            : r == 0 ? 3.0
                                                     : 1.0; });
            run(
                "a row of a gradient",
                [](const Expr& x, const Expr& i) { return x - 0.25F * grad(sum(sqr(x[i])), x); },
                [](std::int64_t r) { return r == 1 ? 0.5 : 1.0; });
            run(
                "moved by one row",
                [&](const Expr& x, const Expr& i) {
                    return set_subtensor(inc_subtensor(x, i, 4), Slice{1, rows},
                                         inc_subtensor(x, i, 4)[Slice{0, rows - 1}]);
                },
                [](std::int64_t r) { return r == 2 ? 5.0 : 1.0; });
        }
}
