#include "codegen/group/one_hot_counts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bitale/ops.h"
#include "codegen/group/one_hot_array.h"
#include "codegen/group/values.h"
#include "graph/rewrite/pattern.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/contract.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/gather.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using Axes = std::vector<std::int64_t>;

constexpr double fewest_classes = 8, fewest_points = 100;
// A task's own counts have to be cleared and added up, and take memory: an eighth of a byte for each point.
constexpr std::int64_t points_of_task = 4096, points_of_class = 64, points_of_class_in_list = 4;
// Of a list that is cut, so that there is work for many cores and not much memory for what each has found.
constexpr std::int64_t most_blocks = 64, most_blocks_of_rows = 16;

Int block_of(const Int& count, std::int64_t least, std::int64_t blocks) {
    return max(min(least, max(count, 1)), ceildiv(count, blocks));
}

std::int64_t points_for(const Int& classes) {
    return std::max(points_of_task, points_of_class * classes.constant());
}

bool is_worth_counting(const Int& classes, double points) {
    constexpr std::int64_t most_classes = 1 << 24;
    return classes.is_constant() && classes.constant() <= most_classes &&
           static_cast<double>(classes.constant()) >= fewest_classes && points >= fewest_points;
}

Shape lengths_of(const NodePtr& node, const Axes& axes) {
    Shape shape;
    for (const std::int64_t axis : axes) shape.push_back(node->type.shape[static_cast<std::size_t>(axis)]);
    return shape;
}

// keys [rows..., points...], so many axes of them points -> int64 [rows..., classes].
Expr counts_of_rows(const NodePtr& keys, std::size_t points, const Int& classes, Where where) {
    const Shape& shape = keys->type.shape;
    const std::size_t rows = shape.size() - points;
    Shape with_one = shape, all = shape, of_classes(shape.size() + 1, 1);
    const auto behind = static_cast<std::ptrdiff_t>(rows);
    with_one.insert(with_one.begin() + behind, 1);
    all.insert(all.begin() + behind, classes);
    of_classes[rows] = classes;
    const Expr key = wrap(make_expand(make_reshape(keys, with_one, where), all, where));
    const Expr place =
        wrap(make_expand(make_reshape(make_iota(classes, where), of_classes, where), all, where));
    const Expr one = apply(eq_op(), {place, cast(key, int64, where)}, {}, where);
    Axes axes;
    for (std::size_t d = 0; d < points; ++d) axes.push_back(static_cast<std::int64_t>(rows + 1 + d));
    const auto number = [&](std::int64_t x) { return wrap(make_constant(Array(x), where)); };
    return apply(sum_op(), {apply(where_op(), {one, number(1), number(0)}, {}, where)}, {{"axes", axes}},
                 where);
}

Expr summed(const Expr& x, std::size_t leading, Where where) {
    if (leading == 0) return x;
    Axes axes;
    for (std::size_t d = 0; d < leading; ++d) axes.push_back(static_cast<std::int64_t>(d));
    return apply(sum_op(), {x}, {{"axes", axes}}, where);
}

// numbers [points] -> int64 [classes], by blocks of points; behind the last point no class is meant.
Expr counts_of_blocks(const NodePtr& numbers, const Int& classes, Where where) {
    const Int &count = numbers->type.shape[0],
              block = block_of(count, std::max(points_of_task, points_of_class_in_list * classes.constant()),
                               most_blocks),
              blocks = ceildiv(count, block);
    const Expr behind =
        apply(place_slice_op(), {cast(wrap(numbers), int64, where) + 1},
              {{"start", Shape{0}}, {"step", Axes{1}}, {"shape", Shape{blocks * block}}}, where);
    const NodePtr keys = make_reshape((behind - 1).node(), {blocks, block}, where);
    return summed(counts_of_rows(keys, 1, classes, where), 1, where);
}

NodePtr counts_of_sum(const Node& node) {
    const NodePtr& array = node.inputs[0];
    const bool is_array = array->op == cast_op() || array->op == eq_op() || array->op->kind == OpKind::view;
    if (!is_array || node.type.dtype == DType::boolean) return nullptr;
    const auto& reduced = node.attributes.get<Axes>("axes");
    double points = 1;
    for (const Int& length : lengths_of(array, reduced)) points *= typical(length);
    if (points < fewest_points) return nullptr;
    const std::optional<OneHot> hot = one_hot_of(array, node.where);
    if (!hot) return nullptr;
    const Int& classes = array->type.shape[hot->axis];
    const auto axis = static_cast<std::int64_t>(hot->axis);
    if (!is_worth_counting(classes, points) || std::binary_search(reduced.begin(), reduced.end(), axis))
        return nullptr;
    Axes outer, kept, inner;  // of the numbers; the inner ones are counted by one task
    std::size_t place = 0;    // of the classes among the axes of the result
    double inside = 1;
    for (std::int64_t d = array->type.rank() - 1; d >= 0; --d) {
        if (d == axis) continue;
        const std::int64_t own = d - (d > axis ? 1 : 0);
        const Int& length = array->type.shape[static_cast<std::size_t>(d)];
        if (!std::binary_search(reduced.begin(), reduced.end(), d)) {
            kept.insert(kept.begin(), own);
            place += d < axis ? 1 : 0;
        } else if (inside < static_cast<double>(points_for(classes))) {
            inner.insert(inner.begin(), own);
            inside *= typical(length);
        } else {
            outer.insert(outer.begin(), own);
        }
    }
    Expr counts;
    if (kept.empty()) {
        const Int all = count_of(hot->numbers->type.shape);
        counts = counts_of_blocks(make_reshape(hot->numbers, {all}, node.where), classes, node.where);
    } else {
        Axes order = outer;
        order.insert(order.end(), kept.begin(), kept.end());
        order.insert(order.end(), inner.begin(), inner.end());
        const NodePtr keys = make_permute(hot->numbers, order, node.where);
        counts = summed(counts_of_rows(keys, inner.size(), classes, node.where), outer.size(), node.where);
        Axes back;  // the classes are last
        for (std::size_t d = 0; d < kept.size(); ++d) back.push_back(static_cast<std::int64_t>(d));
        back.insert(back.begin() + static_cast<std::ptrdiff_t>(place),
                    static_cast<std::int64_t>(kept.size()));
        counts = wrap(make_permute(counts.node(), back, node.where));
    }
    return cast(counts, node.type.dtype, node.where).node();
}

NodePtr counts_of_product(const Node& node) {
    const NodePtr &a = node.inputs[0], &b = node.inputs[1];
    if (a->type.rank() != 2 || b->type.rank() != 2) return nullptr;
    const Int &rows = node.type.shape[0], &columns = node.type.shape[1];
    const double points = typical(a->type.shape[1]);
    if (!rows.is_constant() || !columns.is_constant() || !is_worth_counting(rows * columns, points))
        return nullptr;
    const std::optional<OneHot> row = one_hot_of(a, node.where), column = one_hot_of(b, node.where);
    if (!row || !column || row->axis != 0 || column->axis != 1) return nullptr;
    const Expr i = cast(wrap(row->numbers), int64, node.where),
               j = cast(wrap(column->numbers), int64, node.where);
    const auto inside = [&](const Expr& k, const Int& n) {
        return logical_and(ge(k, 0), lt(k, n.constant()));
    };
    const Expr pair =
        bitale::where(logical_and(inside(i, rows), inside(j, columns)), i * columns.constant() + j, -1);
    const Expr counts = counts_of_blocks(pair.node(), rows * columns, node.where);
    return cast(reshape_to(counts, {rows, columns}, node.where), node.type.dtype, node.where).node();
}

// g [points, columns], of which each row is added to that of its number: float [classes, columns], by blocks
// of points.
Expr sums_of_blocks(const NodePtr& numbers, const Expr& g, const Int& classes, Where where) {
    constexpr std::int64_t rows_of_task = 1024;
    const Int &count = numbers->type.shape[0], &columns = type_of(g).shape[1],
              block = block_of(count, rows_of_task, most_blocks_of_rows), blocks = ceildiv(count, block);
    const auto in_blocks = [&](const Expr& x, const Shape& behind) {
        Shape whole{blocks * block}, shape{blocks, 1, block};
        whole.insert(whole.end(), behind.begin(), behind.end());
        shape.push_back(behind.empty() ? Int(1) : behind[0]);
        const Expr padded = apply(
            place_slice_op(), {x},
            {{"start", Shape(whole.size(), 0)}, {"step", Axes(whole.size(), 1)}, {"shape", whole}}, where);
        return reshape_to(padded, shape, where);
    };
    const Shape all{blocks, classes, block, columns};
    const Expr keys = expand_to(in_blocks(cast(wrap(numbers), int64, where) + 1, {}), all, where) - 1,
               rows = expand_to(in_blocks(g, {columns}), all, where),
               place = expand_to(wrap(make_reshape(make_iota(classes, where), {1, classes, 1, 1}, where)),
                                 all, where);
    const Expr zero = strengthen(Expr(0), type_of(g).dtype, where);
    const Expr own = apply(where_op(), {apply(eq_op(), {place, keys}, {}, where), rows, zero}, {}, where);
    return summed(apply(sum_op(), {own}, {{"axes", Axes{2}}}, where), 1, where);
}

// A product with a one-hot matrix of few columns: its rows are added up where they belong.
NodePtr sums_of_product(const Node& node) {
    constexpr double most_sums = 1 << 16, most_classes = 512, fewest_columns = 4;
    const bool is_plain = node.type.dtype == DType::float32 || node.type.dtype == DType::float64;
    if (node.inputs[0]->type.rank() != 2 || node.inputs[1]->type.rank() != 2 || !is_plain) return nullptr;
    for (const std::size_t side : {0, 1}) {
        const NodePtr &matrix = node.inputs[side], &other = node.inputs[1 - side];
        const Int &classes = node.type.shape[side], &columns = node.type.shape[1 - side];
        if (!is_worth_counting(classes, typical(matrix->type.shape[1 - side])) ||
            typical(classes) >= most_classes || typical(columns) < fewest_columns ||
            typical(classes) * typical(columns) > most_sums)
            continue;
        const std::optional<OneHot> hot = one_hot_of(matrix, node.where);
        if (!hot || hot->axis != side) continue;
        const Expr g = side == 0 ? wrap(other) : transpose(wrap(other)),
                   sums = sums_of_blocks(hot->numbers, g, classes, node.where);
        return (side == 0 ? sums : transpose(sums)).node();
    }
    return nullptr;
}

// Scatters of a constant into a vector, as inc_subtensor(counts, numbers, 1) is. Of few numbers and many
// classes, only the classes that occur are worth a visit.
NodePtr counts_of_scatter(const Node& node) {
    constexpr double most_classes_of_point = 4, few_classes = 4096;
    const DType dtype = node.type.dtype;
    const bool is_plain = is_integer(dtype) || dtype == DType::float32 || dtype == DType::float64;
    if (node.type.rank() != 1 || !is_plain) return nullptr;
    NodePtr terms = node.inputs[0];
    while (terms->op == expand_op() || terms->op == reshape_op()) terms = terms->inputs[0];
    const std::optional<Array> each = uniform_value(terms);
    const NodePtr& numbers = node.inputs[1];
    const Int &classes = node.type.shape[0], count = count_of(numbers->type.shape);
    const double points = typical(count);
    if (!each || !std::isfinite(each->at(0)) || !is_worth_counting(classes, points) ||
        static_cast<double>(classes.constant()) > std::max(few_classes, most_classes_of_point * points))
        return nullptr;
    const Expr counts = counts_of_blocks(make_reshape(numbers, {count}, node.where), classes, node.where);
    const Expr one = wrap(make_constant(*each, node.where)), times = cast(counts, dtype, node.where);
    return (times * expand_to(one, node.type.shape, node.where)).node();
}

}  // namespace

NodePtr counts_of(const NodePtr& node) {
    if (node->op == sum_op()) return counts_of_sum(*node);
    if (node->op == scatter_op()) return counts_of_scatter(*node);
    if (node->op != dot_op()) return nullptr;
    const NodePtr pairs = counts_of_product(*node);
    return pairs ? pairs : sums_of_product(*node);
}

}  // namespace bitale
