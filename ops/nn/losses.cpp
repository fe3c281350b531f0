#include "ops/nn/losses.h"

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/nn/pick.h"

namespace bitale {

namespace {

Expr crossentropy(const Op* labels, const Op* dense, const Expr& x, const Expr& target, Where where) try {
    require_present(labels->title.c_str(), {&x, &target}, where);
    const bool is_labels = target.rank() == 1;
    if (x.rank() != 2 || (!is_labels && target.rank() != 2))
        throw ShapeError(where, labels->title +
                                    " takes [n, classes] and integer labels [n] or a distribution "
                                    "[n, classes], not " +
                                    describe(*x.node()) + " and " + describe(*target.node()));
    return apply(is_labels ? labels : dense, {x, target}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace

void register_loss_ops() {
    register_pick_ops();
    crossentropy_labels_op();
    crossentropy_dense_op();
    softmax_crossentropy_labels_op();
    softmax_crossentropy_dense_op();
    binary_crossentropy_op();
}

Expr categorical_crossentropy(const Expr& predicted, const Expr& target, Where where) {
    return crossentropy(crossentropy_labels_op(), crossentropy_dense_op(), predicted, target, where);
}

Expr softmax_crossentropy(const Expr& logits, const Expr& target, Where where) {
    return crossentropy(softmax_crossentropy_labels_op(), softmax_crossentropy_dense_op(), logits, target,
                        where);
}

Expr binary_crossentropy(const Expr& predicted, const Expr& target, Where where) try {
    require_present("binary_crossentropy", {&predicted, &target}, where);
    // Bytes as targets become float32, as everywhere in elementwise arithmetic.
    const bool bytes =
        (is_integer(target.dtype()) || target.dtype() == boolean) && predicted.dtype() == float32;
    const Expr strong = target.is_weak() ? strengthen(target, predicted.dtype(), where)
                        : bytes          ? cast(target, float32, where)
                                         : target;
    const std::vector<Expr> operands = broadcast({predicted, strong}, "binary_crossentropy", where);
    return apply(binary_crossentropy_op(), operands, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
