// Generated code of sort, argsort and topk against the oracle: axes, lengths, dtypes, ties, special values.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Results of every kind, in turn.
Expr ordered(const Expr& x, int axis, std::int64_t length, std::size_t turn) {
    const bool other = turn / 4 % 2 == 1;
    switch (turn % 4) {
        case 0: return sort(x, axis, {.descending = other});
        case 1: return argsort(x, axis, {.descending = other});
        case 2: return topk(x, (length + 1) / 2, axis, {.smallest = other}).values;
        default: return topk(x, length / 5, axis, {.smallest = other}).positions;
    }
}

}  // namespace

TEST_CASE("orders along every axis, of lengths that are known and unknown") {
    PackedCases cases(tested_device());
    Random random(1);
    std::size_t turn = 0;
    for (const Dims& shape : {Dims{2, 3, 40, 5}, Dims{1, 33, 2, 1}, Dims{9, 1, 7, 70}, Dims{3, 0, 2, 4},
                              Dims{17, 2, 1, 16}, Dims{1, 1, 1, 300}})
        for (int axis = 0; axis < 4; ++axis)
            for (const bool known : {true, false})
                for (const bool ties : {true, false}) {
                    const Expr x = known ? input(float32, shape, "x") : tensor4("x");
                    const Array v = random_array(float32, shape, random, -4, 4);
                    const std::int64_t length = shape[static_cast<std::size_t>(axis)];
                    cases.add(fmt::format("{} along {}, {}", text_of(shape), axis, turn), {x},
                              {ties ? v.as(int32).as(float32) : v}, ordered(x, axis, length, turn));
                    turn += 3;
                }
    cases.run(24);
}

TEST_CASE("orders of all dtypes, of awkward lengths and values") {
    PackedCases cases(tested_device());
    Random random(2);
    std::size_t turn = 0;
    for (const DType dtype : all_dtypes)
        for (const std::int64_t n : {0, 1, 2, 31, 33, 65, 500}) {
            const Expr x = input(dtype, 2, "x");
            const Array v = is_float(dtype) && n > 2 ? special_array(dtype, {5, n}, random, turn % 2)
                                                     : random_array(dtype, {5, n}, random, 0, 9);
            for (int k = 0; k < 3; ++k)
                cases.add(fmt::format("{} {} {}", name_of(dtype), n, turn), {x}, {v},
                          ordered(x, 1, n, turn++));
            turn += 2;
        }
    cases.run(32);
}

TEST_CASE("orders of vectors and of flat tensors") {
    PackedCases cases(tested_device());
    Random random(3);
    for (const std::int64_t n : {0, 1, 2, 100, 3000})
        for (const bool known : {true, false}) {
            const Expr x = known ? input(float32, Dims{n}, "x") : vector("x");
            const Array v = random_array(float32, {n}, random, -50, 50);
            cases.add("sort", {x}, {v}, sort(x));
            cases.add("argsort of a map", {x}, {v}, argsort(floor(x * 0.5)));
            cases.add("topk", {x}, {v}, topk(x, n / 10, 0).values);
            const Expr m = reshape(x, {1, -1});
            if (n > 0) cases.add("flat", {x}, {v}, sort(m, std::nullopt, {.descending = true}));
        }
    cases.run();
}

TEST_CASE("orders of what is computed, and what reads them") {
    PackedCases cases(tested_device());
    Random random(4);
    const Expr x = matrix("x"), i = ivector("i");
    const Array v = random_array(float32, {30, 18}, random), at = random_array(int32, {25}, random, 0, 29);
    const std::vector<Expr> inputs{x, i};
    const std::vector<Array> values{v, at};
    for (const int axis : {0, 1}) {
        cases.add("transposed", inputs, values, sort(transpose(x), axis));
        cases.add("gathered", inputs, values, argsort(gather(x, i), axis));
        cases.add("from the end", inputs, values, argsort(flip(x, axis), axis));
        cases.add("median", inputs, values, mean(sort(x, axis), {axis}));
        cases.add("ranks", inputs, values, argsort(argsort(x, axis), axis));
        cases.add("of an exponential", inputs, values, sort(exp(x), axis) / (1 + sort(abs(x), axis)));
        cases.add("sorted sums", inputs, values, sort(sum(x, {axis})));
        cases.add("cumulated", inputs, values,
                  cumsum(sort(softmax(x, axis), axis, {.descending = true}), axis));
        cases.add("rows of the best", inputs, values, gather(x, topk(x[{colon, 0}], 4, 0).positions));
    }
    cases.run();
}

TEST_CASE("orders across the rows of large matrices") {
    PackedCases cases(tested_device());
    Random random(9);
    std::size_t turn = 0;
    for (const DType dtype : {float32, float64, int8, uint16, int64, float16, boolean})
        for (const Dims& shape : {Dims{70, 300}, Dims{5, 64, 80}, Dims{17, 1030}})
            for (const bool known : {true, false}) {
                const int rank = static_cast<int>(shape.size()), axis = rank - 2;
                const Expr x = known ? input(dtype, shape, "x") : input(dtype, rank, "x");
                const Array v = random_array(dtype, shape, random, dtype == boolean ? 0 : -20, 20);
                const std::int64_t length = shape[static_cast<std::size_t>(axis)];
                cases.add(fmt::format("{} {} {}", name_of(dtype), text_of(shape), turn), {x}, {v},
                          ordered(x, axis, length, turn));
                const Expr y = cast(x, float32) * 0.5;
                cases.add(fmt::format("a map, {} {}", text_of(shape), turn), {x}, {v},
                          ordered(exp(y) - y, axis, length, turn + 1));
                if (rank == 2)
                    cases.add(fmt::format("of a transpose, {}", turn), {x}, {v},
                              ordered(transpose(x), 1, length, turn + 2));
                turn += 3;
            }
    cases.run(16);
}

TEST_CASE("slices of orders") {
    for (const bool known : {true, false}) {
        const Expr x = known ? input(float32, {5, 90}, "x") : matrix("x");
        std::vector<Case> cases;
        for (const bool descending : {false, true}) {
            const Expr places = argsort(x, -1, {.descending = descending}),
                       sorted = sort(x, -1, {.descending = descending});
            for (const Slice& part :
                 {Slice{0, 6}, Slice{2, 9}, Slice{0, 11, 3}, Slice{0, 40}, Slice{.start = -6}}) {
                const std::string name = std::to_string(cases.size());
                cases.push_back({"places " + name, places[{colon, part}]});
                cases.push_back({"elements " + name, sorted[{colon, part}]});
                cases.push_back({"gradient " + name, grad(sum(sqr(sorted[{Slice{1, 4}, part}])), x)});
            }
            cases.push_back({"one", sorted[{colon, 3}] + sorted[{colon, -1}]});
        }
        OnTwoDevices both({x}, cases);
        Random random(5);
        Array with_equal = random_array(float32, {5, 90}, random, -3, 3);
        for (std::int64_t i = 0; i < with_equal.size(); i += 4)
            static_cast<float*>(with_equal.mutable_data())[i] = static_cast<float>(i % 3);
        CHECK(both({with_equal}) == "");
        if (!known) CHECK(both({random_array(float32, {5, 4}, random, -3, 3)}) == "");
    }
}

TEST_CASE("slices of orders that take all of a row, which is empty or short") {
    const Expr none = input(float32, {4, 0}, "none"), rows = input(float32, {-1, 3}, "rows");
    const Expr few = argsort(transpose(rows[Slice{{}, 20}]))[Slice{1, 3}];
    Function f = function({none, rows}, {argsort(none)[0], sort(none)[{colon, Slice{{}, {}, 2}}], few},
                          {.device = tested_device()});
    const Results got =
        f(Array(std::vector<float>{}, {4, 0}), Array(std::vector<float>{3, 1, 2, 1, 1, 0}, {2, 3}));
    CHECK(got[0].shape() == Dims{0});
    CHECK(got[1].shape() == Dims{4, 0});
    CHECK(got[2].to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 1, 0});
}

TEST_CASE("gradients of orders") {
    PackedCases cases(tested_device());
    Random random(5);
    const Array v = random_array(float32, {13, 22}, random, -1.5, 1.5);
    for (const bool known : {true, false})
        for (const int axis : {0, 1}) {
            const Expr x = known ? input(float32, Dims{13, 22}, "x") : matrix("x");
            const Expr weights = cast(range(0, 22), float32);
            cases.add("sort", {x}, {v}, grad(sum(sqr(sort(x, axis)) * weights), x));
            const Expr best = topk(x, 5, axis).values;
            cases.add("topk", {x}, {v}, grad(sum(tanh(best)), x));
            cases.add("topk, second", {x}, {v}, grad(sum(sqr(grad(sum(exp(best)), x))), x));
            cases.add("sort, second", {x}, {v}, grad(sum(sqr(grad(sum(exp(sort(x, axis))), x))), x));
        }
    cases.run();
}

TEST_CASE("a row that is too short for topk is an error of the call") {
    const Expr x = matrix("x");
    Function f = function({x}, topk(x, 3).values, {.device = tested_device()});
    CHECK(f(Array(float32, {2, 3}))[0].shape() == Dims{2, 3});
    CHECK_THROWS_AS(f(Array(float32, {2, 2})), ShapeError);
}

TEST_CASE("long rows are in order, and a matrix of many") {
    Random random(6);
    for (const bool known : {true, false})
        for (const Dims& shape : {Dims{2, 30000}, Dims{300, 700}, Dims{9000, 7}}) {
            const Expr x = known ? input(float32, shape, "x") : matrix("x");
            OnTwoDevices both({x},
                              {{"sort", sort(x)},
                               {"argsort", argsort(x, 1, {.descending = true})},
                               {"columns", sort(x, 0)},
                               {"ten", topk(x, std::min<std::int64_t>(10, shape[1])).values},
                               {"their positions", topk(x, std::min<std::int64_t>(10, shape[1])).positions}});
            CHECK(both({random_array(float32, shape, random, -1, 1)}) == "");
        }
}

TEST_CASE("gradients of topk take work that is linear in the row") {
    PackedCases cases(tested_device());
    Random random(11);
    for (const DType dtype : {float32, float64, float16})
        for (const bool known : {true, false})
            for (const Dims& shape : {Dims{300}, Dims{1, 70}, Dims{40, 9}, Dims{3, 1, 130}, Dims{2, 0}})
                for (const int axis : {0, -1}) {
                    const auto rank = static_cast<int>(shape.size());
                    const Expr x = known ? input(dtype, shape, "x") : input(dtype, rank, "x");
                    const std::int64_t length = axis == 0 ? shape.front() : shape.back();
                    const Expr picked = topk(x, (length + 1) / 2, axis, {.smallest = known}).values;
                    cases.add(fmt::format("{} {} along {}, {}", name_of(dtype), text_of(shape), axis,
                                          known ? "known" : "unknown"),
                              {x}, {random_array(dtype, shape, random)},
                              grad(sum(cast(picked, float32) * cast(picked, float32)), {x})[0]);
                }
    cases.run(20);
    // The report counts what runs.
    const Expr x = input(float32, Dims{4, 4000}, "x");
    const Function f = function({x}, grad(sum(sqr(topk(x, 2000).values)), {x})[0], {.device = "cpu"});
    CHECK(f.report(Detail::complete).find("Mflop") == std::string::npos);
}

TEST_CASE("sums at places that a list tells, as people write them") {
    PackedCases cases(tested_device());
    Random random(12);
    for (const DType dtype : {float32, float64, int32})
        for (const bool known : {true, false})
            for (const auto& [rows, points, places] :
                 {std::array<std::int64_t, 3>{3, 50, 20}, {1, 7, 300}, {20, 1, 5}, {2, 400, 1}, {5, 0, 9}}) {
                // Places come several times, not at all, and outside of the row.
                const Expr at = known ? input(int64, Dims{rows, points}, "at") : input(int64, 2, "at"),
                           x = known ? input(dtype, Dims{rows, points}, "x") : input(dtype, 2, "x");
                const Expr own = expand_dims(expand_dims(range(0, places), 0), 0);
                const Expr sums = sum(where(eq(expand_dims(at, 2), own), expand_dims(x, 2) * 2, 0), {1});
                cases.add(fmt::format("{} of {} rows of {} to {}, {}", name_of(dtype), rows, points, places,
                                      known ? "known" : "unknown"),
                          {at, x},
                          {random_array(int64, {rows, points}, random, -3, static_cast<double>(places) + 3),
                           random_array(dtype, {rows, points}, random)},
                          sums);
            }
    cases.run(10);
}
