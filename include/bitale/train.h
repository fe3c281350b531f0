// Initial values and optimizers.
#pragma once

#include <vector>

#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

Array zeros(const Dims& shape, DType dtype = float32);
Array ones(const Dims& shape, DType dtype = float32);
Array full_of(const Dims& shape, double value, DType dtype = float32);
// Random values are float32, a pure function of shape and seed.
// Uniform in +-sqrt(6 / (fan_in + fan_out)); of [in, out] and [out, in, kh, kw], else ShapeError. Glorot &
// Bengio 2010.
Array glorot_uniform(const Dims& shape, std::uint64_t seed);
// Normal with deviation sqrt(2 / fan_in); of the same shapes. He et al. 2015.
Array he_normal(const Dims& shape, std::uint64_t seed);
Array uniform_values(const Dims& shape, double low, double high, std::uint64_t seed);
// A random order of 0 .. count - 1 as int64 [count] (on the host, for set_value).
Array permutation(std::int64_t count, std::uint64_t seed);

// target <- value after the call's outputs are computed; every expression reads the old values.
struct Update {
    Update(Shared t, Expr v, Where w = Where::current())
        : target(std::move(t)), value(std::move(v)), where(w) {}
    Shared target;
    Expr value;
    Where where;
};
using Updates = std::vector<Update>;
Updates operator+(Updates a, const Updates& b);

// All take the gradients of a scalar loss with respect to float parameters (TypeError; GraphError as grad,
// and for two of one name) and a scalar float rate (ShapeError, TypeError), a number or an expression. Their
// state is in shared variables named after the parameters ("w.m"), zero at first, of the parameter's dtype.
// With lazy_rows, a parameter that the loss reads by lookups alone (table[indices]) changes in the rows that
// are looked up, and so does its state; all other rows stay as they are, bit for bit, and on a CPU a step
// visits the rows that are looked up only. Without it, rows that are not looked up still move by what
// their state remembers. As SparseAdam of PyTorch does. Other parameters change as without it.

struct SgdOptions {
    bool lazy_rows = false;
};
// p - rate * grad.
Updates sgd(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, SgdOptions options = {},
            Where where = Where::current());
struct MomentumOptions {
    double momentum = 0.9;
    double weight_decay = 0;  // added to the gradient as weight_decay * p
    bool lazy_rows = false;
};
// v <- momentum * v - rate * (grad + decay * p); p <- p + v.
Updates momentum(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 MomentumOptions options = {}, Where where = Where::current());
struct AdamOptions {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    bool lazy_rows = false;
};
// Kingma & Ba 2015, with bias correction folded into the rate.
Updates adam(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 0.001,
             AdamOptions options = {}, Where where = Where::current());
struct AdadeltaOptions {
    double rho = 0.95, epsilon = 1e-6;
    bool lazy_rows = false;
};
// Zeiler 2012.
Updates adadelta(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 1.0,
                 AdadeltaOptions options = {}, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
