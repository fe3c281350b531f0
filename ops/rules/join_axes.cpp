#include "ops/rules/join_axes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/walk/traverse.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using AxisList = std::vector<std::int64_t>;

bool is_leaf(const Node& node) { return node.op->kind == OpKind::leaf; }

// Those that a reduction is over; null for other ops.
const AxisList* axes_over(const Node& node) {
    return node.op->kind == OpKind::reduce && node.attributes.find("axes")
               ? &node.attributes.get<AxisList>("axes")
               : nullptr;
}

bool scans(const NodePtr& node) { return is_named(node, {"cumsum", "cumprod", "cummax", "recurrence"}); }

bool contains(const AxisList& axes, std::size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

// Whether it is computed of leaves, some of them repeated: nothing else wants its axes as they are, as
// libraries want those of what follows a convolution.
bool is_of_leaves(const NodePtr& x, std::unordered_set<const Node*>& seen) {
    if (is_leaf(*x) || !seen.insert(x.get()).second) return true;
    if (x->op == reshape_op()) return is_leaf(*x->inputs[0]);
    return (x->op->kind == OpKind::map || x->op == expand_op()) &&
           std::all_of(x->inputs.begin(), x->inputs.end(),
                       [&](const NodePtr& input) { return is_of_leaves(input, seen); });
}

// Whether its two last axes stay, behind another one that does not, or go, and the last of them is short.
bool gains(const NodePtr& node) {
    constexpr std::int64_t is_long = 64;
    if (!reduces(node) && !scans(node)) return false;
    const AxisList axes = reduces(node) ? node->attributes.get<AxisList>("axes")
                                        : AxisList{node->attributes.get<std::int64_t>("axis")};
    const Shape& shape = node->inputs[0]->type.shape;
    const std::size_t rank = shape.size();
    if (rank < 3 || axes.empty() || contains(axes, rank - 1) != contains(axes, rank - 2)) return false;
    std::unordered_set<const Node*> seen;
    if (contains(axes, rank - 1) &&
        (is_named(node, {"argmax", "argmin"}) || !is_of_leaves(node->inputs[0], seen)))
        return false;
    const Int& last = shape.back();
    return !last.is_constant() || (last.constant() < is_long && !last.is(1));
}

// Whether the last axis is too short for lanes, and copies with the last two are small and read many times.
bool may_join_by_copies(const Shape& shape) {
    constexpr std::size_t fewest_axes = 3;
    constexpr std::int64_t is_long = 64, lanes = 16, largest_copy = 1 << 16, fewest_reads = 8,
                           worth_it = 1 << 15;
    if (shape.size() < fewest_axes) return false;
    const Int &last = shape.back(), &before = shape[shape.size() - 2];
    if (!last.is_constant() || !before.is_constant() || last.is(1) || before.is(1) ||
        last.constant() >= is_long || last.constant() % lanes == 0)
        return false;
    const std::int64_t copy = last.constant() * before.constant();
    double reads = 1;
    for (std::size_t d = 0; d + 2 < shape.size(); ++d) reads *= static_cast<double>(shape[d].range().high);
    return copy <= largest_copy && reads >= fewest_reads && reads * static_cast<double>(copy) >= worth_it;
}

// Whether x, repeated to the shape, has a single axis of the last two, and may have a copy with both of them.
// Axes before them that x has would leave nothing to repeat.
bool may_be_copied(const Shape& shape, const NodePtr& x) {
    const Shape& own = x->type.shape;
    const std::size_t rank = shape.size(), missing = rank - own.size(), last_two = rank - 2;
    const auto has = [&](std::size_t d) { return d >= missing && !own[d - missing].is(1); };
    for (std::size_t d = 0; d < last_two; ++d)
        if (has(d)) return false;
    return has(last_two) != has(last_two + 1) && may_join_by_copies(shape);
}

bool repeats_for_copy(const NodePtr& node) {
    return (node->op->kind == OpKind::map || node->op == expand_op()) && node->type.rank() > 2 &&
           std::any_of(node->inputs.begin(), node->inputs.end(), [&](const NodePtr& x) {
               return x->type.rank() > 0 && may_be_copied(node->type.shape, x);
           });
}

// Sets of pairs of neighbouring axes, of which all are joined or none.
class Pairs {
  public:
    explicit Pairs(std::size_t count) : parent_(count), refused_(count, false), wanted_(count, false) {
        std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    }
    void unite(std::size_t a, std::size_t b) {
        a = root(a);
        b = root(b);
        if (a == b) return;
        parent_[b] = a;
        refused_[a] = refused_[a] || refused_[b];
        wanted_[a] = wanted_[a] || wanted_[b];
    }
    void refuse(std::size_t a) { refused_[root(a)] = true; }
    void want(std::size_t a) { wanted_[root(a)] = true; }
    bool refused(std::size_t a) { return refused_[root(a)]; }
    bool joined(std::size_t a) { return wanted_[root(a)] && !refused(a); }

  private:
    std::size_t root(std::size_t a) {
        while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
        return a;
    }
    std::vector<std::size_t> parent_;
    std::vector<bool> refused_, wanted_;
};

// Which of its axes is each axis of the result; nothing for those that have none.
using AxesFrom = std::vector<std::optional<std::size_t>>;

AxesFrom same_axes(std::size_t rank) {
    AxesFrom from(rank);
    for (std::size_t d = 0; d < rank; ++d) from[d] = d;
    return from;
}

AxesFrom axes_of_reduction(const Node& node) {
    const auto& axes = node.attributes.get<AxisList>("axes");
    AxesFrom from;
    for (std::size_t d = 0; d < node.inputs[0]->type.shape.size(); ++d)
        if (!contains(axes, d)) from.emplace_back(d);
    return from;
}

// Axes that are kept, of a reshape that adds or takes away axes of length 1.
AxesFrom axes_of_reshape(const Shape& from, const Shape& to) {
    AxesFrom axes(to.size());
    std::vector<std::size_t> longer;
    for (std::size_t d = 0; d < from.size(); ++d)
        if (!from[d].is(1)) longer.push_back(d);
    std::size_t next = 0;
    for (std::size_t d = 0; d < to.size(); ++d) {
        if (to[d].is(1)) continue;
        if (next == longer.size() || !(from[longer[next]] == to[d])) return AxesFrom(to.size());
        axes[d] = longer[next++];
    }
    return axes;
}

class Joiner {
  public:
    explicit Joiner(Nodes order) : order_(std::move(order)), pairs_(number_pairs()) {
        for (const NodePtr& node : order_) constrain(node);
        for (const auto& [user, result] : of_reductions_)
            if (!pairs_.refused(user) && !pairs_.refused(result)) pairs_.unite(user, result);
    }

    void run(Graph& graph) {
        bool any = false;
        for (std::size_t i = 0; i < count_ && !any; ++i) any = pairs_.joined(i);
        if (!any) return;
        for (const NodePtr& node : order_) now_[node.get()] = made(node);
        Nodes roots = graph.roots();
        for (NodePtr& root : roots) root = make_reshape(now_.at(root.get()), root->type.shape, root->where);
        graph.set_roots(roots);
    }

  private:
    std::size_t number_pairs() {
        for (const NodePtr& node : order_) {
            first_[node.get()] = count_;
            count_ += std::max<std::size_t>(node->type.shape.size(), 1) - 1;
        }
        return count_;
    }
    // Of the axes d and d + 1.
    std::size_t pair(const Node& node, std::size_t d) const { return first_.at(&node) + d; }
    void refuse_all(const Node& node) {
        for (std::size_t d = 0; d + 1 < node.type.shape.size(); ++d) pairs_.refuse(pair(node, d));
    }

    // Each user of a leaf has a view of its own, and of what a reduction gives where the user walks its axes
    // by themselves.
    static bool has_views(const NodePtr& x) { return is_leaf(*x) || reduces(x); }

    void refuse_operand(const NodePtr& x, std::size_t d) {
        if (!has_views(x)) pairs_.refuse(pair(*x, d));
    }

    void follow_pair(const Node& node, std::size_t d, const NodePtr& x, std::size_t of_x) {
        if (reduces(x))
            of_reductions_.emplace_back(pair(node, d), pair(*x, of_x));
        else if (!is_leaf(*x))
            pairs_.unite(pair(node, d), pair(*x, of_x));
    }

    // Neighbours of the result are neighbours of the operand, or stay apart in both.
    void follow(const Node& node, const NodePtr& x, const AxesFrom& from) {
        std::vector<bool> met(std::max<std::size_t>(x->type.shape.size(), 1), false);
        for (std::size_t d = 0; d + 1 < from.size(); ++d) {
            const std::size_t first = *from[d];
            if (*from[d + 1] == first + 1) {
                met[first] = true;
                follow_pair(node, d, x, first);
            } else {
                pairs_.refuse(pair(node, d));
            }
        }
        const AxisList* over = axes_over(node);
        for (std::size_t d = 0; d + 1 < x->type.shape.size(); ++d)
            if (!met[d] && !(over && contains(*over, d) && contains(*over, d + 1))) refuse_operand(x, d);
    }

    // The same where x is repeated along axes that it lacks, or has with length 1: an axis that is repeated
    // stays apart from one that is not.
    void follow_repeated(const Node& node, const NodePtr& x) {
        const Shape& shape = x->type.shape;
        const std::size_t rank = node.type.shape.size(), missing = rank - shape.size();
        const auto repeats = [&](std::size_t d) {
            return d < missing || (shape[d - missing].is(1) && !node.type.shape[d].is(1));
        };
        const bool copied = rank > 2 && may_be_copied(node.type.shape, x);
        for (std::size_t d = 0; d + 1 < rank; ++d) {
            const bool has_both = d >= missing;
            if (d + 2 == rank && copied) {
                pairs_.want(pair(node, d));
                if (!has_views(x)) refuse_all(*x);
            } else if (d + 3 == rank && copied) {
                pairs_.refuse(pair(node, d));  // the copy has the second axis alone
            } else if (repeats(d) != repeats(d + 1)) {
                pairs_.refuse(pair(node, d));
                if (has_both) refuse_operand(x, d - missing);
            } else if (has_both) {
                follow_pair(node, d, x, d - missing);
            }
        }
    }

    void keep_apart(const Node& node, std::size_t axis) {
        if (axis > 0) pairs_.refuse(pair(node, axis - 1));
        if (axis + 1 < node.type.shape.size()) pairs_.refuse(pair(node, axis));
    }

    void constrain(const NodePtr& node) {
        if (is_leaf(*node)) return;
        const std::size_t rank = node->type.shape.size();
        if (node->op->kind == OpKind::map) {
            for (const NodePtr& x : node->inputs)
                if (x->type.rank() > 0) follow_repeated(*node, x);
        } else if (node->op == expand_op()) {
            follow_repeated(*node, node->inputs[0]);
        } else if (node->op == reshape_op()) {
            along_reshape(*node);
        } else if (reduces(node)) {
            const NodePtr& x = node->inputs[0];
            const std::size_t last = x->type.shape.size() - 1;
            follow(*node, x, axes_of_reduction(*node));
            if (!gains(node)) return;
            if (!contains(*axes_over(*node), last))
                pairs_.want(pair(*node, rank - 2));
            else if (!is_leaf(*x))
                pairs_.want(pair(*x, last - 1));
        } else if (scans(node)) {
            const auto axis = node->attributes.get<std::int64_t>("axis");
            for (const NodePtr& x : node->inputs) follow(*node, x, same_axes(rank));
            keep_apart(*node, static_cast<std::size_t>(axis));
            if (gains(node)) pairs_.want(pair(*node, rank - 2));
        } else if (node->op == permute_op()) {
            AxesFrom from;
            for (const std::int64_t axis : node->attributes.get<AxisList>("axes"))
                from.emplace_back(static_cast<std::size_t>(axis));
            follow(*node, node->inputs[0], from);
        } else if (is_named(node, {"flip", "concat"})) {
            for (const NodePtr& x : node->inputs) follow(*node, x, same_axes(rank));
            keep_apart(*node, static_cast<std::size_t>(node->attributes.get<std::int64_t>("axis")));
        } else if (node->op == slice_op()) {
            follow(*node, node->inputs[0], same_axes(rank));
            for (std::size_t d = 0; d < rank; ++d)
                if (!takes_axis(*node, d)) keep_apart(*node, d);
        } else {
            refuse_all(*node);
            for (const NodePtr& x : node->inputs)
                if (!has_views(x)) refuse_all(*x);
        }
    }

    // Axes of x, and those of what repeats it, counted from the end.
    static AxesFrom repeated_from(const Node& x, const Shape& shape) {
        const std::size_t missing = shape.size() - x.type.shape.size();
        AxesFrom from(shape.size());
        for (std::size_t d = missing; d < shape.size(); ++d) from[d] = d - missing;
        return from;
    }

    bool takes_axis(const Node& slice, std::size_t d) const {
        const Int& length = slice.inputs[0]->type.shape[d];
        return slice.attributes.get<std::vector<Int>>("start")[d].is(0) &&
               slice.attributes.get<AxisList>("step")[d] == 1 &&
               slice.attributes.get<std::vector<Int>>("count")[d] == length;
    }

    void along_reshape(const Node& node) {
        const NodePtr& x = node.inputs[0];
        const AxesFrom from = axes_of_reshape(x->type.shape, node.type.shape);
        for (std::size_t d = 0; d + 1 < from.size(); ++d)
            if (from[d] && from[d + 1] && *from[d + 1] == *from[d] + 1) follow_pair(node, d, x, *from[d]);
    }

    // ---- the graph with joined axes

    // The number of each axis when those that are joined with the next are one; after the last one, how many
    // there are.
    static std::vector<std::size_t> numbers(const std::vector<bool>& joined) {
        std::vector<std::size_t> r;
        std::size_t next = 0;
        for (std::size_t d = 0; d < joined.size(); ++d) {
            r.push_back(next);
            if (!joined[d]) ++next;
        }
        r.push_back(next);
        return r;
    }

    std::vector<bool> joined_axes(const Node& node) {
        std::vector<bool> joined(node.type.shape.size(), false);
        for (std::size_t d = 0; d + 1 < joined.size(); ++d) joined[d] = pairs_.joined(pair(node, d));
        return joined;
    }

    // Those of the operand, of whose axes `from` names each axis of the result.
    std::vector<bool> joined_axes(const Node& node, const NodePtr& x, const AxesFrom& from) {
        std::vector<bool> joined(x->type.shape.size(), false), met = joined;
        for (std::size_t d = 0; d + 1 < from.size(); ++d)
            if (from[d] && from[d + 1] && *from[d + 1] == *from[d] + 1) {
                met[*from[d]] = true;
                joined[*from[d]] = pairs_.joined(pair(node, d));
            }
        // Two that a reduction is over are as they come.
        const AxisList* over = axes_over(node);
        for (std::size_t d = 0; over && d + 1 < joined.size(); ++d)
            if (!met[d] && contains(*over, d) && contains(*over, d + 1) && !is_leaf(*x))
                joined[d] = pairs_.joined(pair(*x, d));
        return joined;
    }

    static Shape joined_shape(const Shape& shape, const std::vector<bool>& joined) {
        const std::vector<std::size_t> number = numbers(joined);
        Shape r(number.back(), Int(1));
        for (std::size_t d = 0; d < shape.size(); ++d) r[number[d]] = r[number[d]] * shape[d];
        return r;
    }

    // What the operand has become, as the node reads it.
    NodePtr operand(const NodePtr& x, const std::vector<bool>& joined) {
        const NodePtr& own = now_.at(x.get());
        const Shape shape = joined_shape(x->type.shape, joined);
        if (own->type.shape == shape) return own;
        BITALE_CHECK(has_views(x), "axes that are joined in one reader only");
        for (const NodePtr& view : views_[x.get()])
            if (view->type.shape == shape) return view;
        return views_[x.get()].emplace_back(make_reshape(own, shape, x->where));
    }
    NodePtr operand(const Node& node, const NodePtr& x, const AxesFrom& from) {
        return operand(x, joined_axes(node, x, from));
    }

    // An operand that is repeated to the node's axes.
    NodePtr repeated_operand(const Node& node, const NodePtr& x, const std::vector<bool>& joined) {
        if (x->type.rank() == 0) return now_.at(x.get());
        const Shape& shape = node.type.shape;
        const std::size_t rank = shape.size();
        if (rank < 3 || !joined[rank - 2] || !may_be_copied(shape, x))
            return operand(node, x, repeated_from(*x, shape));
        Shape both(rank, Int(1));
        both[rank - 2] = shape[rank - 2];
        both[rank - 1] = shape[rank - 1];
        NodePtr& copy = copies_[x.get()][text_of(both)];
        if (!copy)
            copy = make_repeated_copy(operand(x, std::vector<bool>(x->type.shape.size(), false)), both,
                                      x->where);
        return make_reshape(copy, joined_shape(both, joined), x->where);
    }

    NodePtr made(const NodePtr& node) {
        if (is_leaf(*node)) return node;
        const std::vector<bool> joined = joined_axes(*node);
        const std::vector<std::size_t> own = numbers(joined);
        const std::size_t rank = node->type.shape.size();
        Attributes attributes = node->attributes;
        Nodes inputs;
        if (node->op->kind == OpKind::map || node->op == expand_op()) {
            for (const NodePtr& x : node->inputs) inputs.push_back(repeated_operand(*node, x, joined));
            if (node->op == expand_op()) attributes.set("shape", joined_shape(node->type.shape, joined));
        } else if (node->op == reshape_op()) {
            inputs = {now_.at(node->inputs[0].get())};
            Shape shape = joined_shape(node->type.shape, joined);
            if (inputs[0]->type.shape == shape) return inputs[0];
            attributes.set("shape", std::move(shape));
        } else if (reduces(node)) {
            const std::vector<bool> of_operand =
                joined_axes(*node, node->inputs[0], axes_of_reduction(*node));
            inputs = {operand(node->inputs[0], of_operand)};
            attributes.set("axes", numbered(node->attributes.get<AxisList>("axes"), of_operand));
        } else if (scans(node) || is_named(node, {"flip", "concat"})) {
            for (const NodePtr& x : node->inputs) inputs.push_back(operand(*node, x, same_axes(rank)));
            attributes.set("axis", numbered({node->attributes.get<std::int64_t>("axis")}, joined)[0]);
        } else if (node->op == permute_op()) {
            return turned(node, joined);
        } else if (node->op == slice_op()) {
            inputs = {operand(*node, node->inputs[0], same_axes(rank))};
            cut(attributes, *node, own);
        } else {
            for (const NodePtr& x : node->inputs)
                inputs.push_back(operand(x, std::vector<bool>(x->type.shape.size(), false)));
        }
        if (inputs == node->inputs && own.back() == rank) return node;
        return with_attributes(node, std::move(inputs), std::move(attributes));
    }

    // Numbers of axes when those that are joined are one.
    static AxisList numbered(const AxisList& axes, const std::vector<bool>& joined) {
        const std::vector<std::size_t> number = numbers(joined);
        AxisList r;
        for (const std::int64_t axis : axes)
            r.push_back(static_cast<std::int64_t>(number[static_cast<std::size_t>(axis)]));
        r.erase(std::unique(r.begin(), r.end()), r.end());
        return r;
    }

    NodePtr turned(const NodePtr& node, const std::vector<bool>& joined) {
        const auto& axes = node->attributes.get<AxisList>("axes");
        AxesFrom from;
        for (const std::int64_t axis : axes) from.emplace_back(static_cast<std::size_t>(axis));
        NodePtr x = operand(*node, node->inputs[0], from);
        if (x == node->inputs[0]) return node;
        // The first axes of what is joined, in the order of the result, numbered in the order of the operand.
        AxisList firsts;
        for (std::size_t d = 0; d < axes.size(); ++d)
            if (d == 0 || !joined[d - 1]) firsts.push_back(axes[d]);
        AxisList sorted = firsts;
        std::sort(sorted.begin(), sorted.end());
        for (std::int64_t& axis : firsts)
            axis = std::find(sorted.begin(), sorted.end(), axis) - sorted.begin();
        if (std::is_sorted(firsts.begin(), firsts.end())) return x;
        Attributes attributes = node->attributes;
        attributes.set("axes", firsts);
        return with_attributes(node, {std::move(x)}, std::move(attributes));
    }

    static void cut(Attributes& attributes, const Node& node, const std::vector<std::size_t>& own) {
        const auto &start = node.attributes.get<std::vector<Int>>("start"),
                   &count = node.attributes.get<std::vector<Int>>("count");
        const auto& step = node.attributes.get<AxisList>("step");
        // Of joined axes all is taken.
        std::vector<Int> starts(own.back(), Int(0)), counts(own.back(), Int(1));
        AxisList steps(own.back(), 1);
        for (std::size_t d = 0; d < start.size(); ++d) {
            starts[own[d]] = start[d];
            counts[own[d]] = counts[own[d]] * count[d];
            steps[own[d]] = step[d];
        }
        attributes.set("start", starts);
        attributes.set("count", counts);
        attributes.set("step", steps);
    }

    const Nodes order_;
    std::size_t count_ = 0;
    std::vector<std::pair<std::size_t, std::size_t>> of_reductions_;  // pairs of a user, and of what it reads
    std::unordered_map<const Node*, std::size_t> first_;
    Pairs pairs_;
    NodeMap now_;
    std::unordered_map<const Node*, Nodes> views_;                            // of leaves
    std::unordered_map<const Node*, std::map<std::string, NodePtr>> copies_;  // by their shape
};

}  // namespace

void join_axes(Graph& graph) {
    Nodes order = topological(graph.roots());
    const auto asks = [](const NodePtr& node) { return gains(node) || repeats_for_copy(node); };
    if (std::any_of(order.begin(), order.end(), asks)) Joiner(std::move(order)).run(graph);
}

}  // namespace bitale
