// Expr: the handle of a node.
#include "bitale/expr.h"

#include "bitale/function.h"
#include "graph/base/lines.h"
#include "graph/ir/node.h"
#include "graph/show/debugprint.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"

namespace bitale {

Expr::Expr(const Shared& s, Where where)
    : node_(expressing([&] { return make_shared_node(s.state(), where); })) {}

Expr::Expr(const Array& constant, bool weak, Where where)
    : node_(expressing([&] { return make_constant(constant, where); })), weak_(weak) {}

std::vector<Index::Item> Index::list_of(std::initializer_list<Item> items) {
    return expressing([&] { return std::vector<Item>(items); });
}

namespace {

const NodePtr& present(const NodePtr& node, Where where) {
    if (!node)
        throw GraphError(of_user(where),
                         "an empty expression is used, or one that was moved from; assign it before");
    return node;
}

}  // namespace

const std::shared_ptr<const Node>& Expr::node() const { return present(node_, {}); }

DType Expr::dtype(Where where) const { return present(node_, where)->type.dtype; }
int Expr::rank(Where where) const { return present(node_, where)->type.rank(); }
std::string Expr::shape_text(Where where) const {
    return expressing([&] { return text_of(present(node_, where)->type.shape); });
}
Where Expr::where() const { return node()->where; }

Expr Expr::length(int axis, Where where) const try {
    const int i = checked_axis(axis, *this, "length", where);
    return expr_of(node()->type.shape[static_cast<std::size_t>(i)], where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr Expr::named(const std::string& name, Where where) const try {
    const NodePtr& old = present(node_, where);
    // A variable is known by its identity: a copy would be another one. An alias has the same value.
    if (old->op == input_op())
        return Expr(make_node(cast_op(), {old}, {{"dtype", old->type.dtype}}, old->where, name));
    auto copy = std::make_shared<Node>(*old);
    copy->name = name;
    return Expr(std::move(copy), weak_);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

std::string debugprint(const Expr& x) {
    return expressing([&] { return debugprint(Nodes{x.node()}); });
}

}  // namespace bitale
