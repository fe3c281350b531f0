// The gradient of a convolution's filters through the winners of the pooling behind it: against the gradient
// over all places, index maps, gradients of its own, NaN.
#include "ops/nn/winner_gradients.h"

#include <limits>

#include "ops/linear/conv_gradients.h"
#include "ops/nn/pool_gradients.h"
#include "ops/nn/pooling.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct PooledConv {
    ConvOptions conv;
    Size2 window;
    PoolOptions pool;
};
const std::vector<PooledConv> all_pooled_convs = {
    {{}, 2, {}},
    {{.border_mode = half}, 2, {}},
    {{.border_mode = half, .filter_flip = false}, {2, 3}, {}},
    {{.border_mode = valid, .subsample = Size2(2, 1)}, 2, {.stride = 1}},
    {{.border_mode = Border(2, 1), .dilation = Size2(1, 2)}, 3, {.stride = 2}},
    {{.border_mode = full, .subsample = 2, .dilation = 2, .filter_flip = false}, 3, {.stride = 2, .pad = 1}},
    {{}, {4, 3}, {.stride = Size2(2, 1), .pad = {2, 0}}},
    {{.border_mode = half}, 1, {}},
    {{.border_mode = half}, 2, {.stride = 3}},
};

// Nodes over known values: x, the gradient of the pooled map, its winners.
struct Operands {
    Array x, g, winner;
    NodePtr dense;
};

Operands operands_of(const PooledConv& c, const Dims& image, const Dims& kernel) {
    const Expr x = input(float64, image, "x"), w = input(float64, kernel, "w");
    const Expr pooled = max_pool(conv2d(x, w, c.conv), c.window, c.pool);
    const NodePtr conv = pooled.node()->inputs[0];
    const NodePtr winners = make_node(pool_winner_op(), {conv}, pooled.node()->attributes);
    Operands o;
    o.x = sample(float64, image, 1);
    o.winner = evaluated(Expr(winners), {x, w}, {o.x, sample(float64, kernel, 2)});
    o.g = sample(float64, o.winner.shape(), 3);
    const Shape& places = conv->type.shape;
    const NodePtr g = make_input({float64, shape_of(o.winner.shape())}, "g", {}),
                  k = make_input({o.winner.dtype(), shape_of(o.winner.shape())}, "k", {});
    const NodePtr everywhere =
        make_unpool(g, k, PoolGeometry::of(pooled.node()->attributes), places[2], places[3], {});
    o.dense = make_conv_grad_w(x.node(), everywhere, ConvGeometry::of(conv->attributes),
                               {kernel[2], kernel[3]}, {});
    return o;
}

Array over_all_places(const Operands& o) {
    return oracle(o.dense, {o.x, oracle(o.dense->inputs[1], {o.g, o.winner})});
}

}  // namespace

TEST_CASE("the gradient through the winners is the one over all places") {
    for (const PooledConv& c : all_pooled_convs)
        for (const Dims& kernel : {Dims{2, 3, 3, 3}, Dims{3, 3, 1, 2}, Dims{1, 3, 2, 1}}) {
            const Operands o = operands_of(c, {2, 3, 9, 8}, kernel);
            const NodePtr sparse = through_winners(o.dense);
            CHECK(sparse->type == o.dense->type);
            const NodePtr back = through_all_places(sparse);
            CHECK(back->attributes == o.dense->attributes);
            CHECK(back->inputs[1]->attributes == o.dense->inputs[1]->attributes);
            require_same(require_nest_matches(sparse, {o.x, o.g, o.winner}), over_all_places(o));
        }
}

TEST_CASE("the index map through winners with symbolic lengths") {
    for (const PooledConv& c : {all_pooled_convs[1], all_pooled_convs[5]}) {
        const Expr x = tensor4("x"), w = input(float32, {4, 2, 3, 3}, "w");
        const Expr pooled = max_pool(conv2d(x, w, c.conv), c.window, c.pool);
        const NodePtr conv = pooled.node()->inputs[0];
        const NodePtr winners = make_node(pool_winner_op(), {conv}, pooled.node()->attributes),
                      g = make_input(pooled.node()->type, "g", {});
        const NodePtr everywhere = make_unpool(g, winners, PoolGeometry::of(pooled.node()->attributes),
                                               conv->type.shape[2], conv->type.shape[3], {});
        const NodePtr sparse = through_winners(
            make_conv_grad_w(x.node(), everywhere, ConvGeometry::of(conv->attributes), {3, 3}, {}));
        const Operands known = operands_of(c, {3, 2, 7, 10}, {4, 2, 3, 3});
        const Shape& shape = x.node()->type.shape;
        const SymbolValues lengths{{shape[0].symbol_id(), 3},
                                   {shape[1].symbol_id(), 2},
                                   {shape[2].symbol_id(), 7},
                                   {shape[3].symbol_id(), 10}};
        require_same(interpret(nest_of(*sparse), {known.x, known.g, known.winner}, lengths),
                     over_all_places(known));
    }
}

TEST_CASE("gradients of the gradient through winners") {
    for (const PooledConv& c : all_pooled_convs) {
        const Operands o = operands_of(c, {2, 2, 7, 6}, {2, 2, 3, 2});
        const Attributes attributes = through_winners(o.dense)->attributes;
        require_gradient(
            [&](const std::vector<Expr>& v) {
                return Expr(make_node(conv_grad_w_winners_op(),
                                      {v[0].node(), v[1].node(), make_constant(o.winner)}, attributes));
            },
            {o.x, o.g});
    }
}

TEST_CASE("a window with a NaN has a winner, and places without one do not matter") {
    Operands o = operands_of(all_pooled_convs[0], {1, 1, 4, 4}, {1, 1, 1, 1});
    auto* x = static_cast<double*>(o.x.mutable_data());
    x[5] = std::numeric_limits<double>::quiet_NaN();
    x[10] = std::numeric_limits<double>::infinity();
    const NodePtr sparse = through_winners(o.dense);
    const Array winner(std::vector<double>{3, 0, 0, 1}, {1, 1, 2, 2});
    CHECK(std::isnan(oracle(sparse, {o.x, o.g, winner.as(uint8)}).at(0)));  // the first window: its NaN won
    const Array elsewhere(std::vector<double>{0, 0, 0, 1}, {1, 1, 2, 2});
    CHECK(std::isfinite(require_nest_matches(sparse, {o.x, o.g, elsewhere.as(uint8)}).at(0)));
}

TEST_CASE("operands that do not belong together") {
    const Operands o = operands_of(all_pooled_convs[0], {1, 1, 6, 6}, {1, 1, 3, 3});
    const NodePtr sparse = through_winners(o.dense);
    const NodePtr wrong = make_input({float64, {1, 1, 3, 3}}, "wrong", {});
    CHECK_THAT(message_of<ShapeError>([&] {
                   make_node(conv_grad_w_winners_op(), {sparse->inputs[0], wrong, sparse->inputs[2]},
                             sparse->attributes, Where::current());
               }),
               ContainsSubstring("do not fit an image of height 4"));
    CHECK_THAT(message_of<TypeError>([&] {
                   make_node(conv_grad_w_winners_op(), {sparse->inputs[0], sparse->inputs[1], wrong},
                             sparse->attributes, Where::current());
               }),
               ContainsSubstring("must be integers"));
}
