// set_subtensor and inc_subtensor: x with another value, or with something added, where x[...] reads.
//
// x[...] is a chain of views. From its end to its begin, each view that takes a part gets a node that puts
// the part back, and each that only moves elements is undone:
//
//     x[{i, Slice{a, b}}] = reshape(rows(slice(x)))   ->   set_slice(x, set_rows(slice(x), reshape(y)))
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "bitale/ops.h"
#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/promotion.h"
#include "ops/shape/gather.h"
#include "ops/shape/lengths.h"
#include "ops/shape/slice.h"
#include "ops/shape/slice_places.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// The views from x to the part, the first one first.
Nodes views_between(const NodePtr& x, NodePtr part) {
    Nodes views;
    for (; part != x; part = part->inputs[0]) {
        BITALE_CHECK(part->op->kind == OpKind::view, "an index that is no view");
        views.insert(views.begin(), part);
    }
    return views;
}

// The new value with the dtype of x and the shape of the part.
Expr fitted(const Expr& y, const NodePtr& x, const Type& part, const char* op, Where where) {
    const Expr typed = strengthen(y, x->type.dtype, where);
    const std::optional<DType> common = promote(x->type.dtype, typed.dtype(), options().promotion);
    if (typed.dtype() != x->type.dtype && common != x->type.dtype)
        type_error(where, op,
                   "the new value " + describe(*typed.node()) + " does not go into " + describe(*x) +
                       " without loss; write " + cast_text(typed.node(), x->type.dtype));
    if (typed.rank() > static_cast<int>(part.shape.size()))
        throw ShapeError(where, std::string(op) + ": the new value " + describe(*typed.node()) +
                                    " has more axes than the part " + text_of(part.shape) + " of " +
                                    describe(*x) + " that it is for");
    return expand_to(cast(typed, x->type.dtype, where), part.shape, where);
}

class Subtensor {
  public:
    Subtensor(const Expr& x, const Expr& part, const Expr& y, bool adds, Where where)
        : views_(views_between(x.node(), part.node())), y_(y), adds_(adds), where_(where) {}

    // The value of view `at` with its part replaced.
    Expr replaced(const Expr& x, std::size_t at = 0) const {
        if (at == views_.size()) return adds_ ? arg(x) + arg(y_) : y_;
        const NodePtr& view = views_[at];
        if (view->op == gather_op() && adds_) return arg(x) + arg(added_rows(x, view, at));
        const Expr part = replaced(wrap(view), at + 1);
        // The transpose of a view that only moves elements is its inverse.
        if (view->op == reshape_op() || view->op == permute_op())
            return wrap(view->op->gradient(view, part.node())[0]);
        const Attributes& a = view->attributes;
        if (view->op == slice_op())
            return apply(set_slice_op(), {x, part},
                         with_places({{"start", *a.find("start")}, {"step", *a.find("step")}}, *view),
                         where_);
        if (view->op == rows_op())
            return apply(set_rows_op(), {x, part, wrap(view->inputs[1])},
                         with_places({{"clipped", *a.find("clipped")}}, *view), where_);
        BITALE_CHECK(view->op == gather_op(), "an index that cannot be put back: " + view->op->name);
        return apply(set_list_op(), {x, part, wrap(view->inputs[1])}, {}, where_);
    }

  private:
    // Views behind a list of indices only put its axes where they belong.
    Expr added_rows(const Expr& x, const NodePtr& view, std::size_t at) const {
        Expr y = y_;
        for (std::size_t k = views_.size(); k-- > at + 1;) {
            BITALE_CHECK(views_[k]->op == permute_op(), "a part of a list of indices");
            y = wrap(permute_op()->gradient(views_[k], y.node())[0]);
        }
        return apply(scatter_op(), {y, wrap(view->inputs[1])}, {{"extent", type_of(x).shape[0]}}, where_);
    }

    Arg arg(const Expr& e) const { return {e, where_}; }

    const Nodes views_;
    const Expr y_;
    const bool adds_;
    const Where where_;
};

Expr subtensor(const Expr& x, const Index& at, const Expr& y, bool adds, const char* op, Where where) {
    require_present(op, {&x, &y}, where);
    const Expr part = x[at];
    return Subtensor(x, part, fitted(y, x.node(), type_of(part), op, where), adds, where).replaced(x);
}

}  // namespace

Expr set_subtensor(const Expr& x, const Index& at, const Expr& y, Where where) try {
    return subtensor(x, at, y, false, "set_subtensor", where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr inc_subtensor(const Expr& x, const Index& at, const Expr& y, Where where) try {
    return subtensor(x, at, y, true, "inc_subtensor", where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
