// What optimizers read of gradients.
#pragma once

#include "bitale/train.h"
#include "ops/dsl/compose.h"

namespace bitale {

// A parameter on its way through a step.
struct Trained {
    Shared shared;
    Term value, gradient;
    Expr reached;  // the rows that change; null: all

    // The new value of the parameter or of its state, where a row changes.
    Term changed(const Term& now, const Term& before) const {
        return reached.is_null() ? now : compose(where_op(), {reached, now.x, before.x}, now.where);
    }
};
std::vector<Trained> trained_by(const Grads& grads, bool lazy_rows, Where where);

// ShapeError or TypeError unless x is a scalar float; `subject` begins the message.
void require_float_scalar(const Expr& x, const std::string& subject, Where where);
// A scalar in a parameter's dtype. A literal stays one.
Term scalar_for(const Expr& x, DType dtype, Where where);
// A shared variable's new value in the storage's own dtype: a float64 rate must not change what a float32
// parameter is.
Update update_of(const Shared& target, const Term& value);
// The widest dtype among parameters.
DType widest_of(const std::vector<Trained>& parameters);

}  // namespace bitale
