// Max-pooling one element apart, and its gradient, go by rows and columns. Next to a convolution, what does
// not change the order of the cells of a window happens to the few that win. Forward, relu and the bias move
// behind max_pool; backward, relu's mask moves before unpool, the gradient of the filters is a sum over
// windows, and that of the image one that can skip the other places.
#include <algorithm>
#include <utility>

#include "ops/linear/conv_gradients.h"
#include "ops/nn/pool_geometry.h"
#include "ops/nn/pool_gradients.h"
#include "ops/nn/pooling.h"
#include "ops/nn/winner_gradients.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

// The operand of an expand over the last two axes, repeated over the pooled ones instead; null if it varies
// in them.
NodePtr over_pooled(const NodePtr& repeated, const Shape& pooled, Where where) {
    if (repeated->type.rank() == 0) return repeated;
    if (repeated->op != expand_op()) return nullptr;
    const NodePtr& each = repeated->inputs[0];
    const Shape& shape = each->type.shape;
    for (std::size_t i = shape.size() < 2 ? 0 : shape.size() - 2; i < shape.size(); ++i)
        if (!shape[i].is(1)) return nullptr;
    return make_expand(each, pooled, where);
}

// max_pool((x + b).again()) = max_pool(x) + b for a b that is the same everywhere in a plane: rounding keeps
// the order.
Replace bias_behind_pool(const Pattern& x, const Pattern& b, const char* op) {
    return [=](const Match& m) -> NodePtr {
        const Node& pool = *m.root();
        if (m[x]->type.shape != pool.inputs[0]->type.shape) return nullptr;
        const NodePtr bias = over_pooled(m[b], pool.type.shape, pool.where);
        if (!bias) return nullptr;
        const NodePtr pooled = make_node(pool.op, {m[x]}, pool.attributes, pool.where);
        return make_node(find_op(op), {pooled, bias}, {}, pool.where);
    };
}

// Every place of a plane gets its gradients by adding up: their total is that of the plane.
NodePtr total_of_unpooled(const Match& m, const Pattern& g) {
    using Axes = std::vector<std::int64_t>;
    const auto& axes = m.root()->attributes.get<Axes>("axes");
    const std::int64_t rank = m[g]->type.rank();
    const auto sums = [&](std::int64_t axis) {
        return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    if (!sums(rank - 1) || !sums(rank - 2)) return nullptr;
    return make_node(m.root()->op, {m[g]}, m.root()->attributes, m.root()->where);
}

// Windows that lie one element apart share most of their elements: the maxima of their rows, and of those
// the maxima of the columns. A window of 5 x 5 takes 10 comparisons, not 25. Where a gradient wants the
// places of the maxima as well, small windows find both at once.
Condition overlaps(std::int64_t fewest_cells) {
    return [=](const Match& m) {
        const PoolGeometry g = PoolGeometry::of(m.root()->attributes);
        return g.stride[0] == 1 && g.stride[1] == 1 && g.window[0] > 1 && g.window[1] > 1 &&
               g.cells() >= fewest_cells;
    };
}

// The place of a maximum is that of the first row whose own maximum is as large, and the first place in that
// row: the gradients go to rows first, then within them.
NodePtr unpool_rows_first(const Match& m, const Pattern& g, const Pattern& winner, const Pattern& x) {
    const Node& root = *m.root();
    const PoolGeometry both = PoolGeometry::of(root.attributes);
    const PoolGeometry across{{1, both.window[1]}, {1, 1}, {0, both.pad[1]}},
        down{{both.window[0], 1}, {1, 1}, {both.pad[0], 0}};
    const NodePtr rows = make_node(max_pool_op(), {m[x]}, across.attributes(), root.where);
    const NodePtr row = make_node(pool_winner_op(), {rows}, down.attributes(), m[winner]->where);
    const NodePtr place = make_node(pool_winner_op(), {m[x]}, across.attributes(), m[winner]->where);
    const Shape& shape = root.type.shape;
    const NodePtr of_rows =
        make_unpool(m[g], row, down, shape[shape.size() - 2], rows->type.shape.back(), root.where);
    return make_unpool(of_rows, place, across, shape[shape.size() - 2], shape.back(), root.where);
}

NodePtr by_columns_of_rows(const Match& m, const Pattern& x) {
    const Node& pool = *m.root();
    const PoolGeometry g = PoolGeometry::of(pool.attributes);
    const PoolGeometry across{{1, g.window[1]}, {1, 1}, {0, g.pad[1]}},
        down{{g.window[0], 1}, {1, 1}, {g.pad[0], 0}};
    return make_node(pool.op, {make_node(pool.op, {m[x]}, across.attributes(), pool.where)},
                     down.attributes(), pool.where);
}

}  // namespace

std::vector<Rule> pooling_rules() {
    const Pattern x = any("x"), b = any("b"), g = any("g"), k = any("k");
    // Maps before pooling are computed as it reads them: other users do not share them.
    const Pattern pool = max_pool(relu(x).again()), winner = pool_winner(relu(x)), placed = pool_winner(x),
                  unpooled = unpool(g, winner).again();
    const Pattern once = any("x").once();
    const auto floats = [](const Match& m) { return is_float(m.root()->type.dtype); };
    return {
        {"max-pool-relu", pool, relu(max_pool(x).like(pool)), Tag::reassociates},
        {"max-pool-add", max_pool((x + b).again()), bias_behind_pool(x, b, "add"), Tag::reassociates, floats},
        {"max-pool-sub", max_pool((x - b).again()), bias_behind_pool(x, b, "sub"), Tag::reassociates, floats},
        {"max-pool-separable", max_pool(x), [x](const Match& m) { return by_columns_of_rows(m, x); },
         Tag::reassociates, overlaps(16)},
        {"max-pool-separable-once", max_pool(once),
         [once](const Match& m) { return by_columns_of_rows(m, once); }, Tag::reassociates, overlaps(9)},
        {"relu-positive", gt(relu(x).again(), 0), gt(x, 0)},
        // The winner is the same wherever the mask lets something through.
        {"unpool-relu", where(gt(x, 0).again(), unpooled, 0),
         unpool(where(gt(max_pool(x).like(winner), 0), g, 0), pool_winner(x).like(winner)).like(unpooled)},
        {"unpool-separable", unpool(g, placed),
         [g, placed, x](const Match& m) { return unpool_rows_first(m, g, placed, x); }, Tag::reassociates,
         overlaps(16)},
        {"sum-unpool", sum(unpool(g, k)), [g](const Match& m) { return total_of_unpooled(m, g); },
         Tag::reassociates},
    };
}

RuleSet winner_rules(Condition worth_it, Condition many_zeros) {
    const Pattern x = any("x"), g = any("g"), k = any("k"), w = any("w");
    return {
        "winners",
        {{"conv-grad-w-unpool", conv_grad_w(x, unpool(g, k).again()),
          [](const Match& m) { return through_winners(m.root()); }, Tag::skips_zeros, std::move(worth_it)},
         {"conv-grad-x-unpool", conv_grad_x(unpool(g, k).again(), w),
          [](const Match& m) { return with_taps_first(m.root()); }, Tag::reassociates,
          std::move(many_zeros)}}};
}

}  // namespace bitale
