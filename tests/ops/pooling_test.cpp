// Max-pooling: values by the definition, ties and NaN, index maps, gradients of any order, messages.
#include "ops/nn/pooling.h"

#include <algorithm>
#include <limits>

#include "ops/nn/pool_gradients.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Pooling {
    Size2 window;
    PoolOptions options;
};
const std::vector<Pooling> all_poolings = {
    {2, {}},
    {1, {}},
    {{2, 3}, {}},
    {3, {.stride = 2}},
    {3, {.stride = 1}},
    {2, {.stride = 3}},
    {3, {.stride = 2, .pad = 1}},
    {{4, 3}, {.stride = Size2(2, 1), .pad = {2, 0}}},
    {2, {.stride = 1, .pad = 1}},
};
const std::vector<Dims> all_shapes = {{2, 3, 6, 7}, {5, 4}, {1, 4, 4}, {2, 1, 7, 5}};

Array by_definition(const Array& x, const Pooling& c) {
    const Size2 stride = c.options.stride.value_or(c.window), pad = c.options.pad;
    Dims shape = x.shape();
    const std::int64_t h = shape[shape.size() - 2], w = shape.back(), planes = x.size() / (h * w);
    const std::int64_t oh = (h + 2 * pad.h - c.window.h) / stride.h + 1,
                       ow = (w + 2 * pad.w - c.window.w) / stride.w + 1;
    std::vector<double> r;
    for (std::int64_t plane = 0; plane < planes; ++plane)
        for (std::int64_t i = 0; i < oh; ++i)
            for (std::int64_t j = 0; j < ow; ++j) {
                double best = -std::numeric_limits<double>::infinity();
                const std::int64_t top = i * stride.h - pad.h, left = j * stride.w - pad.w;
                for (std::int64_t y = std::max<std::int64_t>(top, 0); y < std::min(top + c.window.h, h); ++y)
                    for (std::int64_t z = std::max<std::int64_t>(left, 0); z < std::min(left + c.window.w, w);
                         ++z)
                        best = std::max(best, x.at((plane * h + y) * w + z));
                r.push_back(best);
            }
    shape[shape.size() - 2] = oh;
    shape.back() = ow;
    return Array(r, shape);
}

PoolGeometry geometry_of(const Expr& pooled) { return PoolGeometry::of(pooled.node()->attributes); }

NodePtr winners_of(const Expr& pooled) {
    return make_node(pool_winner_op(), pooled.node()->inputs, pooled.node()->attributes);
}

// All numbers differ, so that a small step changes no winner.
Array distinct(const Dims& shape) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count_of(shape); ++i)
        values.push_back(static_cast<double>(i * 37 % 101) / 8);
    return Array(values, shape);
}

}  // namespace

TEST_CASE("max_pool, its winners and their gradients: definition and index maps") {
    for (const Pooling& c : all_poolings)
        for (const Dims& dims : all_shapes)
            for (const DType dtype : {float32, int8}) {
                const Array x = sample(dtype, dims, 1);
                const Expr y =
                    max_pool(input(dtype, static_cast<int>(dims.size()), "x"), c.window, c.options);
                const Array value = require_nest_matches(y.node(), {x});
                require_same(value, widened(by_definition(x, c).as(dtype)));
                const NodePtr winners = winners_of(y);
                const Array winner = require_nest_matches(winners, {x});
                CHECK(winner.dtype() == uint8);
                // What the winners point at is the maximum.
                const NodePtr known = make_input({uint8, shape_of(value.shape())}, "k", {});
                const NodePtr picked =
                    make_node(pool_pick_op(), {constant(x).node(), known}, geometry_of(y).attributes());
                require_same(require_nest_matches(picked, {x, winner}), value);
                if (dtype != float32) continue;
                const NodePtr g = make_input({float32, shape_of(value.shape())}, "g", {});
                const NodePtr gradient =
                    make_unpool(g, known, geometry_of(y), dims[dims.size() - 2], dims.back(), {});
                require_nest_matches(gradient, {sample(float32, value.shape(), 2), winner});
            }
}

TEST_CASE("unpool's index map with symbolic lengths") {
    const Expr y = max_pool(tensor4("x"), 3, {.stride = 2, .pad = 1});
    const NodePtr g = make_input(y.node()->type, "g", {});
    const Shape& x = y.node()->inputs[0]->type.shape;
    const NodePtr gradient = make_unpool(g, winners_of(y), geometry_of(y), x[2], x[3], {});
    const Array image = distinct({2, 2, 6, 5}).as(float32);
    const SymbolValues lengths{
        {x[0].symbol_id(), 2}, {x[1].symbol_id(), 2}, {x[2].symbol_id(), 6}, {x[3].symbol_id(), 5}};
    const Expr known = max_pool(constant(image), 3, {.stride = 2, .pad = 1});
    const Array winner = oracle(winners_of(known), {image});
    const Array values = sample(float64, winner.shape(), 2);
    const Array expected =
        oracle(make_unpool(constant(values).node(), constant(winner).node(), geometry_of(y), 6, 5, {}),
               {values, winner});
    require_same(interpret(nest_of(*gradient), {values, winner}, lengths), expected);
}

TEST_CASE("one window per place needs no loop and no guards") {
    const Expr x = input(float32, {8, 10, 28, 28}, "x");
    const Expr y = max_pool(x, 2);
    CHECK(y.shape_text() == "[8, 10, 14, 14]");
    const NodePtr gradient = grad(sum(y), x).node();
    const NodePtr unpooled = gradient->op == unpool_op() ? gradient : nullptr;
    REQUIRE(unpooled);
    const Nest nest = nest_of(*unpooled);
    CHECK(nest.combine == Combine::none);
    CHECK(nest.reduced.empty());
    for (const Scalar& a : nest.body->arguments) CHECK(a->guards.empty());
}

TEST_CASE("ties go to the first maximum, NaN wins") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Array x(std::vector<float>{3, 3, 1, 2, 3, 3, 2, nan, -1, nan, 7, 7, nan, -2, 7, 7}, {4, 4});
    const Expr e = input(float32, {4, 4}, "x");
    const Array y = evaluated(max_pool(e, 2), {e}, {x});
    CHECK(y.at(0) == 3);
    CHECK(std::isnan(y.at(1)));
    CHECK(std::isnan(y.at(2)));
    CHECK(y.at(3) == 7);
    const NodePtr winners = winners_of(max_pool(e, 2));
    CHECK(oracle(winners, {x}).to_vector<int>() == std::vector<int>{0, 3, 1, 0});
    const Array g = evaluated(grad(sum(max_pool(e, 2)), e), {e}, {x.as(float64).as(float32)});
    CHECK(g.to_vector<int>() == std::vector<int>{1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("winners of big windows have room") {
    CHECK(winner_dtype({15, 17}) == uint8);  // and a number that is no cell
    CHECK(winner_dtype({16, 16}) == uint16);
    CHECK(winner_dtype({17, 16}) == uint16);
    CHECK(winner_dtype({257, 256}) == int32);
}

TEST_CASE("gradients of max_pool, first and second order") {
    for (const Pooling& c : all_poolings) {
        const Array x = distinct({1, 2, 5, 6});
        require_gradient([&](const std::vector<Expr>& v) { return max_pool(v[0], c.window, c.options); },
                         {x});
        require_gradient([&](const std::vector<Expr>& v) { return max_pool(v[0], c.window, c.options); }, {x},
                         true);
        require_gradient(
            [&](const std::vector<Expr>& v) {
                const Expr y = max_pool(v[0], c.window, c.options);
                return grad(sum(y * y * y), v[0]);
            },
            {x}, false, 1e-5);
    }
}

TEST_CASE("what cannot be pooled") {
    const auto shape_error = [](const Expr& x, Size2 window, PoolOptions options = {}) {
        return message_of<ShapeError>([&] { max_pool(x, window, options); });
    };
    const Expr x = input(float32, {-1, 3, 4, 9}, "x");
    const std::string message = shape_error(x, 5);
    CHECK_THAT(message,
               ContainsSubstring("the height of its window, 5, is more than that of the images, 4; pool"));
    CHECK_THAT(shape_error(vector("v"), 2), ContainsSubstring("the last two axes"));
    CHECK_THAT(shape_error(x, 0), ContainsSubstring("at least 1, but are 0 and 0"));
    CHECK_THAT(shape_error(x, 2, {.pad = 2}), ContainsSubstring("smaller than the window of 2"));
    CHECK_THAT(message_of<TypeError>([] { max_pool(input(float16, 4, "h"), 2); }),
               ContainsSubstring("float16"));
    const NodePtr node = max_pool(tensor4("x"), {3, 2}).node();
    REQUIRE(node->op->equalities(*node).size() == 2);
    CHECK_THAT(node->op->equalities(*node)[0].what,
               ContainsSubstring("the height of its window, 3, is more than that of the images, "));
}
