// x[...]: numbers, slices, ranges and integer tensors in brackets become slice, rows and gather nodes.
#include <algorithm>
#include <numeric>

#include "graph/walk/length.h"
#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// An index or a bound: a number for shapes, and where it changes from call to call also a value for kernels,
// which must not be rebuilt for it.
struct Position {
    Int length;
    Expr value;           // int64; null: the length says it all
    bool within = false;  // known not to exceed the axis
    bool is_value() const { return !value.is_null(); }
};

bool reads_arguments(const NodePtr& node) {
    const Nodes nodes = topological({node});
    return std::any_of(nodes.begin(), nodes.end(), [](const NodePtr& n) { return n->op == input_op(); });
}

Position position_of(const Expr& e, const Int& length, Where where) {
    if (length.is_constant() || !reads_arguments(e.node())) return {length, {}, false};
    return {length, cast(e, DType::int64, where), false};
}

// The bound with negative numbers counted from the end, not below `lowest`.
Position from_end(const Position& bound, const Int& extent, std::int64_t lowest, Where where) {
    const Int& b = bound.length;
    Position r;
    if (b.non_negative())
        r.length = b;
    else if (b.range().high < 0)
        r.length = max(b + extent, lowest);
    else
        r.length = max(b + extent * min(max(-b, 0), 1), lowest);  // + extent where b is negative
    if (bound.is_value()) {
        const Expr& v = bound.value;
        const Expr wrapped =
            bitale::where(Arg(Arg(v, where) < Arg(0, where), where),
                          Arg(Arg(v, where) + Arg(expr_of(extent, where), where), where), Arg(v, where));
        r.value = maximum(Arg(b.non_negative() ? v : wrapped, where), Arg(lowest, where));
    }
    return r;
}

Position at_most(const Position& x, const Int& limit, Where where) {
    Position r = x;
    if (x.within) return r;
    r.length = min(x.length, limit);
    if (x.is_value()) r.value = minimum(Arg(x.value, where), Arg(expr_of(limit, where), where));
    return r;
}

// f on the axes in an order in which `axis` comes first.
template <class F>
Expr with_axis_first(const Expr& x, int axis, Where where, F&& f) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
    std::vector<std::int64_t> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    return wrap(make_permute(f(wrap(make_permute(x.node(), order, where))).node(), back, where));
}

Expr rows_at(const Expr& x, int axis, const Expr& start, const Int& count, bool clipped, Where where,
             const Places& places = {}) {
    return with_axis_first(x, axis, where, [&](const Expr& first) {
        Attributes attributes{{"count", count}, {"clipped", clipped}};
        if (!places.empty()) attributes.set("places", places);
        return apply(rows_op(), {first, start}, attributes, where);
    });
}

// `count` elements from `first` on, which is in range.
Expr part(const Expr& x, int axis, const Position& first, const Int& count, Where where,
          const Places& places = {}) {
    if (first.is_value()) return rows_at(x, axis, first.value, count, true, where, places);
    return wrap(make_slice(x.node(), axis, first.length, count, 1, where, places));
}

// A start that changes from call to call and lies behind the last element is a mistake, a minibatch too many,
// where the slice as it is written has elements at all.
Places places_of(const Position& start, const Position& written_stop, const Int& extent) {
    if (start.length.is_constant()) return {};
    const Int some = min(max(written_stop.length - start.length, 0), 1);
    return {start.length * some + 1, max(extent, 1)};
}

Position bound_of(const Expr& e, Where where) {
    const std::optional<Int> length = length_of(e.node());
    if (!is_integer(e.dtype()) || e.rank() != 0)
        type_error(where, "x[Slice]", "the bound " + describe(*e.node()) + " must be an integer scalar");
    if (!length)
        throw GraphError(
            where, "x[Slice]: the bound " + describe(*e.node()) +
                       " is known on the device only, so the length of the result would not be known at "
                       "the call; write rows(x, start, count) with a count that is");
    return position_of(e, *length, where);
}

Expr slice_axis(const Expr& x, int axis, const Slice& slice, Where where) {
    const Int extent = type_of(x).shape[static_cast<std::size_t>(axis)];
    // Steps beyond any length take one element, and are added to lengths.
    constexpr std::int64_t longest = std::int64_t{1} << 62;
    const std::int64_t step = std::clamp(slice.step, -longest, longest);
    if (step == 0) throw IndexError(where, "x[Slice]: the step cannot be 0");
    if (step > 0) {
        Position start{0, {}, true}, stop{extent, {}, true};
        if (slice.start) start = from_end(bound_of(*slice.start, where), extent, 0, where);
        if (slice.stop) stop = from_end(bound_of(*slice.stop, where), extent, 0, where);
        const Places places = places_of(start, stop, extent);
        if (slice.stop) stop = at_most(stop, extent, where);
        Int span = max(stop.length - start.length, 0);
        // Clipping never makes a part longer, so a minibatch has a bound that plans can use.
        if (slice.start && slice.stop) {
            const Int most = bound_of(*slice.stop, where).length - bound_of(*slice.start, where).length;
            if (most.is_constant() && most.constant() >= 0) span = min(span, most);
        }
        if (!start.is_value())  // a start behind the end takes no elements: it need not be clipped
            return wrap(make_slice(x.node(), axis, start.length, ceildiv(span, step), step, where, places));
        const Expr all = part(x, axis, at_most(start, extent, where), span, where, places);
        return wrap(make_slice(all.node(), axis, 0, ceildiv(span, step), step, where));
    }
    const Int last = extent - 1;
    Position start{last, {}, true}, stop{-1, {}, true};
    if (slice.start) start = at_most(from_end(bound_of(*slice.start, where), extent, -1, where), last, where);
    if (slice.stop) stop = from_end(bound_of(*slice.stop, where), extent, -1, where);
    const Int span = max(start.length - stop.length, 0), count = ceildiv(span, -step);
    if (!start.is_value() && !stop.is_value())
        return wrap(make_slice(x.node(), axis, start.length, count, step, where));
    Position first = at_most(stop, last, where);
    first.length = first.length + 1;
    if (first.is_value()) first.value = Arg(first.value, where) + Arg(1, where);
    return wrap(make_slice(part(x, axis, first, span, where).node(), axis, span - 1, count, step, where));
}

Expr drop_axis(const Expr& x, int axis, Where where) {
    Shape shape = type_of(x).shape;
    shape.erase(shape.begin() + axis);
    return reshape_to(x, shape, where);
}

Expr element_of_axis(const Expr& x, int axis, const Expr& index, Where where) {
    const Int& extent = type_of(x).shape[static_cast<std::size_t>(axis)];
    if (const std::optional<Int> length = length_of(index.node())) {
        const Position at = position_of(index, *length, where);
        if (!at.is_value()) {
            const Int start = at.length.range().high < 0 ? at.length + extent : at.length;
            if (start.range().high < 0 || (extent - start).range().high <= 0)
                throw IndexError(where, "index " + at.length.text() + " is out of range for axis " +
                                            std::to_string(axis) + " of " + describe(*x.node()) +
                                            ", whose length is " + extent.text());
            return drop_axis(wrap(make_slice(x.node(), axis, start, 1, 1, where)), axis, where);
        }
    }
    return drop_axis(rows_at(x, axis, index, 1, false, where), axis, where);
}

// The axes of the indices stand where the axis was.
Expr list_on_axis(const Expr& x, int axis, const Expr& index, Where where) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank())), back;
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
    const Expr found = gather(wrap(make_permute(x.node(), order, where)), index, where);
    for (int d = 0; d < found.rank(); ++d)
        back.push_back(d < axis ? index.rank() + d : d < axis + index.rank() ? d - axis : d);
    return wrap(make_permute(found.node(), back, where));
}

Expr index_axis(const Expr& x, int axis, const Expr& index, Where where) {
    require_present("x[...]", {&index}, where);
    if (!is_integer(index.dtype()))
        type_error(where, "x[...]",
                   "the index " + describe(*index.node()) + " must have an integer dtype" +
                       (index.dtype() == DType::boolean ? "; a mask is not an index: use where"
                                                        : "; write " + cast_text(index.node(), int64)));
    if (index.rank() == 0) return element_of_axis(x, axis, index, where);
    if (index.node()->op == range_op())
        return with_axis_first(x, axis, where, [&](const Expr& first) {
            return rows(first, wrap(index.node()->inputs[0]), expr_of(index.node()->type.shape[0], where),
                        where);
        });
    return axis == 0 ? gather(x, index, where) : list_on_axis(x, axis, index, where);
}

bool is_list(const Index::Item& item) {
    return item.kind == Index::Item::Kind::expr && !item.expr.is_null() && item.expr.rank() > 0 &&
           item.expr.node()->op != range_op();
}

bool is_one(const Index::Item& item) {
    return item.kind == Index::Item::Kind::expr && !item.expr.is_null() && item.expr.rank() == 0;
}

// NumPy takes pairs of elements where two tensors stand, and puts the axes of a tensor first that a slice
// keeps apart from a number: neither is a part of x.
void require_one_list(const Expr& x, const Index& at) {
    const auto first = std::find_if(at.items.begin(), at.items.end(), is_list);
    if (first == at.items.end()) return;
    if (const auto second = std::find_if(first + 1, at.items.end(), is_list); second != at.items.end())
        throw IndexError(
            at.where, "x[...]: integer tensors stand on axes " + std::to_string(first - at.items.begin()) +
                          " and " + std::to_string(second - at.items.begin()) + " of " + describe(*x.node()) +
                          "; only one index may be one: for one element of each row write sum(x * "
                          "one_hot(labels, classes), 1), for rows and columns x[rows][{colon, columns}]");
    if (first == at.items.begin()) return;
    for (auto one = at.items.begin(); one != at.items.end(); ++one) {
        if (!is_one(*one)) continue;
        const auto [low, high] = std::minmax(one, first);
        if (std::all_of(low + 1, high, is_one)) continue;
        const auto axis = [&](auto item) { return std::to_string(item - at.items.begin()); };
        throw IndexError(at.where,
                         "x[...]: the number on axis " + axis(one) + " and the integer tensor on axis " +
                             axis(first) + " of " + describe(*x.node()) +
                             " have slices between them, where NumPy puts the tensor's axes first; "
                             "write two indices, the number first: x[{0, colon}][{colon, indices}]");
    }
}

}  // namespace

Expr Expr::operator[](const Index& at) const try {
    require_present("x[...]", {this}, at.where);
    if (static_cast<int>(at.items.size()) > rank())
        throw IndexError(
            at.where, describe(*node()) + (rank() ? " has only " + std::to_string(rank()) + " axes, but " +
                                                        std::to_string(at.items.size()) + " indices are given"
                                                  : std::string(" is a scalar and cannot be indexed")));
    require_one_list(*this, at);
    Expr r = *this;
    // From the last axis on: axes that disappear do not move those still to come. The tensor is last, of
    // elements that are left.
    for (std::size_t i = at.items.size(); i-- > 0;) {
        const Index::Item& item = at.items[i];
        const auto axis = static_cast<int>(i);
        if (item.kind == Index::Item::Kind::slice)
            r = slice_axis(r, axis, item.slice, at.where);
        else if (item.kind == Index::Item::Kind::expr && !is_list(item))
            r = index_axis(r, axis, item.expr, at.where);
    }
    const auto list = std::find_if(at.items.begin(), at.items.end(), is_list);
    if (list == at.items.end()) return r;
    const auto dropped = std::count_if(at.items.begin(), list, is_one);
    return index_axis(r, static_cast<int>(list - at.items.begin() - dropped), list->expr, at.where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr Shared::operator[](const Index& at) const { return Expr(*this, at.where)[at]; }

Expr rows(const Expr& x, const Expr& start, const Expr& count, Where where) try {
    require_present("rows", {&x, &start, &count}, where);
    const Int length = length_from(count, "rows", where);
    const std::optional<Int> first = length_of(start.node());
    if (x.rank() > 0 && first && first->is_constant() && length.is_constant() &&
        type_of(x).shape[0].is_constant()) {
        // Let rows judge the numbers, then take the plainer node.
        make_node(rows_op(), {x.node(), start.node()}, {{"count", length}, {"clipped", false}}, where);
        return wrap(make_slice(x.node(), 0, *first, length, 1, where));
    }
    return apply(rows_op(), {x, start}, {{"count", length}, {"clipped", false}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
