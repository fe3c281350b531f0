// What users call to put elements in order: sort, argsort and topk, along any axis.
#include <numeric>

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/shape/sort.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// By the name of what the user called, in messages and reports.
NodePtr titled(const char* title, const NodePtr& node) {
    const_cast<Node*>(node.get())->title = title;  // not shared yet
    return node;
}

// The tensor with the axis last, or flat without one; `back` leads from there to the tensor's own order.
struct Along {
    NodePtr x;
    std::vector<std::int64_t> back;
    const char* op;
    Where where;

    Expr returned(const NodePtr& node) const { return wrap(titled(op, make_permute(node, back, where))); }
};

Along along(const Expr& x, std::optional<int> axis, const char* op, Where where) {
    require_present(op, {&x}, where);
    if (!axis) return {make_reshape(x.node(), {count_of(type_of(x).shape)}, where), {0}, op, where};
    const int own = checked_axis(*axis, x, op, where);
    std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank())), back(order.size());
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + own);
    order.push_back(own);
    for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    return {make_permute(x.node(), order, where), back, op, where};
}

NodePtr taken(const NodePtr& x, const NodePtr& positions, Where where) {
    const bool permutation = positions->type.shape.back() == x->type.shape.back();
    return make_node(take_along_op(), {x, positions}, {{"permutation", permutation}}, where);
}

}  // namespace

Expr sort(const Expr& x, std::optional<int> axis, SortOptions options, Where where) try {
    const Along rows = along(x, axis, "sort", where);
    const NodePtr order = titled(
        "sort", make_argsort(rows.x, rows.x->type.shape.back(), options.descending, DType::int64, where));
    return rows.returned(titled("sort", taken(rows.x, order, where)));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr argsort(const Expr& x, std::optional<int> axis, SortOptions options, Where where) try {
    const Along rows = along(x, axis, "argsort", where);
    return rows.returned(
        make_argsort(rows.x, rows.x->type.shape.back(), options.descending, DType::int64, where));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

TopK topk(const Expr& x, const Expr& k, std::optional<int> axis, TopKOptions options, Where where) try {
    const Along rows = along(x, axis, "topk", where);
    const Int count = length_from(k, "topk", where);
    if ((rows.x->type.shape.back() - count).range().high < 0 || count.range().high < 0)
        throw ShapeError(where, "topk: " + count.text() + " elements of an axis of " +
                                    rows.x->type.shape.back().text() + " in " + describe(*x.node()) +
                                    "; ask for 0 up to as many as there are");
    const NodePtr order = titled("topk", make_argsort(rows.x, count, !options.smallest, DType::int64, where));
    return {rows.returned(titled("topk", taken(rows.x, order, where))), rows.returned(order)};
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
