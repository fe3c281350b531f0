#include "codegen/group/lookups.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "bitale/ops.h"
#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "codegen/nest/tree.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/gather.h"
#include "ops/shape/sequence.h"
#include "ops/shape/sort.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// Looking at an index takes about half a nanosecond for a vector of results, sorting one about ten.
bool is_worth_sorting(const Node& scatter, const Target& target) {
    constexpr double fewest_rows = 32;
    const double rows = typical(scatter.type.shape[0]), indices = typical_count(nest_of(scatter).reduced);
    if (scatter.inputs[1]->type.rank() > 0 && count_of(scatter.inputs[1]->type.shape).is(1))
        return rows >= fewest_rows;  // in order as it is
    const auto shape_of = [&](Operand operand) -> const Shape& {
        return scatter.inputs[static_cast<std::size_t>(operand.input())]->type.shape;
    };
    return !scatter.type.shape[0].is(1) && scatter.inputs[1]->type.rank() > 0 && rows >= fewest_rows &&
           rows * indices >= target.looks_of_sort && !tree_of(nest_of(scatter), shape_of).split;
}

// Whether one task that adds each term where it belongs takes less time than a sort: of tables that stay in a
// cache and are written as a whole, or about so. Where few rows of many change, a sort tells which.
bool is_worth_adding(const Node& scatter) {
    constexpr double fewest_elements = 16, fewest_rows = 4;  // fewer look at all terms as fast
    constexpr double small = 1 << 18, most_bytes = 1 << 20, most_bytes_of_many = 1 << 22, few_columns = 4,
                     most_columns = 64, rows_of_term = 8;
    const Shape& shape = scatter.type.shape;
    const DType dtype = scatter.type.dtype;
    const bool is_plain = is_integer(dtype) || dtype == DType::float32 || dtype == DType::float64;
    if (scatter.inputs[1]->type.rank() == 0 || !is_plain || !count_of(shape).is_constant()) return false;
    const double rows = typical(shape[0]), columns = typical(count_of(Shape(shape.begin() + 1, shape.end()))),
                 bytes = rows * columns * static_cast<double>(bytes_of(dtype));
    const Int terms = count_of(scatter.inputs[1]->type.shape);
    if (rows < fewest_rows || rows * columns < fewest_elements) return false;
    const bool many = terms.is_constant() && typical(terms) * rows_of_term >= rows;
    return (columns <= few_columns && bytes <= most_bytes) || (columns <= most_columns && bytes <= small) ||
           (many && columns <= most_columns && bytes <= most_bytes_of_many);
}

// Scatters by which updates change rows of their variables: a sort tells which these are, and the others
// stay.
std::set<const Node*> changes_of_variables(const Graph& graph) {
    std::set<const Node*> found, seen;
    for (const SharedUpdate& update : graph.updates) {
        std::vector<const Node*> open{update.value.get()};
        while (!open.empty()) {
            const Node* node = open.back();
            open.pop_back();
            if (!seen.insert(node).second) continue;
            if (node->op == scatter_op()) found.insert(node);
            if (node->op->kind == OpKind::reduce) continue;
            for (const NodePtr& input : node->inputs) open.push_back(input.get());
        }
    }
    return found;
}

// g [terms..., columns...], each of which is added to the row that its key names: a sum over terms of which a
// task has all rows (nest/puts.h).
NodePtr added_where_they_belong(const Node& scatter) {
    const Where where = scatter.where;
    const Shape& shape = scatter.type.shape;
    const Int terms = count_of(scatter.inputs[1]->type.shape);
    Shape one_row{1, 1, terms}, all{1, shape[0], terms}, of_places{1, shape[0], 1};
    const Shape columns(shape.begin() + 1, shape.end());
    one_row.insert(one_row.end(), columns.begin(), columns.end());
    all.insert(all.end(), columns.begin(), columns.end());
    Shape of_keys{1, 1, terms};
    of_keys.resize(all.size(), 1);
    of_places.resize(all.size(), 1);
    const Expr key = cast(wrap(make_expand(make_reshape(scatter.inputs[1], of_keys, where), all, where)),
                          int64, where),
               g = wrap(make_expand(make_reshape(scatter.inputs[0], one_row, where), all, where)),
               place =
                   wrap(make_expand(make_reshape(make_iota(shape[0], where), of_places, where), all, where));
    // Sums of integers are exact, and wrap as those of the dtype do.
    const DType dtype = scatter.type.dtype, wide = is_integer(dtype) ? DType::int64 : dtype;
    const Expr zero = strengthen(Expr(0), wide, where);
    const Expr own =
        apply(where_op(), {apply(eq_op(), {place, key}, {}, where), cast(g, wide, where), zero}, {}, where);
    const Expr sums = apply(sum_op(), {own}, {{"axes", std::vector<std::int64_t>{2}}}, where);
    return make_reshape(cast(sums, dtype, where).node(), shape, where);
}

}  // namespace

void sort_lookups(Graph& graph, const Target& target) {
    if (std::isinf(target.looks_of_sort)) return;
    const std::set<const Node*> changes = changes_of_variables(graph);
    std::map<std::pair<const Node*, Int>, SortedKeys> sorts;
    replace_nodes(graph, [&](const NodePtr& node, const Node& before) -> NodePtr {
        if (node->op != scatter_op()) return nullptr;
        if (!changes.contains(&before) && is_worth_adding(*node)) return added_where_they_belong(*node);
        if (!is_worth_sorting(*node, target)) return nullptr;
        const std::pair<const Node*, Int> key{node->inputs[1].get(), node->type.shape[0]};
        auto at = sorts.find(key);
        if (at == sorts.end())
            at = sorts.emplace(key, make_sorted(node->inputs[1], node->type.shape[0], node->where)).first;
        return make_scatter_of_sorted(node, at->second);
    });
}

}  // namespace bitale
