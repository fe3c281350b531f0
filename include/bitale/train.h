// What training needs: initial values, parameters by name, gradients, optimizers, schedules of the rate.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

// Arrays of one value. Throw ShapeError for a negative length.
Array zeros(const Dims& shape, DType dtype = float32);
Array ones(const Dims& shape, DType dtype = float32);
Array full_of(const Dims& shape, double value, DType dtype = float32);
// Initial weights, uniform in +-sqrt(6 / (fan_in + fan_out)), float32, for the shapes [in, out] and [out, in,
// kh, kw] (ShapeError for others). Glorot & Bengio 2010. All random values of this header depend on shape and
// seed only.
Array glorot_uniform(const Dims& shape, std::uint64_t seed);
// Initial weights, normal with deviation sqrt(2 / fan_in), float32, for the same shapes. He et al. 2015.
Array he_normal(const Dims& shape, std::uint64_t seed);
// Uniform random values in [low, high), float32. Throws Error for low > high, and for bounds that are not
// finite in float32.
Array uniform_values(const Dims& shape, double low, double high, std::uint64_t seed);
// The numbers 0, 1, ... count - 1 in a random order, int64 [count].
Array permutation(std::int64_t count, std::uint64_t seed);

// A shared variable and its new value, of the same dtype and shape (function() throws TypeError, ShapeError).
// The outputs and all new values of a call are computed from the old values; then all variables change
// together.
struct Update {
    Update(Shared t, Expr v, Where w = Where::current())
        : target(std::move(t)), value(std::move(v)), where(w) {}
    Shared target;
    Expr value;
    Where where;
};
class Updates : public std::vector<Update> {
  public:
    using std::vector<Update>::vector;
    Updates() = default;
    Updates(std::vector<Update> list) noexcept : vector(std::move(list)) {}  // NOLINT: lists are updates
    // Throws GraphError for updates that were moved from.
    void require_present(Where where) const {
        if (empty()) mark_.refuse("a list of updates", where);
    }

  private:
    MovedMark mark_;
};
// The updates of both lists.
Updates operator+(Updates a, const Updates& b);

// ---- Parameters

// The parameters of a model in the order in which they were added, each with a unique name. Copies are the
// same list. Throws GraphError for a second variable of one name, with the lines of both, and for names that
// are empty, have empty parts or contain control characters.
class Parameters {
  public:
    Parameters();
    // The part of the list below a path: what in("conv1") adds as "w" is named "conv1.w", and belongs to the
    // whole list too. Paths continue: in("net").in("conv1") is in("net.conv1").
    Parameters in(const std::string& path) const;
    // Makes a shared variable of this name below the path and adds it: Shared w = params.in("conv1").add("w",
    // values);
    Shared add(const std::string& name, const Array& value, Where where = Where::current());
    // Adds an existing variable under its own name, which must lie below the path (GraphError).
    Shared add(const Shared& parameter, Where where = Where::current());

    std::size_t size() const { return list().size(); }
    std::vector<Shared>::const_iterator begin() const { return list().begin(); }
    std::vector<Shared>::const_iterator end() const { return list().end(); }
    const Shared& operator[](std::size_t k) const;  // throws IndexError
    // By its name below the path. Throws GraphError, with similar names, if there is none.
    const Shared& operator[](const std::string& name) const;
    operator const std::vector<Shared>&() const { return list(); }  // NOLINT: optimizers take them
    // A table of names, dtypes, shapes, numbers of elements and bytes, with totals.
    std::string summary() const;

  private:
    struct Level;
    explicit Parameters(std::shared_ptr<Level> level) : level_(std::move(level)) {}
    const std::vector<Shared>& list(Where where = {}) const;
    std::shared_ptr<Level> level_;
};

// ---- Gradients

// Parameters and a gradient for each: those of a loss, or what a program made of them. Optimizers take them
// in place of a loss and parameters. A gradient has the dtype and shape of its parameter, but the gradient of
// a float16 or bfloat16 parameter is float32.
class Grads {
  public:
    // Gradients that the program computes itself; those of half parameters may be of the half type, too.
    // Throws GraphError unless there is one for each parameter, and TypeError or ShapeError for one that does
    // not fit its parameter.
    explicit Grads(const std::vector<Shared>& params, const std::vector<Expr>& values,
                   Where where = Where::current());
    std::size_t size() const {
        mark_.refuse("Grads");
        return entries_.size();
    }
    const Shared& parameter(std::size_t k) const;           // throws IndexError
    const Expr& operator[](std::size_t k) const;            // throws IndexError
    const Expr& operator[](const Shared& parameter) const;  // throws GraphError if it is none of them
    // Each gradient replaced by f(parameter, gradient), of the same dtype and shape (TypeError, ShapeError).
    Grads map(const std::function<Expr(const Shared&, const Expr&)>& f, Where where = Where::current()) const;

  private:
    friend struct GradsAccess;
    struct Entry {
        Shared parameter;
        Expr point;  // the parameter, where the gradient was taken
        Expr value;
        Expr lookups{};  // shows which rows lookups read; empty: unknown
    };
    Grads() = default;
    std::vector<Entry> entries_;
    MovedMark mark_;
};
// The gradients of a loss with respect to float parameters (TypeError). Throws as grad does, and GraphError
// for two parameters of one name.
Grads gradients(const Expr& loss, const std::vector<Shared>& params, Where where = Where::current());
// The gradients for the parameters of both, added where both have one.
Grads operator+(const Grads& a, const Grads& b);
// Each gradient times a number, or times a float scalar (ShapeError, TypeError).
Grads scale(const Grads& grads, const Expr& factor, Where where = Where::current());
// The gradients of penalties by themselves, to be added with `+`: of strength / 2 * sum(p * p), which is
// strength * p, and of strength * sum(abs(p)), which is strength * sign(p): gradients(loss, params) +
// l2_penalty({w}, 1e-4). With lazy_rows they change the rows that are looked up; a norm, as that by which
// clip_by_global_norm scales, is that of the penalties of all rows. Throw TypeError for a parameter that is
// no float, GraphError for a strength below 0 or not finite.
Grads l2_penalty(const std::vector<Shared>& params, double strength, Where where = Where::current());
Grads l1_penalty(const std::vector<Shared>& params, double strength, Where where = Where::current());
// The square root of the sum of the squares of all gradients: a scalar, float64 if any parameter is float64,
// otherwise float32.
Expr global_norm(const Grads& grads, Where where = Where::current());
// Clipped gradients, for a limit above 0 (Error). by_value: each number into [-limit, limit]. by_norm: each
// gradient whose norm is above the limit, times limit / norm. by_global_norm: if global_norm is above the
// limit, all gradients times limit / global_norm (Pascanu et al. 2013). TensorFlow's functions of these
// names. NaN stays NaN, and an infinite norm makes everything that it scales NaN: in float32 also that of
// gradients above 1.8e19, whose squares are infinite. An infinite limit changes nothing.
Grads clip_by_value(const Grads& grads, double limit, Where where = Where::current());
Grads clip_by_norm(const Grads& grads, double limit, Where where = Where::current());
Grads clip_by_global_norm(const Grads& grads, double limit, Where where = Where::current());

// The sum of the gradients of several calls, for batches that do not fit into memory. One function has the
// updates add(), another those of an optimizer and clear():
//     GradSum sum(gradients(loss, params));
//     Function add = function({i}, loss, {.updates = sum.add()});
//     Function apply = function({}, {}, {.updates = adam(sum.mean()) + sum.clear()});
// The sums are shared variables named after the parameters, "w.sum", of the dtypes of the gradients; the
// count is named after the first one, "w.count". With lazy_rows all rows change, because the sum does not
// record which rows were looked up.
class GradSum {
  public:
    explicit GradSum(const Grads& grads, Where where = Where::current());
    Updates add() const;                            // adds the gradients, and 1 to the count
    Grads sum() const;                              // of what was added
    Grads mean() const;                             // sum / count; 0 if nothing was added
    Updates clear() const;                          // back to 0
    const Shared& count() const { return count_; }  // int64 scalar

  private:
    void require_present() const;
    Grads grads_;
    std::vector<Shared> sums_;
    Shared count_;
    Where where_;
    MovedMark mark_;
};

// ---- Optimizers

// All optimizers take gradients, or a scalar loss and parameters: sgd(gradients(loss, {w, b}), rate) is
// sgd(loss, {w, b}, rate). The rate is a float scalar (ShapeError, TypeError): a number, or an expression
// such as a schedule. Their state is in shared variables named after the parameters ("w.m"), 0 at first, of
// the parameter's dtype. They throw as gradients() does, and GraphError for no parameter at all, for a
// constant rate, epsilon, initial sum or weight decay below 0 or not finite, and for a momentum, rho, beta1
// or beta2 that is not from 0 to below 1.
//
// A parameter may be stored as float16 or bfloat16. Its step is computed in float32, its state is float32,
// and the new value is rounded once. A step that is smaller than half the distance to the next number of that
// type is lost.
//
// With lazy_rows, a parameter that the loss reads by lookups only changes in the rows that are looked up, and
// so does its state. All other rows keep their bits, and on a CPU a step visits only the rows that are looked
// up, unless gradients are clipped by a norm. A lookup is table[indices] with an expression of integers, a
// scalar too; table[3] with a number and rows(...) are slices and count as other reads. Without lazy_rows,
// rows that are not looked up still move by what their state remembers. Other parameters are not affected.
// PyTorch's SparseAdam.

struct SgdOptions {
    bool lazy_rows = false;
};
// p <- p - rate * grad.
Updates sgd(const Grads& grads, const Expr& rate, SgdOptions options = {}, Where where = Where::current());
Updates sgd(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, SgdOptions options = {},
            Where where = Where::current());

struct MomentumOptions {
    double momentum = 0.9;
    double weight_decay = 0;  // added to the gradient as weight_decay * p
    bool lazy_rows = false;
};
// v <- momentum * v - rate * (grad + decay * p); p <- p + v. The form of Keras; PyTorch's is the same as long
// as the rate is constant. Polyak 1964.
Updates momentum(const Grads& grads, const Expr& rate, MomentumOptions options = {},
                 Where where = Where::current());
Updates momentum(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 MomentumOptions options = {}, Where where = Where::current());
// v <- momentum * v - rate * (grad + decay * p); p <- p + momentum * v - rate * (grad + decay * p). Nesterov
// 1983 in the form of Sutskever et al. 2013; Keras and PyTorch as for momentum.
Updates nesterov(const Grads& grads, const Expr& rate, MomentumOptions options = {},
                 Where where = Where::current());
Updates nesterov(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 MomentumOptions options = {}, Where where = Where::current());

struct AdagradOptions {
    double epsilon = 1e-10;
    double initial = 0;  // value of the sums of squares
    bool lazy_rows = false;
};
// s <- s + grad^2; p <- p - rate * grad / (sqrt(s) + epsilon). Duchi et al. 2011, with PyTorch's defaults.
// (Keras starts with sums of 0.1 and adds epsilon below the root.)
Updates adagrad(const Grads& grads, const Expr& rate = 0.01, AdagradOptions options = {},
                Where where = Where::current());
Updates adagrad(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 0.01,
                AdagradOptions options = {}, Where where = Where::current());

struct RmspropOptions {
    double rho = 0.99, epsilon = 1e-8;
    double momentum = 0;
    bool centered = false;  // divide by the deviation of the gradient, not by the root of its mean square
    bool lazy_rows = false;
};
// s <- rho * s + (1 - rho) * grad^2; d = grad / (sqrt(s) + epsilon); p <- p - rate * d. Centered: a <- rho *
// a + (1 - rho) * grad, and s - a^2, at least 0, below the root (Graves 2013). With momentum: v <- momentum *
// v + d; p <- p - rate * v. Tieleman & Hinton 2012, in the form and with the defaults of PyTorch. (Keras has
// rho = 0.9, and epsilon = 1e-7 below the root.)
Updates rmsprop(const Grads& grads, const Expr& rate = 0.01, RmspropOptions options = {},
                Where where = Where::current());
Updates rmsprop(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 0.01,
                RmspropOptions options = {}, Where where = Where::current());

struct AdadeltaOptions {
    double rho = 0.95, epsilon = 1e-6;
    bool lazy_rows = false;
};
// s <- rho * s + (1 - rho) * grad^2; d = grad * sqrt(u + epsilon) / sqrt(s + epsilon); u <- rho * u + (1 -
// rho) * d^2; p <- p - rate * d. Zeiler 2012, with rho and epsilon of Keras.
Updates adadelta(const Grads& grads, const Expr& rate = 1.0, AdadeltaOptions options = {},
                 Where where = Where::current());
Updates adadelta(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 1.0,
                 AdadeltaOptions options = {}, Where where = Where::current());

struct AdamOptions {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    bool lazy_rows = false;
    std::string name = "adam";  // names the count of steps, "adam.t"; two in one checkpoint need two names
};
// Kingma & Ba 2015, with the bias correction folded into the rate, as at the end of their section 2 and in
// Keras: m <- beta1 * m + (1 - beta1) * grad; v <- beta2 * v + (1 - beta2) * grad^2; p <- p - rate * sqrt(1 -
// beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon).
Updates adam(const Grads& grads, const Expr& rate = 0.001, AdamOptions options = {},
             Where where = Where::current());
Updates adam(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 0.001,
             AdamOptions options = {}, Where where = Where::current());

struct AdamwOptions {
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 0.01;
    bool decay_vectors = true;  // false: only parameters of two or more axes decay, not biases and scales
    bool lazy_rows = false;
    std::string name = "adamw";
};
// Adam's step, and beside it p <- p - rate * weight_decay * p. Loshchilov & Hutter 2019. As in PyTorch and
// Keras the decay is proportional to the rate; the default is PyTorch's.
Updates adamw(const Grads& grads, const Expr& rate = 0.001, AdamwOptions options = {},
              Where where = Where::current());
Updates adamw(const Expr& loss, const std::vector<Shared>& params, const Expr& rate = 0.001,
              AdamwOptions options = {}, Where where = Where::current());

// ---- Schedules

// Counts steps: a shared int64, 0 at first. Each call of a function whose updates read the count increments
// it, unless the function has an update of its own for it. A function that only returns the count does not
// change it.
class StepCounter {
  public:
    explicit StepCounter(const std::string& name = "step", Where where = Where::current());
    operator const Expr&() const { return count_; }  // NOLINT: schedules take it
    const Expr& count() const { return count_; }     // of steps done, int64 scalar
    const Shared& counter() const { return counter_; }

  private:
    Shared counter_;
    Expr count_;
};

// Rates for optimizers as float64 scalars; `step` is an integer scalar (TypeError, ShapeError). All throw
// Error for arguments outside the ranges stated.

// rate * factor^floor(step / every), for factor > 0 and every > 0. PyTorch's StepLR.
Expr step_decay(const Expr& step, double rate, double factor, std::int64_t every,
                Where where = Where::current());
// values[k] from step boundaries[k - 1] to the step before boundaries[k]. Boundaries ascend, and there is one
// value more than boundaries. PyTorch's MultiStepLR has the same steps; those of Keras'
// PiecewiseConstantDecay are one later.
Expr piecewise_constant(const Expr& step, const std::vector<std::int64_t>& boundaries,
                        const std::vector<double>& values, Where where = Where::current());
// rate * factor^(step / every), for factor > 0 and every > 0. Keras' ExponentialDecay.
Expr exponential_decay(const Expr& step, double rate, double factor, std::int64_t every = 1,
                       Where where = Where::current());

struct CosineOptions {
    std::int64_t warm_up = 0;  // of `steps`, the first ones rise as in warm_up(); 0 <= warm_up < steps
    double last = 0;           // the rate at the end
};

// last + (rate - last) * (1 + cos(pi * t)) / 2, where t goes from 0 after the warm-up to 1 at step `steps` >
// 0, and stays 1. Loshchilov & Hutter 2017, without restarts.
Expr cosine_decay(const Expr& step, double rate, std::int64_t steps, CosineOptions options = {},
                  Where where = Where::current());
// A rate times (step + 1) / steps in the first `steps` > 0 steps; no step has a rate of 0. Goyal et al. 2017.
Expr warm_up(const Expr& step, const Expr& rate, std::int64_t steps, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
