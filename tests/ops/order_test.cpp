// sort, argsort and topk: results by hand, index maps against the oracle, gradients, messages.
#include <cmath>
#include <limits>

#include "ops/shape/sort.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

using Numbers = std::vector<double>;

}  // namespace

TEST_CASE("values of sort, argsort and topk") {
    const Expr x = matrix("x");
    const Array v = Array(std::vector<float>{3, 1, 2, 2, 5, 5}, {2, 3});
    CHECK(numbers(sort(x), x, v) == Numbers{1, 2, 3, 2, 5, 5});
    CHECK(numbers(sort(x, 0), x, v) == Numbers{2, 1, 2, 3, 5, 5});
    CHECK(numbers(sort(x, std::nullopt), x, v) == Numbers{1, 2, 2, 3, 5, 5});
    CHECK(numbers(sort(x, 1, {.descending = true}), x, v) == Numbers{3, 2, 1, 5, 5, 2});
    CHECK(numbers(argsort(x), x, v) == Numbers{1, 2, 0, 0, 1, 2});
    CHECK(numbers(argsort(x, -2), x, v) == Numbers{1, 0, 0, 0, 1, 1});
    CHECK(numbers(argsort(x, 1, {.descending = true}), x, v) == Numbers{0, 2, 1, 1, 2, 0});
    const TopK two = topk(x, 2), least = topk(x, 1, 0, {.smallest = true});
    CHECK(numbers(two.values, x, v) == Numbers{3, 2, 5, 5});
    CHECK(numbers(two.positions, x, v) == Numbers{0, 2, 1, 2});
    CHECK(numbers(least.values, x, v) == Numbers{2, 1, 2});
    CHECK(numbers(least.positions, x, v) == Numbers{1, 0, 0});
    CHECK(two.positions.dtype() == int64);
    CHECK(two.values.shape_text() == "[x.0, 2]");
    CHECK(numbers(topk(x, 0).values, x, v).empty());
}

TEST_CASE("NaN comes last in ascending order and first in descending order, zeros are equal") {
    const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
    const Expr x = vector("x");
    const Array v = std::vector<float>{nan, 0.0F, inf, -0.0F, -inf, nan};
    CHECK(numbers(argsort(x), x, v) == Numbers{4, 1, 3, 2, 0, 5});
    CHECK(numbers(argsort(x, 0, {.descending = true}), x, v) == Numbers{0, 5, 2, 1, 3, 4});
    CHECK(numbers(topk(x, 3).positions, x, v) == Numbers{0, 5, 2});
    const Numbers sorted = evaluated_typed(sort(x), {x}, {v}).to_vector<double>();
    CHECK(!std::signbit(sorted[1]));
    CHECK(std::signbit(sorted[2]));
    CHECK(std::isnan(sorted[5]));
}

TEST_CASE("index maps of orders, of all dtypes and lengths") {
    for (const DType dtype : all_dtypes)
        for (const bool descending : {false, true})
            for (const Dims& shape : {Dims{2, 9}, Dims{3, 1}, Dims{2, 0}, Dims{0, 4}, Dims{2, 2, 5}}) {
                const NodePtr x = input(dtype, static_cast<int>(shape.size()), "x").node();
                const Int all = x->type.shape.back();
                const Array v = sample(dtype, shape);
                const Array order = require_nest_matches(make_argsort(x, all, descending, int64, {}), {v});
                const NodePtr positions = input(int64, static_cast<int>(shape.size()), "p").node();
                require_nest_matches(make_node(take_along_op(), {x, positions}, {{"permutation", true}}),
                                     {v, order});
                if (dtype != boolean)
                    require_nest_matches(make_node(put_along_op(), {x, positions}, {{"extent", Int(9)}}),
                                         {v, order});
                if (shape.back() < 2) continue;
                require_nest_matches(make_argsort(x, 2, descending, int32, {}), {v});
            }
}

TEST_CASE("gradients of sort and topk go back to where elements came from") {
    const Array x = Array(std::vector<double>{0.5, -1, 2, 3, 0.25, -0.75, 1.5, 2.5, -2, 4, 1, -3}, {2, 3, 2});
    for (const int axis : {0, 1, 2}) {
        for (const bool descending : {false, true})
            require_gradient([&](const auto& v) { return sort(v[0], axis, {.descending = descending}); }, {x},
                             axis == 2);
        require_gradient([&](const auto& v) { return sqr(topk(v[0], 2, axis).values); }, {x});
        require_gradient([&](const auto& v) { return topk(v[0], 1, axis, {.smallest = true}).values; }, {x});
        require_gradient([&](const auto& v) { return grad(sum(sqr(sort(exp(v[0]), axis))), v[0]); }, {x},
                         false, 1e-4);
        require_gradient([&](const auto& v) { return grad(sum(sqr(topk(exp(v[0]), 1, axis).values)), v[0]); },
                         {x}, false, 1e-4);
    }
    const Expr v = vector("v");
    CHECK(numbers(grad(sum(topk(v, 2).values * constant(Array(std::vector<float>{10, 1}))), v), v,
                  Array(std::vector<float>{7, 9, 7, 1})) == Numbers{1, 10, 0, 0});
    CHECK_THAT(message_of<GraphError>([&] { grad(cast(sum(argsort(v)), float32), v); }),
               ContainsSubstring("without a gradient: argsort"));
}

TEST_CASE("messages of sort and topk") {
    const Expr x = input(float32, Dims{2, 3}, "x");
    CHECK_THAT(message_of<IndexError>([&] { sort(x, 2); }),
               ContainsSubstring("there is no axis 2; axes are 0 and 1"));
    CHECK_THAT(message_of<IndexError>([&] { argsort(scalar("s")); }),
               ContainsSubstring("a scalar has no axes"));
    CHECK_THAT(message_of<ShapeError>([&] { topk(x, 4); }),
               ContainsSubstring("topk: 4 elements of an axis of 3"));
    CHECK_THAT(message_of<ShapeError>([&] { topk(x, -1); }), ContainsSubstring("topk: -1 elements"));
    const NodePtr order = topk(matrix("y"), 3).positions.node();
    REQUIRE(order->op->equalities(*order).size() == 2);
    CHECK_THAT(order->op->equalities(*order)[0].what, ContainsSubstring("topk: ") &&
                                                          ContainsSubstring(" elements of an axis of ") &&
                                                          ContainsSubstring("in \"y\" (float32 [y.0, y.1])"));
}

TEST_CASE("what sort and topk are made of has their names in messages") {
    const Expr x = input(float32, Dims{4, 3}, "x");
    const auto best = topk(x, 2);
    CHECK_THAT(message_of<ShapeError>([&] { dot(best.values, best.values); }),
               ContainsSubstring("dot of topk (float32 [4, 2]) at order_test.cpp:"));
    CHECK_THAT(message_of<ShapeError>([&] { dot(best.positions, best.positions); }),
               ContainsSubstring("dot of topk (int64 [4, 2]) at order_test.cpp:"));
    CHECK_THAT(message_of<ShapeError>([&] { dot(sort(x), sort(x)); }),
               ContainsSubstring("dot of sort (float32 [4, 3]) at order_test.cpp:"));
    CHECK_THAT(message_of<GraphError>([&] { grad(sum(cast(topk(x, 2).positions, float32)), x); }),
               ContainsSubstring("without a gradient: topk"));
}
