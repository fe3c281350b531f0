// Sums all of whose terms but one are zero become lookups: in the forms that people write, against the
// oracle, on every device, and with numbers that no term agrees with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

bool looks_up(const std::vector<Input>& inputs, const Expr& result) {
    const std::string report = function(inputs, {result}, {.device = "cpu"}).report(Detail::complete);
    INFO(report);
    return report.find("all terms but one are zeros") != std::string::npos;
}

void check_all(const std::vector<Input>& inputs, const std::vector<Expr>& results,
               const std::vector<Array>& arguments, const std::string& what) {
    const Results expected = function(inputs, results, {.device = "reference"}).call(arguments);
    const Results got = function(inputs, results, {.device = tested_device()}).call(arguments);
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(what << ", result " << i);
        CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
    }
}

// k [rows] against the axis of x [rows, n], of table [n, columns] and of both.
std::vector<Expr> forms(const Expr& k, const Expr& x, const Expr& table, std::int64_t n) {
    const Expr at = range(0, n), wide = cast(expand_dims(k, 1), int64), hit = eq(wide, expand_dims(at, 0)),
               ones = cast(hit, table.dtype());
    return {dot(ones, table), sum(ones * x, 1), sum(where(hit, x, 0), 1),
            sum(where(hit, expand_dims(at, 0) + 1, 0), 1),
            sum(expand_dims(ones, 2) * expand_dims(table, 0), 1), dot(transpose(table), transpose(ones)),
            sum(-x * ones * x, 1),
            // Shifted, from the end, and a part of the axis.
            sum(where(eq(wide, expand_dims(at, 0) + 3), x, 0), 1), sum(flip(ones, 1) * x, 1),
            sum(ones[{colon, Slice{5, n - 2}}] * x[{colon, Slice{5, n - 2}}], 1),
            // The axis split into two, and what is looked up in a padded row.
            sum(reshape(where(hit, x, 0), {k.length(0), n / 4, 4}), {1, 2}),
            sum(where(hit, pad(x, {{0, 0}, {2, 0}})[{colon, Slice{0, n}}], 0), 1),
            // Another sum around it, and a maximum, which is none.
            sum(where(hit, x, 0)), max(where(hit, x, 0), 1)};
}

}  // namespace

TEST_CASE("sums over one-hot axes are lookups, whatever numbers are looked up") {
    const std::int64_t rows = 23, n = 40;
    Random random(11);
    for (const DType dtype : {int32, int64, uint8, int8})
        for (const DType of : {float32, float64}) {
            const Expr k = input(dtype, {-1}, "k"), x = input(of, {-1, n}, "x"),
                       table = input(of, {n, 17}, "table");
            std::vector<std::int64_t> numbers;
            for (std::int64_t i = 0; i < rows; ++i)
                numbers.push_back(
                    i < 4 ? std::vector<std::int64_t>{0, n - 1, n, 100}[static_cast<std::size_t>(i)]
                          : (i * 7) % n);
            if (dtype != uint8) numbers[5] = -1, numbers[6] = -7;
            const Array keys = eval(cast(Expr(Array(numbers, {rows})), dtype));
            check_all(
                {k, x, table}, forms(k, x, table, n),
                {keys, random_array(of, {rows, n}, random, -1, 1), random_array(of, {n, 17}, random, -1, 1)},
                fmt::format("{} numbers, {}", name_of(dtype), name_of(of)));
        }
}

TEST_CASE("numbers that no row has give zeros, whatever the first and the last row hold") {
    const float inf = std::numeric_limits<float>::infinity();
    const std::int64_t n = 40;
    std::vector<float> rows(static_cast<std::size_t>(n) * 3, 1);
    rows.front() = inf, rows.back() = -inf;
    const Array keys(std::vector<std::int32_t>{-1, 5, static_cast<std::int32_t>(n), -7, 100}, {5});
    for (const std::int64_t length : {n, std::int64_t{-1}}) {
        const Expr k = input(int32, {-1}, "k"), table = input(float32, {length, 3}, "table"),
                   rows_of_k = dot(one_hot(k, table.length(0)), table),
                   scaled = sum(expand_dims(-one_hot(k, table.length(0)), 2) * expand_dims(table, 0), 1);
        const Results got =
            function({k, table}, {rows_of_k, scaled}, {.device = tested_device()})(keys, Array(rows, {n, 3}));
        for (const Array& result : {got[0], got[1]})
            for (std::int64_t i = 0; i < result.size(); ++i) {
                INFO("element " << i);
                CHECK(std::abs(result.at(i)) == (i / 3 == 1 ? 1 : 0));
            }
    }
}

TEST_CASE("axes of unknown length are looked up, too, and none where they are empty") {
    Random random(12);
    const Expr k = input(int32, {-1}, "k"), x = input(float32, {-1, -1}, "x"),
               table = input(float32, {-1, 17}, "table"), g = input(float32, {-1, 17}, "g");
    const Expr n = table.length(0), at = range(0, n), hit = eq(expand_dims(k, 1), expand_dims(at, 0)),
               ones = one_hot(k, n);
    const std::vector<Expr> results{dot(ones, table),
                                    sum(ones * x, 1),
                                    sum(where(hit, x, 0), 1),
                                    sum(where(hit, expand_dims(at, 0) + 1, 0), 1),
                                    sum(ones * table[at][{colon, Slice{3, 4}}][{colon, 0}], 1),
                                    dot(transpose(ones), g),
                                    dot(transpose(g), ones),
                                    dot(transpose(ones), g[{colon, 2}]),
                                    dot(g[{colon, 2}], ones),
                                    grad(sum(sqr(dot(ones, table)) * g), table)};
    const std::vector<Input> inputs{k, x, table, g};
    Function f = function(inputs, results, {.device = tested_device()}),
             reference = function(inputs, results, {.device = "reference"});
    for (const std::int64_t rows : {0, 1, 200})
        for (const std::int64_t length : {0, 1, 3, 900}) {
            std::vector<std::int32_t> numbers;
            for (std::int64_t i = 0; i < rows; ++i)
                numbers.push_back(static_cast<std::int32_t>(i * i % (length + 3) - 1));
            const std::vector<Array> arguments{Array(numbers, {rows}),
                                               random_array(float32, {rows, length}, random, -1, 1),
                                               random_array(float32, {length, 17}, random, -1, 1),
                                               random_array(float32, {rows, 17}, random, -1, 1)};
            const Results expected = reference.call(arguments), got = f.call(arguments);
            for (std::size_t i = 0; i < got.size(); ++i) {
                INFO(rows << " numbers, " << length << " places, result " << i);
                CHECK(difference(got[i], expected[i], {.of_largest = 1e-5}) == "");
            }
        }
    CHECK(looks_up({k, table}, dot(ones, table)));
    const Function on_cpu = function({k, table, g}, {dot(transpose(ones), g)}, {.device = "cpu"});
    CHECK(on_cpu.report().find("sum_runs") != std::string::npos);
}

TEST_CASE("axes that are cast to fewer bits come again, and all of their places count") {
    Random random(16);
    const std::int64_t n = 700;
    const Expr k = input(int32, {-1}, "k"), x = input(float32, {-1, n}, "x"),
               table = input(float32, {n, 9}, "table"), g = input(float32, {-1, 9}, "g");
    for (const auto& [of_key, of_axis] :
         {std::pair{uint8, uint8}, {int8, int8}, {int16, uint8}, {uint8, int64}, {int32, int16}}) {
        const DType wide = int64;
        const Expr hit = eq(expand_dims(cast(cast(k, of_key), wide), 1),
                            expand_dims(cast(cast(range(0, n), of_axis), wide), 0)),
                   narrow = eq(expand_dims(cast(k, of_axis), 1), expand_dims(cast(range(0, n), of_axis), 0));
        std::vector<Expr> results;
        for (const Expr& c : {hit, narrow}) {
            const Expr ones = cast(c, float32);
            for (const Expr& y :
                 {sum(where(c, x, 0), 1), sum(ones * x, 1), dot(ones, table), dot(transpose(ones), g)})
                results.push_back(y);
        }
        std::vector<std::int32_t> numbers;
        for (int i = 0; i < 40; ++i) numbers.push_back(i * 97 % 800 - 50);
        check_all(
            {k, x, table, g}, results,
            {Array(numbers, {40}), random_array(float32, {40, n}, random, -1, 1),
             random_array(float32, {n, 9}, random, -1, 1), random_array(float32, {40, 9}, random, -1, 1)},
            fmt::format("keys as {}, the axis as {}", name_of(of_key), name_of(of_axis)));
    }
}

TEST_CASE("gradients of maxima over all places of a convolution look up where they were") {
    Random random(12);
    for (const bool one_row : {true, false}) {
        const std::int64_t height = one_row ? 1 : 7, width = one_row ? 40 : 9;
        const Expr x = input(float32, {-1, 3, height, width}, "x"),
                   w = input(float32, {8, 3, one_row ? 1 : 3, 3}, "w"), b = input(float32, {8}, "b");
        for (const int pad : {0, 1}) {
            if (one_row && pad == 1) continue;
            const Expr maps = relu(conv2d(x, w, {.border_mode = pad, .filter_flip = false}) + channel(b)),
                       best = max(maps, {2, 3}), loss = sum(sqr(best) * range(1, 9));
            std::vector<Expr> all = grad(loss, {x, w, b});
            all.push_back(best);
            check_all({x, w, b}, all,
                      {random_array(float32, {5, 3, height, width}, random, -1, 1),
                       random_array(float32, {8, 3, one_row ? 1 : 3, 3}, random, -1, 1),
                       random_array(float32, {8}, random, -0.1, 0.1)},
                      fmt::format("{} x {}, pad {}", height, width, pad));
        }
    }
}

TEST_CASE("reports say what is looked up, and options keep the sums") {
    const Expr k = input(int32, {-1}, "k"), table = input(float32, {100, 30}, "table"),
               product = dot(one_hot(k, 100), table);
    CHECK(looks_up({k, table}, product));
    CHECK_FALSE(looks_up({k, table}, dot(one_hot(k, 9), table[Slice{0, 9}])));  // too short to be worth it
    Options chosen = options();
    chosen.disabled.insert("one-hot-sums");
    {
        const ScopedOptions scope(chosen);
        CHECK_FALSE(looks_up({k, table}, product));
    }
    chosen = options();
    chosen.strict_math = true;
    {
        const ScopedOptions scope(chosen);
        CHECK_FALSE(looks_up({k, table}, product));
        // Zero times infinity is NaN where every product is asked for.
        std::vector<float> rows(100 * 30, 1);
        rows[17] = std::numeric_limits<float>::infinity();
        const Array got = function({k, table}, product, {.device = tested_device()})(
            Array(std::vector<std::int32_t>{5}, {1}), Array(rows, {100, 30}))[0];
        CHECK(std::isnan(got.at(17)));
        CHECK(got.at(16) == 1);
    }
}

TEST_CASE("gradients of products with one-hot matrices add rows where their numbers are") {
    const std::int64_t n = 600, columns = 34, count = 60;  // enough for a scatter
    Random random(13);
    for (const bool known : {true, false}) {
        const Expr k = known ? input(int32, {count}, "k") : input(int32, {-1}, "k"),
                   g = known ? input(float32, {count, columns}, "g") : input(float32, {-1, columns}, "g");
        const Expr ones = cast(eq(expand_dims(k, 1), expand_dims(range(0, n), 0)), float32);
        const Expr pairs = input(int64, {-1, 4}, "pairs"), h = input(float32, {-1, 4, columns}, "h");
        const Expr table = input(float32, {n, columns}, "table"),
                   loss = sum(sqr(dot(one_hot(pairs, n), table)) * h);
        const std::vector<Expr> results{dot(transpose(ones), g),
                                        dot(transpose(g), ones),
                                        dot(transpose(ones), g * 2 + 1),
                                        grad(loss, table),
                                        dot(transpose(ones), g[{colon, 5}]),
                                        dot(g[{colon, 5}], ones)};
        std::vector<std::int32_t> numbers;
        for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::int32_t>(i * i % 7 * 70));
        numbers[3] = -1, numbers[4] = static_cast<std::int32_t>(n), numbers[5] = -2000000000,
        numbers[6] = 2000000000;
        std::vector<std::int64_t> four;
        for (std::int64_t i = 0; i < 15 * 4; ++i) four.push_back(i * 31 % n);
        check_all({k, g, pairs, h, table}, results,
                  {Array(numbers, {count}), random_array(float32, {count, columns}, random, -1, 1),
                   Array(four, {15, 4}), random_array(float32, {15, 4, columns}, random, -1, 1),
                   random_array(float32, {n, columns}, random, -1, 1)},
                  known ? "known lengths" : "unknown lengths");
    }
}

TEST_CASE("a table that is trained through one-hot products has the values of one that is looked up") {
    std::vector<float> start(300 * 8);
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i % 13) / 13;
    Shared hot = shared(Array(start, {300, 8}), "hot"), looked = shared(Array(start, {300, 8}), "looked");
    const Expr k = input(int32, {-1}, "k"), t = input(float32, {-1, 8}, "t");
    const auto step = [&](Shared& table, const Expr& rows) {
        const Expr loss = mean(sqr(rows - t));
        return function({k, t}, loss, here(sgd(loss, {table}, 0.5)));
    };
    Function by_hot = step(hot, dot(one_hot(k, 300), Expr(hot))), by_lookup = step(looked, Expr(looked)[k]);
    Random random(14);
    for (int i = 0; i < 3; ++i) {
        std::vector<std::int32_t> numbers;
        for (int j = 0; j < 90; ++j) numbers.push_back(j * j * (i + 1) % 300);
        const Array keys(numbers, {90}), targets = random_array(float32, {90, 8}, random, -1, 1);
        CHECK(difference(by_hot(keys, targets)[0], by_lookup(keys, targets)[0], {.of_largest = 1e-6}) == "");
    }
    CHECK(difference(hot.get_value(), looked.get_value(), {.of_largest = 1e-6}) == "");
}

TEST_CASE("products of small integers are exact, by floats or not") {
    struct Lengths {
        std::int64_t m, k, n;
    };
    Random random(15);
    for (const auto& [left, right] :
         {std::pair{int8, int8}, {uint8, int8}, {uint8, uint8}, {int16, int8}, {int16, int16}})
        for (const Lengths& l : {Lengths{20, 1024, 24}, {20, 1100, 24}, {33, 7, 50}})
            for (const DType sums : {int32, int64}) {
                if (sums == int32 && left == int16) continue;  // these may wrap
                const Expr a = input(left, {-1, l.k}, "a"), b = input(right, {l.k, l.n}, "b"),
                           bt = input(right, {l.n, l.k}, "bt");
                const Expr wide = cast(a, sums);
                const std::vector<Expr> results{
                    sum(expand_dims(wide, 2) * expand_dims(cast(b, sums), 0), 1),
                    sum(expand_dims(wide, 1) * expand_dims(cast(bt, sums), 0), 2),
                    sum(expand_dims(cast(bt, sums), 1) * expand_dims(wide, 0), 2) * 3 - 1,
                    sum(wide * cast(bt[Slice{0, 1}], sums), 1)};
                const auto numbers = [&](DType dtype, const Dims& shape) {
                    return random_array(dtype, shape, random, -128, 127);
                };
                const std::vector<Array> arguments{numbers(left, {l.m, l.k}), numbers(right, {l.k, l.n}),
                                                   numbers(right, {l.n, l.k})};
                const Results expected =
                    function({a, b, bt}, results, {.device = "reference"}).call(arguments);
                const Results got =
                    function({a, b, bt}, results, {.device = tested_device()}).call(arguments);
                for (std::size_t i = 0; i < got.size(); ++i) {
                    INFO(fmt::format("{} x {} to {}, k {}, form {}", name_of(left), name_of(right),
                                     name_of(sums), l.k, i));
                    CHECK(difference(got[i], expected[i]) == "");
                }
            }
    // The largest products that there are.
    const Expr a = input(int8, {16, 1024}, "a"), b = input(int8, {1024, 16}, "b");
    const Array lowest(std::vector<std::int8_t>(16 * 1024, -128), {16, 1024});
    const Array got = function(
        {a, b}, sum(expand_dims(cast(a, int32), 2) * expand_dims(cast(b, int32), 0), 1),
        {.device = tested_device()})(lowest, Array(std::vector<std::int8_t>(16 * 1024, -128), {1024, 16}))[0];
    CHECK(got.at(5) == 1024.0 * 128 * 128);
}

TEST_CASE("sums of one-hot arrays are counts, along all axes, for numbers that are no class too") {
    Random random(21);
    const std::int64_t classes = 12;
    for (const DType dtype : {uint8, int8, int32, int64})
        for (const bool known : {true, false}) {
            const Expr k = known ? input(dtype, {3, 130, 41}, "k") : input(dtype, {-1, -1, -1}, "k"),
                       line = input(dtype, {-1}, "line"), other = input(dtype, {-1}, "other");
            const Expr place = range(0, classes), last = expand_dims(cast(k, int64), 3);
            const std::vector<Expr> results{
                sum(one_hot(k, classes, int32), {0, 1, 2}), sum(one_hot(k, classes), {1, 2}),
                sum(one_hot(k, classes), {0, 2}), sum(one_hot(k, classes, uint8), {0}),
                mean(one_hot(transpose(k, {2, 0, 1}), classes), {0, 1}), sum(eq(last, place), {0, 1}),
                sum(eq(expand_dims(place, 1), expand_dims(cast(line, int64), 0)), 1),
                sum(one_hot(line, classes, float64), 0),
                dot(transpose(one_hot(line[Slice{0, -1}], 9)), one_hot(line[Slice{.start = 1}], 7)),
                dot(transpose(one_hot(line, 9)), one_hot(other, 7)),
                // All, and so few classes that they are compared.
                sum(one_hot(line, classes)), sum(one_hot(line, 3), 0)};
            const auto numbers = [&](const Dims& shape) {
                const int low = dtype == uint8 ? 0 : -2;
                return eval(cast(Expr(random_array(int32, shape, random, low, 14)), dtype));
            };
            for (const std::int64_t n : {130, 9000, 2, 0}) {
                if (known && n != 130) continue;
                const std::int64_t rows = std::min<std::int64_t>(n, 130);
                check_all({k, line, other}, results,
                          {numbers({3, rows, 41}), numbers({std::max<std::int64_t>(n, 1)}),
                           numbers({std::max<std::int64_t>(n, 1)})},
                          fmt::format("{}, {}, {} points", name_of(dtype), known ? "known" : "unknown", n));
            }
        }
}

TEST_CASE("rows are added up by numbers of few classes, block by block") {
    Random random(22);
    for (const DType of : {float32, float64})
        for (const DType dtype : {uint8, int32, int64}) {
            const Expr k = input(dtype, {-1}, "k"), g = input(of, {-1, 19}, "g"), r = input(of, {5, -1}, "r");
            const std::vector<Expr> results{dot(transpose(one_hot(k, 23, of)), g * 2),
                                            dot(r, one_hot(k, 40, of)),
                                            dot(transpose(one_hot(k, 9, of)), sqr(transpose(r))),
                                            dot(transpose(cast(eq(expand_dims(k, 1), range(0, 300)), of)), g),
                                            // Too few classes, too few columns, a vector.
                                            dot(transpose(one_hot(k, 3, of)), g),
                                            dot(transpose(one_hot(k, 23, of)), g[{colon, Slice{0, 2}}]),
                                            dot(transpose(one_hot(k, 23, of)), g[{colon, 4}])};
            for (const std::int64_t n : {3000, 1024, 1, 0, 150}) {
                const int low = dtype == uint8 ? 0 : -3;
                check_all({k, g, r}, results,
                          {eval(cast(Expr(random_array(int32, {n}, random, low, 45)), dtype)),
                           random_array(of, {n, 19}, random, -1, 1), random_array(of, {5, n}, random, -1, 1)},
                          fmt::format("{} of {}, {} points", name_of(of), name_of(dtype), n));
            }
        }
}

TEST_CASE("a number that is added where indices say is counted") {
    Random random(77);
    std::vector<Input> inputs;
    std::vector<Array> arguments;
    std::vector<Expr> results;
    std::vector<std::string> what;
    for (const DType of_indices : {uint8, int32, int64})
        for (const std::int64_t points : {3, 100, 9000})
            for (const std::int64_t classes : {1, 7, 40, 300, 5000}) {
                const bool known = random.chance(2);
                const Expr k = known ? input(of_indices, {points}, "k") : input(of_indices, 1, "k");
                inputs.push_back(k);
                const double most = static_cast<double>(std::min<std::int64_t>(classes - 1, 255));
                arguments.push_back(random_array(of_indices, {points}, random, 0, most));
                for (const DType dtype : {int8, uint16, int32, int64, float32, float64}) {
                    const Expr table = cast(range(0, classes), dtype);
                    const double times = is_float(dtype) ? -1.5 : 3;
                    results.push_back(inc_subtensor(table, k, cast(Expr(times), dtype)));
                    what.push_back(fmt::format("{} {} into {} {}", points, name_of(of_indices), classes,
                                               name_of(dtype)));
                }
            }
    for (const char* device : {"cpu", tested_device()}) {
        const Results got = function(inputs, results, {.device = device}).call(arguments);
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO(device << ": " << what[i]);
            const Array& list = arguments[i / 6];
            const DType dtype = results[i].dtype();
            std::vector<double> expected;
            for (std::int64_t c = 0; c < got[i].size(); ++c)
                expected.push_back(Array(std::vector<std::int64_t>{c}).as(dtype).at(0));
            for (std::int64_t n = 0; n < list.size(); ++n)
                expected[static_cast<std::size_t>(list.at(n))] += is_float(dtype) ? -1.5 : 3;
            bool same = true;
            for (std::int64_t c = 0; c < got[i].size(); ++c) {
                const double e = expected[static_cast<std::size_t>(c)];
                const double wrapped =
                    is_float(dtype)
                        ? e
                        : Array(std::vector<std::int64_t>{static_cast<std::int64_t>(e)}).as(dtype).at(0);
                same = same && got[i].at(c) == wrapped;
            }
            CHECK(same);
        }
    }
    const Shared counts = shared(zeros({300}, int32), "counts");
    const Expr k = lvector("k");
    Function f =
        function({k}, {}, {.updates = {{counts, inc_subtensor(counts, k, 1)}}, .device = tested_device()});
    f(Array(std::vector<std::int64_t>{5, 299, 5}));
    f(Array(std::vector<std::int64_t>{}));
    CHECK_THROWS_AS(f(Array(std::vector<std::int64_t>{5, 300})), IndexError);
    CHECK(counts.get_value().at(5) == 2);
    CHECK(counts.get_value().at(299) == 1);
}
