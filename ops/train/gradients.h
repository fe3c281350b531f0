// What optimizers read of gradients.
#pragma once

#include "bitale/train.h"
#include "ops/dsl/compose.h"

namespace bitale {

// A parameter on its way through a step. Value, gradient and state of one that is stored in a half type are
// float32: steps are small beside the parameter, and their squares smaller still.
struct Trained {
    Shared shared;
    Term value, gradient;
    Expr reached;  // the rows that change; null: all

    // The new value of the parameter or of its state, where a row changes.
    Term changed(const Term& now, const Term& before) const {
        return reached.is_null() ? now : compose(where_op(), {reached, now.x, before.x}, now.where);
    }
};
void require_present(const Grads& grads, Where where);  // not moved from
std::vector<Trained> trained_by(const Grads& grads, bool lazy_rows, Where where);

// ShapeError or TypeError unless x is a scalar float; `subject` begins the message.
void require_float_scalar(const Expr& x, const std::string& subject, Where where);
// In what the steps of a parameter are computed: float32 for half types, else its dtype.
DType computed_dtype(const Shared& parameter);
// A value of the parameter in that dtype.
Term computed(const Shared& parameter, const Expr& value, Where where);
// A scalar in that dtype. A literal stays one.
Term scalar_for(const Expr& x, const Shared& parameter, Where where);
// A shared variable's new value in the storage's own dtype: a float64 rate must not change what a float32
// parameter is.
Update update_of(const Shared& target, const Term& value);
// The widest dtype among parameters.
DType widest_of(const std::vector<Trained>& parameters);

}  // namespace bitale
