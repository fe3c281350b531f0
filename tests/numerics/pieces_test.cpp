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
