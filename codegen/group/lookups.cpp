#include "codegen/group/lookups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "bitale/ops.h"
#include "codegen/group/known_places.h"
#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "codegen/nest/tree.h"
#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/gather.h"
#include "ops/shape/join.h"
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

// Of a scatter that finds the last position of each number of a list (ops/shape/set_list.cpp), the list.
NodePtr list_of_last(const Node& scatter) {
    const NodePtr& sorted = scatter.inputs[1];
    return scatter.attributes.find("last_of_list") && sorted->op == take_along_op() ? sorted->inputs[0]
                                                                                    : nullptr;
}

// Whether one task that adds each term where it belongs takes less time than a sort: of tables that stay in a
// cache and are written as a whole, or about so. Where few rows of many change, a sort tells which.
bool is_worth_adding(const Node& scatter) {
    constexpr double fewest_elements = 16, fewest_rows = 4;  // fewer look at all terms as fast
    constexpr double small = 1 << 18, most_bytes = 1 << 20, most_bytes_of_many = 1 << 22, few_columns = 4,
                     most_columns = 64, most_columns_of_any = 16, rows_of_term = 8;
    const Shape& shape = scatter.type.shape;
    const DType dtype = scatter.type.dtype;
    const bool is_plain = is_integer(dtype) || dtype == DType::float32 || dtype == DType::float64;
    const Int row = count_of(Shape(shape.begin() + 1, shape.end()));
    if (scatter.inputs[1]->type.rank() == 0 || !is_plain || !row.is_constant()) return false;
    const double rows = typical(shape[0]), columns = typical(row),
                 bytes = rows * columns * static_cast<double>(bytes_of(dtype));
    // A sort takes longer than to add to memory; each row of a table of any length is written anyway.
    if (!shape[0].is_constant() && !list_of_last(scatter)) return columns <= most_columns_of_any;
    const Int terms = count_of(scatter.inputs[1]->type.shape);
    if (terms.is(0)) return false;
    const bool is_list = list_of_last(scatter) && rows > 1;  // sorted, otherwise, for few rows too
    if (!is_list && (rows < fewest_rows || rows * columns < fewest_elements)) return false;
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

// Whether most rows of the table get no term, however the keys fall.
bool goes_to_few_rows(const Node& scatter) {
    constexpr double few = 0.25;
    return typical_count(nest_of(scatter).reduced) < few * typical(scatter.type.shape[0]);
}

// Whether numbers are made of constants and of shared variables that no call changes, as the edges of a graph
// are: they are sorted once (once.h).
bool stays_from_call_to_call(const NodePtr& numbers, const Graph& graph) {
    for (const NodePtr& node : topological({numbers})) {
        if (node->op->kind != OpKind::leaf || is_constant(node)) continue;
        const SharedPtr shared = shared_of(node);
        if (!shared || std::any_of(graph.updates.begin(), graph.updates.end(),
                                   [&](const SharedUpdate& u) { return u.target == shared; }))
            return false;
    }
    return count_of(numbers->type.shape).is_constant();
}

// A sum over terms of which a task has all rows (nest/puts.h), or the largest one, of integers from 0 on.
class AtPlaces {
  public:
    AtPlaces(const NodePtr& keys, const Shape& table, Where where)
        : terms_(count_of(keys->type.shape)), table_(table), where_(where) {
        const Expr key = spread(make_reshape(keys, with_columns({1, 1, terms_}, true), where)),
                   place = spread(
                       make_reshape(make_iota(table[0], where), with_columns({1, table[0], 1}, true), where));
        belongs_ = apply(eq_op(), {place, cast(key, int64, where)}, {}, where);
    }

    // g [terms..., columns...], each of which is added to the row that its key names.
    NodePtr sum(const NodePtr& g) const {
        // Sums of integers are exact, and wrap as those of the dtype do.
        const DType dtype = g->type.dtype, wide = is_integer(dtype) ? DType::int64 : dtype;
        const Expr terms = spread(make_reshape(g, with_columns({1, 1, terms_}, false), where_));
        return combined(sum_op(), cast(terms, wide, where_), dtype);
    }

    // 1 + the last position of each row among the keys, 0 where there is none.
    NodePtr last_position() const {
        const Expr number = apply(add_op(), {wrap(make_iota(terms_, where_)), one()}, {}, where_);
        return combined(max_op(), spread(make_reshape(number.node(), {1, 1, terms_}, where_)), DType::int64);
    }

  private:
    Shape with_columns(Shape shape, bool ones) const {
        for (std::size_t d = 1; d < table_.size(); ++d) shape.push_back(ones ? Int(1) : table_[d]);
        return shape;
    }

    Expr spread(const NodePtr& x) const {
        return wrap(make_expand(x, with_columns({1, table_[0], terms_}, false), where_));
    }

    Expr one() const {
        return expand_to(wrap(make_constant(Array(std::int64_t{1}), where_)), {terms_}, where_);
    }

    NodePtr combined(const Op* op, const Expr& terms, DType dtype) const {
        const Expr zero = strengthen(Expr(0), type_of(terms).dtype, where_);
        const Expr own = apply(where_op(), {belongs_, terms, zero}, {}, where_);
        const Expr all = apply(op, {own}, {{"axes", std::vector<std::int64_t>{2}}}, where_);
        return make_reshape(cast(all, dtype, where_).node(), table_, where_);
    }

    const Int terms_;
    const Shape table_;
    const Where where_;
    Expr belongs_;
};

NodePtr at_places(const Node& scatter) {
    if (const NodePtr list = list_of_last(scatter))
        return AtPlaces(list, scatter.type.shape, scatter.where).last_position();
    return AtPlaces(scatter.inputs[1], scatter.type.shape, scatter.where).sum(scatter.inputs[0]);
}

// A scatter by a list of keys that has been a matrix of them, or more, before it was joined with others.
NodePtr by_keys_of_axes(const NodePtr& terms, const NodePtr& list, const Node& scatter) {
    NodePtr keys = list->op == cast_op() ? list->inputs[0] : list, own = terms;
    if (keys->op == reshape_op()) {
        keys = keys->inputs[0];
        Shape shape = keys->type.shape;
        shape.insert(shape.end(), terms->type.shape.begin() + 1, terms->type.shape.end());
        own = make_reshape(terms, shape, scatter.where);
    }
    return make_node(scatter_op(), {own, keys}, scatter.attributes, scatter.where);
}

// Whether rules have joined scatters to one table into one by several lists of keys.
bool has_several_lists(const Node& scatter) {
    const NodePtr &terms = scatter.inputs[0], &keys = scatter.inputs[1];
    return keys->op == concat_op() && terms->op == concat_op() &&
           terms->inputs.size() == keys->inputs.size() && terms->attributes == keys->attributes;
}

// Of a scatter by several lists of keys: each whose places are known by itself, added to
// that of the others. Null where there are none.
NodePtr apart_where_known(const Node& scatter) {
    const NodePtr &terms = scatter.inputs[0], &keys = scatter.inputs[1];
    if (!has_several_lists(scatter)) return nullptr;
    const auto joined = [&](const Nodes& parts) {
        return parts.size() == 1 ? parts[0] : make_node(concat_op(), parts, keys->attributes, keys->where);
    };
    Nodes known, other_terms, other_keys;
    for (std::size_t k = 0; k < keys->inputs.size(); ++k) {
        const NodePtr part = by_keys_of_axes(terms->inputs[k], keys->inputs[k], scatter);
        if (has_known_places(*part)) {
            known.push_back(part);
        } else {
            other_terms.push_back(terms->inputs[k]);
            other_keys.push_back(keys->inputs[k]);
        }
    }
    if (known.empty()) return nullptr;
    if (!other_keys.empty())
        known.push_back(make_node(scatter_op(), {joined(other_terms), joined(other_keys)}, scatter.attributes,
                                  scatter.where));
    NodePtr all = known[0];
    for (std::size_t k = 1; k < known.size(); ++k)
        all = make_node(add_op(), {all, known[k]}, {}, scatter.where);
    return all;
}

// Of several lists of keys, as rules join them, each in its turn: for each term of all lists together it
// would have to be asked of which it is. As long as they are no shorter than another pass through the table
// takes.
NodePtr at_places_of_lists(const Node& scatter) {
    constexpr std::size_t most_lists = 8;
    constexpr double rows_of_term = 4;
    const NodePtr &terms = scatter.inputs[0], &keys = scatter.inputs[1];
    if (!has_several_lists(scatter) || keys->inputs.size() > most_lists || list_of_last(scatter))
        return at_places(scatter);
    NodePtr all;
    for (std::size_t k = 0; k < keys->inputs.size(); ++k) {
        const NodePtr& list = keys->inputs[k];
        if (rows_of_term * typical_elements(*list) < typical(scatter.type.shape[0]))
            return at_places(scatter);
        const NodePtr own =
            make_node(scatter_op(), {terms->inputs[k], list}, scatter.attributes, scatter.where);
        all = all ? make_node(add_op(), {all, at_places(*own)}, {}, scatter.where) : at_places(*own);
    }
    return all;
}

}  // namespace

void sort_lookups(Graph& graph, const Target& target) {
    if (std::isinf(target.looks_of_sort)) return;
    const std::set<const Node*> changes = changes_of_variables(graph);
    std::map<std::pair<const Node*, Int>, SortedKeys> sorts;
    replace_nodes(graph, [](const NodePtr& node, const Node&) {
        return node->op == scatter_op() ? apart_where_known(*node) : nullptr;
    });
    replace_nodes(graph, [&](const NodePtr& node, const Node& before) -> NodePtr {
        if (node->op != scatter_op()) return nullptr;
        const bool changes_few = changes.contains(&before) && goes_to_few_rows(*node);
        if (!changes_few && has_known_places(*node)) return nullptr;
        if (!changes.contains(&before) && is_worth_adding(*node) &&
            !stays_from_call_to_call(node->inputs[1], graph))
            return at_places_of_lists(*node);
        if (!is_worth_sorting(*node, target)) return nullptr;
        const std::pair<const Node*, Int> key{node->inputs[1].get(), node->type.shape[0]};
        auto at = sorts.find(key);
        if (at == sorts.end())
            at = sorts.emplace(key, make_sorted(node->inputs[1], node->type.shape[0], node->where)).first;
        return make_scatter_of_sorted(node, at->second);
    });
}

}  // namespace bitale
