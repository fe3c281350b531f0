// Gradients of lookups: sums over runs of sorted indices, into new tables and in place, against the oracle
// and against devices where each row looks at all indices.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/temporary.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array indices(DType dtype, const Dims& shape, std::int64_t low, std::int64_t high, Random& random) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(count_of(shape)));
    for (std::int64_t& v : values) v = random.between(low, high);
    return Array(std::span<const std::int64_t>(values), shape).as(dtype);
}

// A program and arguments of its calls: what calls return, then the variables' values.
struct LookupProgram {
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    Updates updates;
    std::vector<std::vector<Array>> calls;
};

std::vector<Array> run(const LookupProgram& p, const std::string& device, std::string* report = nullptr) {
    Function f = function(p.inputs, p.outputs,
                          {.updates = p.updates, .device = device, .on_unused_input = OnUnused::ignore});
    std::vector<Array> all;
    for (const std::vector<Array>& arguments : p.calls) {
        const Results r = f.call(arguments);
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
        for (const Update& u : p.updates) all.push_back(u.target.get_value());
    }
    if (report) *report = f.report(Detail::complete);
    return all;
}

// The same program on the tested device and the reference; `make` builds it with variables of its own.
template <class Make>
std::string compare(const Make& make, const char* mentions = nullptr,
                    const Tolerance& near = {.absolute = 2e-5, .relative = 2e-5}) {
    std::string report;
    const std::vector<Array> got = run(make(), tested_device(), &report), expected = run(make(), "reference");
    if (mentions && std::string(tested_device()) == "cpu" && report.find(mentions) == std::string::npos)
        return std::string("no \"") + mentions + "\" in\n" + report;
    for (std::size_t k = 0; k < got.size(); ++k)
        if (std::string d = difference(got[k], expected[k], near); !d.empty())
            return "value " + std::to_string(k) + ": " + d;
    return "";
}

constexpr const char* in_place = "rows of the first axis that have keys";

}  // namespace

TEST_CASE("gradients of lookups, by dtype of indices and of tables") {
    for (const DType index : {int8, uint8, int16, uint16, int32, uint32, int64, uint64})
        for (const DType dtype : {float32, float64}) {
            INFO(name_of(index) << ", " << name_of(dtype));
            CHECK(compare([&] {
                      Random random(1);
                      const Expr table = input(dtype, {100, 17}, "table"), at = input(index, {-1}, "at"),
                                 weights = input(dtype, {-1, 17}, "weights");
                      LookupProgram p;
                      p.inputs = {table, at, weights};
                      p.outputs = {grad(sum(tanh(gather(table, at)) * weights), table)};
                      for (const std::int64_t n : {0, 1, 300, 5, 1000})
                          p.calls.push_back({random_array(dtype, {100, 17}, random),
                                             indices(index, {n}, 0, 99, random),
                                             random_array(dtype, {n, 17}, random)});
                      return p;
                  }) == "");
        }
}

TEST_CASE("gradients of lookups, by shape of tables and of indices") {
    struct Case {
        Dims table, at;
        bool known;
    };
    for (const Case& c :
         {Case{{300}, {500}, true}, Case{{300}, {20, 25}, true}, Case{{300, 1}, {500}, true},
          Case{{64, 3, 5}, {10, 60}, true}, Case{{40, 9000}, {500}, true}, Case{{40, 70, 130}, {500}, true},
          Case{{300}, {500}, false}, Case{{300, 20}, {500}, false}, Case{{70, 3, 5}, {10, 60}, false}}) {
        const auto name = [&](const Dims& shape) { return Array(float32, shape).shape().size(); };
        INFO(c.table[0] << " rows, " << name(c.table) << " axes, " << name(c.at) << " axes of indices"
                        << (c.known ? "" : ", unknown"));
        CHECK(compare([&] {
                  Random random(2);
                  Dims shape = c.table, places = c.at, found = c.at;
                  found.insert(found.end(), c.table.begin() + 1, c.table.end());
                  Dims given = found;
                  if (!c.known)
                      for (Dims* d : {&shape, &places, &given}) std::fill(d->begin(), d->end(), -1);
                  const Expr table = input(float32, shape, "table"), at = input(int32, places, "at"),
                             weights = input(float32, given, "weights");
                  LookupProgram p;
                  p.inputs = {table, at, weights};
                  const Expr gradient = grad(sum(gather(table, at) * weights), table);
                  p.outputs = {gradient, sum(sqr(gradient))};
                  p.calls.push_back({random_array(float32, c.table, random),
                                     indices(int32, c.at, 0, c.table[0] - 1, random),
                                     random_array(float32, found, random)});
                  return p;
              }) == "");
    }
}

TEST_CASE("steps of tables write the rows that were looked up, in place") {
    for (const DType dtype : {float32, float64})
        for (const bool own : {true, false}) {
            INFO(name_of(dtype) << (own ? ", a gradient that reads the table" : ""));
            CHECK(
                compare(
                    [&] {
                        Random random(3);
                        const Shared table = shared(random_array(dtype, {500, 24}, random), "table");
                        const Expr at = input(int64, {-1}, "at"), weights = input(dtype, {-1, 24}, "weights");
                        const Expr found = gather(table, at),
                                   loss = sum((own ? sqr(found) : found) * weights);
                        LookupProgram p;
                        p.inputs = {at, weights};
                        p.updates = sgd(loss, {table}, 0.125);
                        for (const std::int64_t n : {200, 0, 1, 70, 1500})
                            p.calls.push_back({indices(int64, {n}, 0, n == 70 ? 0 : 499, random),
                                               random_array(dtype, {n, 24}, random, -0.1, 0.1)});
                        return p;
                    },
                    in_place) == "");
        }
}

TEST_CASE("two tables, each looked up in the gradient of the other, one of them twice, change in place") {
    CHECK(compare(
              [] {
                  Random random(12);
                  const Shared in = shared(random_array(float32, {4000, 24}, random), "in"),
                               out = shared(random_array(float32, {4000, 24}, random), "out");
                  const Expr word = input(int32, {-1}, "word"), near = input(int32, {-1}, "near"),
                             far = input(int32, {-1, 5}, "far");
                  const Expr u = gather(in, word), seen = sum(u * gather(out, near), 1),
                             unseen = sum(expand_dims(u, 1) * gather(out, far), 2);
                  const Expr loss = mean(softplus(-seen) + sum(softplus(unseen), 1));
                  LookupProgram p;
                  p.inputs = {word, near, far};
                  p.outputs = {loss};
                  p.updates = sgd(loss, {in, out}, 0.5);
                  for (const std::int64_t n : {40, 1, 64})
                      p.calls.push_back({indices(int32, {n}, 0, n == 40 ? 3 : 3999, random),
                                         indices(int32, {n}, 0, 3999, random),
                                         indices(int32, {n, 5}, 0, n == 40 ? 3 : 3999, random)});
                  return p;
              },
              in_place) == "");
}

TEST_CASE("other rows than those looked up keep their bits") {
    if (std::string(tested_device()) != "cpu") return;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> values(64 * 4);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? -0.0F : i % 3 == 1 ? nan : 1.5F;
    const Expr at = input(int32, {400}, "at"), rate = scalar("rate");
    for (const float r : {-0.5F, 0.0F, std::numeric_limits<float>::infinity(), nan}) {
        const Array before(std::span<const float>(values), {64, 4});
        const Shared table = shared(before, "table");
        Function step = function({at, rate}, {}, {.updates = sgd(sum(gather(table, at)), {table}, rate)});
        std::vector<std::int32_t> places(400, 7);
        step(Array(places), Array(r));
        const Array after = table.get_value();
        for (std::int64_t row = 0; row < 64; ++row)
            if (row != 7)
                CHECK(std::memcmp(static_cast<const float*>(after.data()) + 4 * row, values.data() + 4 * row,
                                  4 * sizeof(float)) == 0);
    }
}

TEST_CASE("under math=strict all rows of a table are written") {
    if (std::string(tested_device()) != "cpu") return;
    Options strict = options();
    strict.strict_math = true;
    const ScopedOptions scope(strict);
    const Shared table = shared(ones({64, 4}), "table");
    const Expr at = input(int32, {400}, "at"), rate = scalar("rate");
    Function step = function({at, rate}, {}, {.updates = sgd(sum(gather(table, at)), {table}, rate)});
    CHECK(step.report(Detail::complete).find(in_place) == std::string::npos);
    step(Array(std::vector<std::int32_t>(400, 7)), Array(std::numeric_limits<float>::infinity()));
    CHECK(std::isnan(table.get_value().at(0)));
}

TEST_CASE("lookups that wrap, twice in one table, of what was looked up, and with the table read elsewhere") {
    const auto make = [](int which) {
        return [which] {
            Random random(4);
            const Shared table = shared(random_array(float32, {200, 12}, random), "table");
            const Expr at = input(int32, {-1}, "at"), weights = input(float32, {-1, 12}, "weights"),
                       names = input(int16, {90}, "names");
            LookupProgram p;
            p.inputs = {at, weights, names};
            Expr loss;
            if (which == 0) loss = sum(gather(table, where(at < 0, at + 200, at)) * weights);
            if (which == 1)
                loss = sum(gather(table, (at + 200) % 200) * gather(table, (at * 3 + 600) % 200) * weights);
            if (which == 2) loss = sum(gather(gather(table, names), (at + 180) % 90) * weights);
            if (which == 3) loss = sum(gather(table, (at + 200) % 200) * weights) + sum(sqr(Expr(table)));
            if (which == 4) {
                loss = sum(gather(table, (at + 200) % 200) * weights);
                p.outputs = {loss, sum(table, {0}), Expr(table) * 2};
            }
            if (which == 5) {
                loss = sum(gather(table, (at + 200) % 200) * weights);
                p.outputs = {grad(loss, Expr(table))};
            }
            p.updates = sgd(loss, {table}, 0.25);
            for (const std::int64_t n : {150, 0, 1, 400})
                p.calls.push_back({indices(int32, {n}, which == 0 ? -200 : 0, which == 0 ? 199 : 190, random),
                                   random_array(float32, {n, 12}, random, -0.1, 0.1),
                                   indices(int16, {90}, 0, 199, random)});
            return p;
        };
    };
    for (const int which : {0, 1, 2, 3, 4, 5}) {
        INFO("program " << which);
        CHECK(compare(make(which)) == "");
    }
}

// Some versions of g++ give groups of masked loads the mask of the first one (device/base.h, B_SCALAR_LOOP).
TEST_CASE("lookups of known lengths, twice in one table, in both modes of compiling") {
    for (const Options::Mode mode : {Options::Mode::fast_run, Options::Mode::fast_compile})
        for (const std::int64_t columns : {2, 3, 4, 7})
            for (const std::int64_t rows : {30, 64}) {
                INFO(rows << " rows of " << columns
                          << (mode == Options::Mode::fast_run ? "" : ", fast_compile"));
                Options changed = options();
                changed.mode = mode;
                const ScopedOptions scope(changed);
                CHECK(compare([&] {
                          Random random(9);
                          const Expr table = input(float32, {200, 32}, "table"),
                                     i = input(int32, {rows}, "i"), j = input(int64, {rows, columns}, "j"),
                                     weights = input(float32, {rows, 32}, "weights");
                          const Expr x = gather(table, i), y = sum(gather(table, j), {1});
                          const Expr loss = sum(softplus(-sum(x * weights, {1}))) + mean(y);
                          LookupProgram p;
                          p.inputs = {table, i, j, weights};
                          p.outputs = {grad(loss, table)};
                          p.calls.push_back({random_array(float32, {200, 32}, random),
                                             indices(int32, {rows}, 0, 199, random),
                                             indices(int64, {rows, columns}, 0, 199, random),
                                             random_array(float32, {rows, 32}, random)});
                          return p;
                      }) == "");
            }
}

TEST_CASE("gradients of lookups beside what they look up in, computed in the same kernel") {
    for (const bool known : {false, true})
        for (const std::int64_t columns : {0, 1, 5}) {
            INFO(columns << " columns" << (known ? ", known" : ""));
            CHECK(compare([&] {
                      Random random(10);
                      Dims shape{400}, found{-1}, given{-1};
                      if (known) given = shape;
                      for (Dims* d : {&shape, &found, &given})
                          if (columns > 0) d->push_back(columns);
                      const Expr x = input(float32, given, "x"), w = input(float32, found, "w"),
                                 at = input(int64, {-1}, "at");
                      const Expr table = cos(x), other = exp(x),
                                 gradient = grad(sum(gather(table, at) * w), table);
                      const Expr both = grad(sum(gather(table, at) * gather(other, at) * w), table);
                      LookupProgram p;
                      p.inputs = {x, w, at};
                      p.outputs = {table + gradient, both + other, both * gradient};
                      for (const std::int64_t n : {500, 0, 1, 60}) {
                          found[0] = n;
                          p.calls.push_back({random_array(float32, shape, random),
                                             random_array(float32, found, random),
                                             indices(int64, {n}, 0, 399, random)});
                      }
                      return p;
                  }) == "");
        }
}

TEST_CASE("optimizers with states, and decay, on tables") {
    for (const int which : {0, 1, 2}) {
        INFO("optimizer " << which);
        CHECK(compare(
                  [&] {
                      Random random(5);
                      const Shared table = shared(random_array(float32, {300, 10}, random), "table");
                      const Expr at = input(int32, {-1}, "at"), weights = input(float32, {-1, 10}, "weights");
                      const Expr loss = sum(tanh(gather(table, at)) * weights);
                      LookupProgram p;
                      p.inputs = {at, weights};
                      p.updates = which == 0   ? momentum(loss, {table}, 0.1)
                                  : which == 1 ? momentum(loss, {table}, 0.1, {.weight_decay = 0.01})
                                               : adam(loss, {table}, 0.01);
                      for (const std::int64_t n : {150, 0, 1, 400})
                          p.calls.push_back({indices(int32, {n}, 0, 299, random),
                                             random_array(float32, {n, 10}, random, 0.5, 1)});
                      return p;
                  },
                  nullptr, {.absolute = 1e-4, .relative = 1e-4}) == "");
    }
}

TEST_CASE("tables in half precision") {
    CHECK(compare(
              [] {
                  Random random(6);
                  const Shared table = shared(random_array(float32, {300, 16}, random).as(float16), "table");
                  const Expr at = input(int32, {-1}, "at"), weights = input(float32, {-1, 16}, "weights");
                  const Expr wide = cast(table, float32),
                             gradient = grad(sum(gather(wide, at) * weights), wide);
                  LookupProgram p;
                  p.inputs = {at, weights};
                  p.updates = {{table, cast(wide - 0.125 * gradient, float16)}};
                  for (const std::int64_t n : {150, 0, 900})
                      p.calls.push_back({indices(int32, {n}, 0, 299, random),
                                         random_array(float32, {n, 16}, random, -0.1, 0.1)});
                  return p;
              },
              in_place, {.absolute = 4e-3, .relative = 4e-3}) == "");
}

TEST_CASE("a row out of range changes no table") {
    if (std::string(tested_device()) != "cpu") return;
    Random random(7);
    const Array before = random_array(float32, {300, 16}, random);
    const Shared table = shared(before, "table");
    const Expr at = input(int32, {-1}, "at");
    Function step = function({at}, {}, {.updates = sgd(sum(sqr(gather(table, at))), {table}, 0.125)});
    for (const std::int64_t bad : {300, -1, 1000000, -1000000}) {
        std::vector<std::int32_t> places(200, 5);
        places[77] = static_cast<std::int32_t>(bad);
        CHECK_THROWS_AS(step(Array(places)), IndexError);
        CHECK(difference(table.get_value(), before) == "");
    }
}

TEST_CASE("lookups have the bits of devices where each row looks at all indices") {
    if (std::string(tested_device()) != "cpu" || emulator_left_out()) return;
    const auto make = [] {
        Random random(8);
        const Shared table = shared(random_array(float32, {120, 9}, random), "table"),
                     line = shared(random_array(float32, {700}, random), "line");
        const Expr at = input(int32, {30, 20}, "at"), weights = input(float32, {30, 20, 9}, "weights");
        const Expr loss =
            sum(sqr(gather(table, at)) * weights) + sum(gather(line, at) * weights[{colon, colon, 0}]);
        LookupProgram p;
        p.inputs = {at, weights};
        p.outputs = {grad(loss, Expr(table)), grad(loss, Expr(line))};
        p.updates = sgd(loss, {table, line}, 0.1);
        for (int call = 0; call < 2; ++call)
            p.calls.push_back(
                {indices(int32, {30, 20}, 0, 119, random), random_array(float32, {30, 20, 9}, random)});
        return p;
    };
    const std::vector<Array> cpu = run(make(), "cpu"), emulated = run(make(), "emulator");
    for (std::size_t k = 0; k < cpu.size(); ++k) {
        INFO("value " << k);
        CHECK(difference(cpu[k], emulated[k]) == "");
    }
}

TEST_CASE("the gradient of a single lookup is what arrives at the row, -0 too") {
    Shared table = shared(ones({40000, 3}), "table");
    const Expr k = iscalar("k"), w = vector("w");
    const Expr loss = sum(table[reshape(k, {1})] * w);
    Function f = function({k, w}, {grad(loss, table)}, {.device = tested_device()});
    const Array gradient = f(Array(7), Array(std::vector<float>{-0.0F, 2, 0}));
    const auto values = gradient.view<float>();
    CHECK(values[21] == 0);
    const std::string device = tested_device();
    if (device == "cpu" || device == "emulator") CHECK(std::signbit(values[21]));
    CHECK(values[22] == 2);
    CHECK_FALSE(std::signbit(values[23]));
    CHECK(values[24] == 0);
    CHECK_FALSE(std::signbit(values[20]));
}

TEST_CASE("the first index that is no row is named, in rows of any length and by any number of threads") {
    const Expr table = input(float32, {50, 3}, "table"), places = input(int32, {-1, -1}, "places");
    Options two = options();
    two.threads = 2;
    const ScopedOptions scope(two);
    Function f = function({table, places}, sum(gather(table, places)), {.device = "cpu"});
    const Array rows(float32, {50, 3});
    for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {5, 1000}, {5, 2000}, {3, 5000}, {64, 33}, {33, 1000}, {6000, 1}, {1, 9000}, {1, 1}})
        for (int call = 0; call < 20; ++call) {
            std::vector<std::int32_t> numbers(static_cast<std::size_t>(height * width), 7);
            const std::size_t first = numbers.size() / 2;
            numbers[first] = 50;
            numbers.back() = 51;
            if (first + 1 < numbers.size()) numbers[first + 1] = -2;
            const bool alone = numbers.size() == 1;
            const Array wrong(numbers, {height, width});
            const std::string message = message_of<IndexError>([&] { f(rows, wrong); });
            INFO(height << " x " << width << ": " << message);
            CHECK(message.find(alone ? "51 at element 0" : "50 at element " + std::to_string(first)) !=
                  std::string::npos);
        }
}

TEST_CASE("rows whose indices the same task computes are looked up") {
    PackedCases cases(tested_device(), 1e-4);
    Random random(7);
    for (const DType dtype : {int16, int32, int64})
        for (const Dims& table : {Dims{320, 10}, Dims{70, 33}}) {
            const Dims count{2048};
            const Expr t = input(float32, table, "t"), i = input(dtype, count, "i");
            const std::vector<Array> values = {random_array(float32, table, random, -1, 1),
                                               indices(dtype, count, 0, table[0] / 2 - 2, random)};
            const std::string what = std::string(bitale::name_of(dtype)) + " " + text_of(table);
            cases.add(what + ", sum", {t, i}, values, sum(t[i + 1]));
            cases.add(what + ", columns", {t, i}, values, max(t[i * 2], {0}));
            cases.add(what + ", two", {t, i}, values, mean(t[i] * t[minimum(i, 3)]));
            cases.add(what + ", rows", {t, i}, values, logsumexp(t[cast(i, int64) + 1], {1}));
        }
    cases.run();
}

TEST_CASE("a part of a constant that begins at an unknown length is no constant") {
    const Expr x = matrix("x"), w = input(float32, {1, 5}, "w");
    Random random(3);
    const Array factor = random_array(float32, {7, 5}, random);
    Function f = function({x, w}, grad(sum(concatenate({x, sqr(w)}, 0) * constant(factor)), w),
                          {.device = tested_device(), .on_unused_input = OnUnused::ignore});
    const Array value = random_array(float32, {1, 5}, random);
    const Array got = f(random_array(float32, {6, 5}, random), value)[0];
    for (std::int64_t j = 0; j < 5; ++j)
        CHECK(got.at(j) == Approx(2 * value.at(j) * factor.at(30 + j)).epsilon(1e-5));
}

// What is computed from bounded integers is bounded: such places are in range, and are not checked.
TEST_CASE("places that are always in range are not checked, and others are") {
    const Expr bytes = input(uint8, Dims{40}, "bytes"), numbers = input(int32, Dims{40}, "numbers"),
               x = input(float32, Dims{300}, "x"), rows = input(float32, Dims{40, 5}, "rows");
    const Expr half = cast(rows[Index{colon, 0}] > 0, int32), place = cast(range(0, 40), int32) * 3;
    struct Case {
        const char* name;
        Expr at;
        bool is_checked;
    };
    const std::vector<Case> list{
        {"a byte", cast(bytes, int32), false},
        {"twice a byte", cast(bytes, int32) * 2, true},
        {"bits", bitwise_and(numbers, 255) + 44, false},
        {"bits beyond the end", bitwise_and(numbers, 255) + 45, true},
        {"clipped", clip(numbers, 3, 299), false},
        {"clipped beyond the end", clip(numbers, 3, 300), true},
        {"clipped below", clip(numbers, -1, 20), true},
        {"nodes of a tree", half * 2 + 1 + half + place * 2, false},
        {"chosen", where(numbers > 4, cast(bytes, int32), 299), false},
        {"chosen, and any", where(numbers > 4, numbers, 299), true},
        {"a remainder", mod(numbers, 300), false},
        {"a remainder by any", mod(place, numbers), true},
        {"a quotient", floordiv(cast(bytes, int32) + 600, 3), false},
        {"the best", cast(argmax(rows, {1}), int32) + 295, false},
        {"the best, behind the end", cast(argmax(rows, {1}), int32) + 296, true},
        {"a product that wraps", cast(cast(bytes, int8) * cast(bytes, int8), int32), true},
        {"the least", min(reshape(bitwise_and(numbers, 127), {20, 2}), {1}), false},
        {"negative", -half, true},
    };
    Random random(12);
    const std::vector<Array> values{
        random_array(uint8, {40}, random, 0, 149), random_array(int32, {40}, random, 0, 299),
        random_array(float32, {300}, random), random_array(float32, {40, 5}, random)};
    for (const Case& one : list) {
        INFO(one.name);
        const FunctionOptions here{.device = tested_device(), .on_unused_input = OnUnused::ignore},
            there{.device = "reference", .on_unused_input = OnUnused::ignore};
        const Expr result = gather(x, one.at);
        Function f = function({bytes, numbers, x, rows}, result, here),
                 g = function({bytes, numbers, x, rows}, result, there);
        const auto call = [&](Function& of) {
            try {
                return of.call(values)[0];
            } catch (const IndexError&) {
                return Array();
            }
        };
        const Array got = call(f), expected = call(g);
        CHECK(got.shape() == expected.shape());
        if (got.shape() == expected.shape()) CHECK(difference(got, expected) == "");
        if (tested_device() != std::string("reference"))
            CHECK((f.report(Detail::complete).find("is out of range") != std::string::npos) ==
                  one.is_checked);
    }
}
