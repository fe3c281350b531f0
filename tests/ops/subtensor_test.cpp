// set_subtensor and inc_subtensor: dtypes, shapes, gradients and what they refuse.
#include <cstdint>
#include <vector>

#include "ops/shape/slice.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("a part takes the dtype of the whole and broadcasts") {
    const Expr x = matrix("x"), bytes = matrix("bytes", uint8);
    CHECK(set_subtensor(x, 0, 1).dtype() == float32);
    CHECK(set_subtensor(bytes, {colon, 1}, 255).dtype() == uint8);
    CHECK(inc_subtensor(x, Slice{1, 3}, vector("v")).rank() == 2);
    const Array a = sample(float32, {3, 4});
    const Array r = evaluated(set_subtensor(x, {Slice{0, 2}, Slice{1, 3}}, bytes[{Slice{0, 2}, Slice{0, 1}}]),
                              {x, bytes}, {a, sample(uint8, {3, 4})});
    const Array b = sample(uint8, {3, 4});
    for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 4; ++j) {
            const bool is_set = i < 2 && j >= 1 && j < 3;
            REQUIRE(r.at(i * 4 + j) == (is_set ? b.at(i * 4) : a.at(i * 4 + j)));
        }
    CHECK(numbers(evaluated(set_subtensor(x, colon, 5), {x}, {a})) == std::vector<double>(12, 5));
}

TEST_CASE("parts that do not fit are refused, with the operands by name") {
    const Expr x = input(float32, Dims{3, 4}, "x"), bytes = matrix("bytes", uint8);
    CHECK_THAT(message_of<TypeError>([&] { set_subtensor(bytes, 0, vector("v")); }),
               ContainsSubstring("set_subtensor") && ContainsSubstring("does not go into \"bytes\"") &&
                   ContainsSubstring("cast("));
    CHECK_THROWS_AS(set_subtensor(bytes, 0, 256), TypeError);
    CHECK_THROWS_AS(inc_subtensor(bytes, 0, 0.5F), TypeError);
    CHECK_THAT(message_of<ShapeError>([&] { set_subtensor(x, 0, matrix("m")); }),
               ContainsSubstring("\"m\"") && ContainsSubstring("more axes than the part [4] of \"x\""));
    CHECK_THAT(message_of<ShapeError>([&] { set_subtensor(x, 0, input(float32, Dims{3}, "v")); }),
               ContainsSubstring("\"v\"") && ContainsSubstring("[4]"));
    CHECK_THROWS_AS(set_subtensor(x, 3, 0), IndexError);
    CHECK_THROWS_AS(set_subtensor(x, {0, 0, 0}, 0), IndexError);
    CHECK_THROWS_AS(set_subtensor(Expr(), 0, 0), GraphError);
    CHECK_THROWS_AS(set_subtensor(x, 0, Expr()), GraphError);
}

TEST_CASE("the nests that set parts are what the oracle computes, for every dtype") {
    for (const DType dtype : {boolean, int8, uint16, int32, int64, float16, float32, float64}) {
        const Array x = sample(dtype, {5, 4}), part = sample(dtype, {2, 4}, 2);
        const Expr e = input(dtype, Dims{5, 4}, "x"), y = input(dtype, Dims{2, 4}, "y");
        require_nest_matches(set_subtensor(e, Slice{1, 5, 3}, y).node(), {x, part});
        require_nest_matches(set_subtensor(e, Slice{{}, 2, -1}, y).node(), {x, part});
        require_nest_matches(
            make_node(set_rows_op(), {e.node(), y.node(), lscalar("s").node()}, {{"clipped", false}}),
            {x, part, Array(std::int64_t{3})});
    }
}

TEST_CASE("gradients of parts that are set and added to") {
    const std::vector<Array> x = {sample(float64, {4, 3}), sample(float64, {2, 3}, 2)};
    const auto list = [](std::vector<std::int32_t> rows) { return Expr(Array(std::move(rows))); };
    for (const bool symbolic : {false, true}) {
        require_gradient([](const auto& v) { return set_subtensor(v[0], Slice{1, 3}, v[1]); }, x, symbolic);
        require_gradient(
            [](const auto& v) {
                return set_subtensor(v[0], Slice{{}, {}, 2}, v[1]);
            },
            x, symbolic);
        require_gradient(
            [](const auto& v) {
                return inc_subtensor(v[0], {2, Slice{0, 2}}, v[1][0][Slice{1, 3}]);
            },
            x, symbolic);
        require_gradient(
            [](const auto& v) {
                return set_subtensor(v[0], {colon, 1}, v[1][{0, 0}]);
            },
            x, symbolic);
        require_gradient([&](const auto& v) { return set_subtensor(v[0], list({3, 0}), v[1]); }, x, symbolic);
        require_gradient([&](const auto& v) { return set_subtensor(v[0], list({2, 2}), v[1]); }, x, symbolic);
        require_gradient([&](const auto& v) { return inc_subtensor(v[0], list({2, 2}), v[1]); }, x, symbolic);
    }
}
