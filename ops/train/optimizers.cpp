// Optimizers: the updates of parameters and of their state, as expressions.
#include <fmt/format.h>

#include <cmath>

#include "bitale/error.h"
#include "graph/ir/shared.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/train/gradients.h"

namespace bitale {

namespace {

void require_usable(const Grads& grads, const Expr& rate, const char* optimizer, Where where) {
    require_present(grads, where);
    if (grads.size() == 0)
        throw GraphError(where, std::string(optimizer) +
                                    ": there is no parameter to train; add the variables before the "
                                    "optimizer is made");
    if (rate.rank() == 0 && !is_float(rate.dtype()) && !rate.is_weak())
        throw TypeError(where, std::string(optimizer) + ": the learning rate is a float, not " +
                                   describe(*rate.node()) + "; write " + cast_text(rate.node(), float32) +
                                   ", or a schedule of a step counter, such as "
                                   "step_decay(step, 0.1, ...)");
    require_float_scalar(rate, std::string(optimizer) + ": the learning rate", where);
    if (!is_constant(rate.node())) return;
    const double value = constant_value(rate.node()).at(0);
    if (!std::isfinite(value) || value < 0)
        throw GraphError(where,
                         fmt::format("{}: the learning rate is {}; it is a number from 0 on. To make a "
                                     "value larger, minimise its negative: {}(-value, ...)",
                                     optimizer, value, optimizer));
}

// A factor of what the state remembers from step to step.
void require_share(double value, const char* optimizer, const char* name, Where where) {
    if (!(value >= 0 && value < 1))
        throw GraphError(
            where, fmt::format("{}: {} is {}; it is a number from 0 on and below 1", optimizer, name, value));
}

void require_from_zero(double value, const char* optimizer, const char* name, Where where) {
    if (!(value >= 0 && std::isfinite(value)))
        throw GraphError(where,
                         fmt::format("{}: {} is {}; it is a number from 0 on", optimizer, name, value));
}

Term rate_for(const Expr& rate, const Trained& p) { return scalar_for(rate, p.shared, p.value.where); }

// A state of a parameter, named after it, and what it is before the step.
struct State {
    State(const Trained& p, const char* suffix, Where where, double initial = 0)
        : shared(bitale::shared(initial == 0 ? zeros(p.shared.shape(), computed_dtype(p.shared))
                                             : full_of(p.shared.shape(), initial, computed_dtype(p.shared)),
                                p.shared.name() + "." + suffix, where)),
          before(Expr(shared, where), where) {}
    Shared shared;
    Term before;
};

// What Adam and AdamW share: the step of each parameter, of which `shrunk` makes its new value.
struct Moments {
    double beta1, beta2, epsilon;
    bool lazy_rows;
    std::string name;
};
template <class F>
Updates adam_updates(const Grads& grads, const Expr& rate, const Moments& options, Where where, F&& shrunk) {
    const std::vector<Trained> parameters = trained_by(grads, options.lazy_rows, where);
    // The count is exact for as long as anybody trains; the rate and its correction are as wide as the widest
    // parameter, and are rounded once, to each parameter's own dtype.
    const DType widest = widest_of(parameters);
    const Shared steps = shared(zeros({}, int64), options.name + ".t", where);
    const Term count = Term(Expr(steps, where), where) + 1;
    const Term t(cast(count.x, widest, where), where);
    // 1 - beta^t by way of expm1: the difference itself would lose most of its digits at the first steps.
    const auto correction = [&](double beta) { return -expm1(t * std::log(beta)); };
    const Term scale = sqrt(correction(options.beta2)) / correction(options.beta1);
    const Term corrected = Term(rate.is_weak() ? rate : cast(rate, widest, where), where) * scale;
    Updates updates{update_of(steps, count)};
    for (const Trained& p : parameters) {
        const State first(p, "m", where), second(p, "v", where);
        const Term& g = p.gradient;
        const Term m = p.changed(first.before * options.beta1 + g * (1 - options.beta1), first.before);
        const Term v = p.changed(second.before * options.beta2 + g * g * (1 - options.beta2), second.before);
        updates.push_back(update_of(first.shared, m));
        updates.push_back(update_of(second.shared, v));
        const Term step = rate_for(corrected.x, p) * m / (sqrt(v) + options.epsilon);
        updates.push_back(update_of(p.shared, p.changed(shrunk(p) - step, p.value)));
    }
    return updates;
}

enum class Ahead : std::uint8_t { no, yes };

// Momentum, and Nesterov's, which looks a step ahead.
Updates with_momentum(const Grads& grads, const Expr& rate, const MomentumOptions& options, Ahead ahead,
                      Where where) {
    Updates updates;
    for (const Trained& p : trained_by(grads, options.lazy_rows, where)) {
        const State velocity(p, "velocity", where);
        Term g = p.gradient;
        if (options.weight_decay != 0) g = g + p.value * options.weight_decay;
        const Term step = rate_for(rate, p) * g;
        const Term v = p.changed(velocity.before * options.momentum - step, velocity.before);
        updates.push_back(update_of(velocity.shared, v));
        const Term now = ahead == Ahead::yes ? p.value + (v * options.momentum - step) : p.value + v;
        updates.push_back(update_of(p.shared, p.changed(now, p.value)));
    }
    return updates;
}

}  // namespace

Updates operator+(Updates a, const Updates& b) try {
    a.require_present({});
    b.require_present({});
    a.insert(a.end(), b.begin(), b.end());
    return a;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates sgd(const Grads& grads, const Expr& rate, SgdOptions options, Where where) try {
    require_usable(grads, rate, "sgd", where);
    Updates updates;
    for (const Trained& p : trained_by(grads, options.lazy_rows, where))
        updates.push_back(update_of(p.shared, p.changed(p.value - rate_for(rate, p) * p.gradient, p.value)));
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates momentum(const Grads& grads, const Expr& rate, MomentumOptions options, Where where) try {
    require_usable(grads, rate, "momentum", where);
    require_share(options.momentum, "momentum", "momentum", where);
    require_from_zero(options.weight_decay, "momentum", "weight_decay", where);
    return with_momentum(grads, rate, options, Ahead::no, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates nesterov(const Grads& grads, const Expr& rate, MomentumOptions options, Where where) try {
    require_usable(grads, rate, "nesterov", where);
    require_share(options.momentum, "nesterov", "momentum", where);
    require_from_zero(options.weight_decay, "nesterov", "weight_decay", where);
    return with_momentum(grads, rate, options, Ahead::yes, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates adagrad(const Grads& grads, const Expr& rate, AdagradOptions options, Where where) try {
    require_usable(grads, rate, "adagrad", where);
    require_from_zero(options.epsilon, "adagrad", "epsilon", where);
    require_from_zero(options.initial, "adagrad", "initial", where);
    Updates updates;
    for (const Trained& p : trained_by(grads, options.lazy_rows, where)) {
        const State squares(p, "squares", where, options.initial);
        const Term& g = p.gradient;
        const Term s = p.changed(squares.before + g * g, squares.before);
        updates.push_back(update_of(squares.shared, s));
        const Term step = rate_for(rate, p) * g / (sqrt(s) + options.epsilon);
        updates.push_back(update_of(p.shared, p.changed(p.value - step, p.value)));
    }
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates rmsprop(const Grads& grads, const Expr& rate, RmspropOptions options, Where where) try {
    require_usable(grads, rate, "rmsprop", where);
    require_share(options.rho, "rmsprop", "rho", where);
    require_share(options.momentum, "rmsprop", "momentum", where);
    require_from_zero(options.epsilon, "rmsprop", "epsilon", where);
    Updates updates;
    for (const Trained& p : trained_by(grads, options.lazy_rows, where)) {
        const State squares(p, "squares", where);
        const Term& g = p.gradient;
        const double rho = options.rho;
        const Term s = p.changed(squares.before * rho + g * g * (1 - rho), squares.before);
        updates.push_back(update_of(squares.shared, s));
        Term below = s;
        if (options.centered) {
            const State average(p, "average", where);
            const Term a = p.changed(average.before * rho + g * (1 - rho), average.before);
            updates.push_back(update_of(average.shared, a));
            // Rounding alone could make a variance negative.
            below = compose(maximum_op(), {(s - a * a).x, literal(0, where)}, where);
        }
        Term step = g / (sqrt(below) + options.epsilon);
        if (options.momentum != 0) {
            const State velocity(p, "velocity", where);
            step = p.changed(velocity.before * options.momentum + step, velocity.before);
            updates.push_back(update_of(velocity.shared, step));
        }
        updates.push_back(update_of(p.shared, p.changed(p.value - rate_for(rate, p) * step, p.value)));
    }
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates adadelta(const Grads& grads, const Expr& rate, AdadeltaOptions options, Where where) try {
    require_usable(grads, rate, "adadelta", where);
    require_share(options.rho, "adadelta", "rho", where);
    require_from_zero(options.epsilon, "adadelta", "epsilon", where);
    Updates updates;
    for (const Trained& p : trained_by(grads, options.lazy_rows, where)) {
        const State gradients(p, "gradients", where), steps(p, "steps", where);
        const Term& g = p.gradient;
        const Term &before = steps.before, &old_squares = gradients.before;
        const Term squares = p.changed(old_squares * options.rho + g * g * (1 - options.rho), old_squares);
        const Term step = g * sqrt(before + options.epsilon) / sqrt(squares + options.epsilon);
        updates.push_back(update_of(gradients.shared, squares));
        updates.push_back(update_of(
            steps.shared, p.changed(before * options.rho + step * step * (1 - options.rho), before)));
        updates.push_back(update_of(p.shared, p.changed(p.value - rate_for(rate, p) * step, p.value)));
    }
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates adam(const Grads& grads, const Expr& rate, AdamOptions options, Where where) try {
    require_usable(grads, rate, "adam", where);
    require_share(options.beta1, "adam", "beta1", where);
    require_share(options.beta2, "adam", "beta2", where);
    require_from_zero(options.epsilon, "adam", "epsilon", where);
    return adam_updates(grads, rate,
                        {options.beta1, options.beta2, options.epsilon, options.lazy_rows, options.name},
                        where, [](const Trained& p) { return p.value; });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates adamw(const Grads& grads, const Expr& rate, AdamwOptions options, Where where) try {
    require_usable(grads, rate, "adamw", where);
    require_share(options.beta1, "adamw", "beta1", where);
    require_share(options.beta2, "adamw", "beta2", where);
    require_from_zero(options.epsilon, "adamw", "epsilon", where);
    require_from_zero(options.weight_decay, "adamw", "weight_decay", where);
    // A factor 1 - rate * decay would be rounded alike in every step.
    const auto shrunk = [&](const Trained& p) {
        const bool decays = options.decay_vectors || p.value.x.rank() >= 2;
        return decays ? p.value - rate_for(rate, p) * options.weight_decay * p.value : p.value;
    };
    return adam_updates(grads, rate,
                        {options.beta1, options.beta2, options.epsilon, options.lazy_rows, options.name},
                        where, shrunk);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

// The same of a loss.

Updates sgd(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, SgdOptions options,
            Where where) {
    return sgd(gradients(loss, params, where), rate, options, where);
}
Updates momentum(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 MomentumOptions options, Where where) {
    return momentum(gradients(loss, params, where), rate, options, where);
}
Updates nesterov(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 MomentumOptions options, Where where) {
    return nesterov(gradients(loss, params, where), rate, options, where);
}
Updates adagrad(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, AdagradOptions options,
                Where where) {
    return adagrad(gradients(loss, params, where), rate, options, where);
}
Updates rmsprop(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, RmspropOptions options,
                Where where) {
    return rmsprop(gradients(loss, params, where), rate, options, where);
}
Updates adadelta(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 AdadeltaOptions options, Where where) {
    return adadelta(gradients(loss, params, where), rate, options, where);
}
Updates adam(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, AdamOptions options,
             Where where) {
    return adam(gradients(loss, params, where), rate, std::move(options), where);
}
Updates adamw(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, AdamwOptions options,
              Where where) {
    return adamw(gradients(loss, params, where), rate, std::move(options), where);
}

}  // namespace bitale
