// Concatenations by themselves, whose parts are tasks of their own: along any axis, of parts of any length,
// of what is computed, and with something computed of them.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("concatenations along any axis, of parts of any length") {
    for (const int axis : {0, 1, 2}) {
        std::vector<Expr> inputs, parts;
        std::vector<std::vector<Array>> calls(3);
        Random random(static_cast<std::uint64_t>(axis));
        for (int k = 0; k < 7; ++k) {
            Dims shape{5, 4, 9}, given = shape;
            const bool known = k % 3 == 0;
            shape[static_cast<std::size_t>(axis)] = known ? 2 * k : -1;
            inputs.push_back(input(float32, shape, "x" + std::to_string(k)));
            parts.push_back(k % 2 ? exp(inputs.back()) : inputs.back());
            for (std::size_t call = 0; call < calls.size(); ++call) {
                given[static_cast<std::size_t>(axis)] =
                    known ? 2 * k : static_cast<std::int64_t>(call == 1 ? 0 : random.between(0, 400));
                calls[call].push_back(random_array(float32, given, random, -1, 1));
            }
        }
        const Expr all = concatenate(parts, axis);
        OnTwoDevices both(inputs,
                          {{"moved", all, {.absolute = 1e-6, .relative = 1e-6}},
                           {"computed", tanh(all) * 2 + all, {.absolute = 1e-6, .relative = 1e-5}},
                           {"turned", transpose(all, {2, 0, 1}), {.absolute = 1e-6, .relative = 1e-6}},
                           {"summed", sum(all, {2}), {.absolute = 1e-4, .relative = 1e-5}},
                           {"flipped", flip(all, axis), {.absolute = 1e-6, .relative = 1e-6}}});
        for (const std::vector<Array>& call : calls) {
            INFO("axis " << axis);
            CHECK(both(call) == "");
        }
    }
}

TEST_CASE("concatenations in concatenations, of bytes, and of rows that are looked up") {
    Random random(9);
    const Expr a = input(uint8, {-1, 30}, "a"), b = input(uint8, {17, 30}, "b"),
               at = input(int32, {-1}, "at");
    const Expr inner = concatenate({a, b}, 0), outer = concatenate({inner, gather(b, at), a}, 0);
    OnTwoDevices both({a, b, at}, {{"bytes", outer}, {"wide", cast(outer, float32) / 3, {.relative = 1e-6}}});
    for (const std::int64_t n : {0, 1, 100}) {
        std::vector<std::int32_t> places(static_cast<std::size_t>(n));
        for (std::int32_t& p : places) p = static_cast<std::int32_t>(random.between(0, 16));
        CHECK(both({random_array(uint8, {n, 30}, random, 0, 255),
                    random_array(uint8, {17, 30}, random, 0, 255), Array(places)}) == "");
    }
}

TEST_CASE("a chain of concatenations, as a loop makes it, is one of all parts") {
    constexpr int count = 30;
    std::vector<Expr> inputs, parts;
    std::vector<Array> values;
    Random random(11);
    for (int k = 0; k < count; ++k) {
        inputs.push_back(input(float32, {-1, 3}, "x" + std::to_string(k)));
        parts.push_back(k % 7 == 3 ? inputs.back() * 2 : inputs.back());
        values.push_back(random_array(float32, {k % 4, 3}, random, -1, 1));
    }
    Expr behind = parts[0], before = parts[count - 1];
    for (int k = 1; k < count; ++k) behind = concatenate({behind, parts[static_cast<std::size_t>(k)]});
    for (int k = count - 1; k-- > 0;) before = concatenate({parts[static_cast<std::size_t>(k)], before});
    const Expr flat = concatenate(parts), gradient = grad(sum(sqr(behind) * flat), inputs[5]);
    OnTwoDevices both(inputs, {{"behind", behind},
                               {"before", before},
                               {"difference", behind - flat},
                               {"gradient", gradient, {.absolute = 1e-6, .relative = 1e-5}}});
    CHECK(both(values) == "");
    const std::vector<Input> given(inputs.begin(), inputs.end());
    const Function f = function(given, behind), g = function(given, flat);
    CHECK(f.kernels().size() == g.kernels().size());
}

TEST_CASE("a concatenation that is a new value, of what it replaces") {
    const auto values = [](const std::string& device) {
        Random random(10);
        Shared s = shared(random_array(float32, {40, 8}, random), "s");
        Shared t = shared(random_array(float32, {40, 8}, random), "t");
        const Expr x(s), shifted = concatenate({x[{Slice{20, 40}, colon}], x[{Slice{0, 20}, colon}] * 2}, 0);
        const Expr y(t), own = concatenate({y[{Slice{0, 20}, colon}] * 2, y[{Slice{20, 40}, colon}]}, 0);
        Function f = function({}, {shifted, own}, {.updates = {{s, shifted}, {t, own}}, .device = device});
        f();
        f();
        return std::vector<Array>{s.get_value(), t.get_value()};
    };
    const std::vector<Array> got = values(tested_device()), expected = values("reference");
    for (const std::size_t k : {0, 1}) CHECK(difference(got[k], expected[k]) == "");
}

TEST_CASE(
    "columns side by side: stored, computed with, summed along each axis, and a new value of what they "
    "read") {
    for (const int columns : {8, 12, 33}) {
        std::vector<Expr> inputs, parts, wide;
        Random random(static_cast<std::uint64_t>(columns));
        std::vector<std::vector<Array>> calls(4);
        const std::vector<std::int64_t> rows{37, 0, 1, 700};
        for (int k = 0; k < columns; ++k) {
            inputs.push_back(vector("x" + std::to_string(k)));
            parts.push_back(expand_dims(k % 2 ? exp(inputs.back()) : inputs.back(), 1));
            wide.push_back(k % 3 ? parts.back() : concatenate({parts.back(), parts.back() + 1}, 1));
            for (std::size_t c = 0; c < calls.size(); ++c)
                calls[c].push_back(random_array(float32, {rows[c]}, random, -1, 1));
        }
        const Expr z = input(float32, {-1, columns}, "z");
        inputs.push_back(z);
        for (std::size_t c = 0; c < calls.size(); ++c)
            calls[c].push_back(random_array(float32, {rows[c], columns}, random, -1, 1));
        const Expr all = concatenate(parts, 1), uneven = concatenate(wide, 1);
        OnTwoDevices both(inputs, {{"stored", all, {.absolute = 1e-6, .relative = 1e-6}},
                                   {"uneven", uneven * 2 + 1, {.absolute = 1e-6, .relative = 1e-5}},
                                   {"times", all * z, {.absolute = 1e-6, .relative = 1e-5}},
                                   {"all", sum(all * z), {.absolute = 1e-3, .relative = 1e-4}},
                                   {"rows", sum(all * 2, {1}), {.absolute = 1e-4, .relative = 1e-5}},
                                   {"columns", sum(uneven, {0}), {.absolute = 1e-3, .relative = 1e-4}},
                                   {"turned", transpose(all) - 1, {.absolute = 1e-6, .relative = 1e-5}},
                                   {"best", max(uneven, {1}), {.absolute = 1e-6, .relative = 1e-5}},
                                   {"softmax", softmax(all), {.absolute = 1e-6, .relative = 1e-5}}});
        for (const std::vector<Array>& call : calls) CHECK(both(call) == "");
    }
    const auto shifted = [](const std::string& device) {
        Random random(4);
        Shared s = shared(random_array(float32, {50, 12}, random), "s");
        std::vector<Expr> columns;
        for (int k = 0; k < 12; ++k) {
            const int from = (k + 5) % 12;
            columns.push_back(Expr(s)[{colon, Slice{from, from + 1}}] * (k + 1));
        }
        Function f = function({}, {}, {.updates = {{s, concatenate(columns, 1)}}, .device = device});
        f();
        f();
        return s.get_value();
    };
    CHECK(difference(shifted(tested_device()), shifted("reference")) == "");
}

TEST_CASE("gradients of columns that are taken out one by one") {
    // All of them, some, some twice, in any order.
    const std::vector<std::vector<int>> taken = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                                                 {9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
                                                 {3, 4, 5},
                                                 {0, 2, 4, 6, 8},
                                                 {7, 1, 2, 2, 6, 5}};
    for (const bool rows : {false, true}) {
        const Expr x = rows ? input(float32, {10, -1}, "x") : input(float32, {-1, 10}, "x");
        std::vector<Case> cases;
        for (const std::vector<int>& order : taken) {
            Expr total = sum(x * 0.25);
            for (std::size_t i = 0; i < order.size(); ++i) {
                const int k = order[i];
                const Expr part = rows ? x[k] : x[{colon, k}];
                const double factor = static_cast<double>(i) + 0.5;
                total =
                    total + (i % 2 ? sum(tanh(part) * factor) : sum(where(part > 0, log(part), 0) * factor));
            }
            cases.push_back({"order " + std::to_string(cases.size()),
                             grad(total, x),
                             {.absolute = 1e-5, .relative = 1e-5}});
        }
        OnTwoDevices both({x}, cases);
        Random random(2);
        for (const std::int64_t n : {23, 1, 0})
            CHECK(both({random_array(float32, rows ? Dims{10, n} : Dims{n, 10}, random, -1, 1)}) == "");
    }
}

TEST_CASE("neighbourhoods that wrap around, generation after generation, with a sum of each") {
    for (const bool known : {true, false}) {
        const Expr start = known ? input(uint8, {12, 9}, "x") : matrix("x", uint8);
        Expr g = start;
        std::vector<Expr> results;
        const auto rolled = [](const Expr& a, int axis) {
            const auto part = [&](const Slice& s) { return axis == 0 ? a[s] : a[{colon, s}]; };
            return concatenate({part(Slice{.start = Expr(-1)}), a, part(Slice{0, 1})}, axis);
        };
        for (int t = 0; t < 7; ++t) {
            const Expr f = expand_dims(expand_dims(rolled(rolled(cast(g, float32), 0), 1), 0), 1);
            const Array ring(std::vector<float>{1, 1, 1, 1, 0, 1, 1, 1, 1}, {1, 1, 3, 3});
            const Expr c = squeeze(squeeze(conv2d(f, ring, {.filter_flip = false}), 1), 0);
            g = cast(logical_or(eq(c, 3), logical_and(eq(c, 2), eq(g, 1))), uint8);
            results.push_back(sum(g));
        }
        results.push_back(g);
        std::vector<std::uint8_t> cells(12 * 9);
        for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = i * i % 7 < 3;
        const Array world(cells, {12, 9});
        const Results expected = function({start}, results, {.device = "reference"})(world),
                      got = function({start}, results, {.device = tested_device()})(world);
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) == "");
    }
}

TEST_CASE("concatenations of parts that have borders of their own") {
    const std::int64_t rows = 9, columns = 21;
    for (const bool known : {true, false}) {
        const Expr x = known ? input(uint8, {2, rows, columns}, "x") : input(uint8, {-1, rows, columns}, "x"),
                   f = cast(x, float32), q = pad(f, {{0, 0}, {1, 1}, {1, 1}});
        std::vector<Expr> results;
        for (const int axis : {0, 1, 2}) {
            std::vector<Expr> parts, padded;
            for (int k = 0; k < 9; ++k)
                parts.push_back(q[{colon, Slice{k / 3, k / 3 + rows}, Slice{k % 3, k % 3 + columns}}] *
                                (k + 1));
            padded = {q, q[{colon, Slice{1, rows + 1}, Slice{1, columns + 1}}],
                      pad(f, {{0, 0}, {2, 0}, {0, 2}})};
            const Expr all = concatenate(parts, axis);
            results.insert(results.end(), {all, exp(all / -500), sum(all, axis)});
            if (axis == 0) continue;
            // Lengths along the other axis are those of the first part.
            for (Expr& p : padded)
                p = axis == 1 ? p[{colon, colon, Slice{0, columns}}] : p[{colon, Slice{0, rows}}];
            results.push_back(concatenate(padded, axis) + 1);
        }
        Random random(17);
        const Array image = random_array(uint8, {2, rows, columns}, random, 0, 255);
        const Results expected = function({x}, results, {.device = "reference"})(image),
                      got = function({x}, results, {.device = tested_device()})(image);
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO("result " << i << (known ? ", known" : ", unknown"));
            CHECK(difference(got[i], expected[i], {.of_largest = 1e-6}) == "");
        }
    }
}

// A lattice of nine directions: each plane moves its own way, and reads the sum of all.
TEST_CASE("stacks of parts that share values and read rolled planes") {
    const int down[9]{0, 1, 0, -1, 0, 1, -1, -1, 1}, right[9]{0, 0, 1, 0, -1, 1, 1, -1, -1},
        opposite[9]{0, 3, 4, 1, 2, 7, 8, 5, 6};
    Random random(8);
    for (const bool known : {true, false})
        for (const bool rolled : {true, false}) {
            const Expr f = known ? input(float32, Dims{9, 13, 37}, "f") : input(float32, {9, -1, -1}, "f"),
                       wall = known ? input(boolean, Dims{13, 37}, "wall") : input(boolean, 2, "wall");
            std::vector<Expr> moved, parts;
            for (int k = 0; k < 9; ++k)
                moved.push_back(rolled ? roll(roll(f[k], down[k], 0), right[k], 1) : f[k]);
            Expr all = moved[0];
            for (int k = 1; k < 9; ++k) all = all + moved[static_cast<std::size_t>(k)];
            for (std::size_t k = 0; k < 9; ++k)
                parts.push_back(where(wall, moved[static_cast<std::size_t>(opposite[k])],
                                      0.3F * moved[k] + 0.1F * static_cast<float>(k) * all * (1 + sqr(all))));
            const Tolerance near{.absolute = 1e-6, .relative = 1e-5};
            OnTwoDevices both({f, wall}, {{"first", stack(parts, 0), near},
                                          {"last", stack(parts, 2), near},
                                          {"middle", stack(parts, 1), near},
                                          {"next", stack(parts, 0) * 2 + f, near}});
            INFO((known ? "known" : "unknown") << (rolled ? ", rolled" : ""));
            CHECK(both({random_array(float32, {9, 13, 37}, random, 0, 1),
                        random_array(boolean, {13, 37}, random)}) == "");
        }
    // No plane computes the others.
    const Expr f = input(float32, Dims{9, 129, 193}, "f");
    std::vector<Expr> moved, parts;
    for (int k = 0; k < 9; ++k) moved.push_back(roll(roll(f[k], down[k], 0), right[k], 1));
    for (std::size_t k = 0; k < 9; ++k)
        parts.push_back(where(moved[0] > 0.5F, moved[k], 0.3F * moved[8 - k]));
    const std::string report = function({f}, {stack(parts)}, {.device = "cpu"}).report(Detail::complete);
    INFO(report);
    CHECK(report.find("64 of 193 of the second") == std::string::npos);
}

TEST_CASE("few parts one after another, each with many rows") {
    Random random(19);
    // Tasks have rows of the second or the last axis.
    for (const Dims& shape : {Dims{1, 70, 33}, Dims{2, 40, 21}, Dims{3, 1, 3000}, Dims{1, 5, 4}}) {
        const Expr a = input(float32, shape, "a"), b = input(float32, shape, "b");
        const Expr both = concatenate({sqr(a) - b / 3, a * b + 1}, 0);
        const Expr planes = expand_dims(both, 1);
        const Expr filters =
            expand_dims(expand_dims(constant(Array{{1.F, 2.F, 1.F}, {2.F, 0.F, 2.F}}), 0), 0);
        OnTwoDevices devices({a, b},
                             {{"parts", both, {.absolute = 1e-6, .relative = 1e-6}},
                              {"turned", transpose(both, {0, 2, 1}), {.absolute = 1e-6, .relative = 1e-6}},
                              {"filtered",
                               conv2d(planes, filters, {.border_mode = half}),
                               {.absolute = 1e-5, .relative = 1e-5}}});
        INFO(text_of(shape));
        CHECK(devices({random_array(float32, shape, random, -1, 1),
                       random_array(float32, shape, random, -1, 1)}) == "");
    }
}
