// Optimizers: the updates of parameters and of their state, as expressions.
#include <cmath>
#include <map>
#include <set>

#include "bitale/train.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/train/lazy_rows.h"

namespace bitale {

namespace {

struct Parameter {
    Shared shared;
    Term value, gradient;
    Expr reached;  // the rows that change; null: all

    // The new value of the parameter or of its state, where a row changes.
    Term changed(const Term& now, const Term& before) const {
        return reached.is_null() ? now : compose(where_op(), {reached, now.x, before.x}, now.where);
    }
};

void require_rate(const Expr& rate, const char* optimizer, Where where) {
    if (rate.rank() != 0)
        throw ShapeError(
            where, std::string(optimizer) + ": the learning rate is a scalar, not " + describe(*rate.node()));
    if (!is_float(rate.dtype()) && !rate.is_weak())
        throw TypeError(where, std::string(optimizer) + ": the learning rate is a float, not " +
                                   describe(*rate.node()) + "; write cast(..., float32)");
}

// A parameter that is named twice, or two of one name, whose states could not be told apart in a file.
void require_distinct(const std::vector<Shared>& params, Where where) {
    std::map<std::string, Where> seen;
    std::set<const SharedState*> states;
    for (const Shared& p : params) {
        const std::string& name = p.name();
        const std::string line = p.state()->where.line ? " at " + p.state()->where.text() : "";
        if (!states.insert(p.state().get()).second)
            throw GraphError(where, "the parameter " + in_quotes(name) + line + " is listed twice");
        if (name.empty()) continue;
        if (const auto [at, fresh] = seen.emplace(name, p.state()->where); !fresh)
            throw GraphError(where, "two parameters have the name " + in_quotes(name) + ", made at " +
                                        at->second.text() + " and at " + p.state()->where.text() +
                                        "; give each a name of its own");
    }
}

std::vector<Parameter> differentiated(const Expr& loss, const std::vector<Shared>& params, bool lazy_rows,
                                      Where where) {
    require_distinct(params, where);
    std::vector<Expr> values;
    for (const Shared& p : params) values.emplace_back(p, where);
    const std::vector<Expr> gradients = grad(loss, values, where);
    std::vector<Parameter> r;
    for (std::size_t i = 0; i < params.size(); ++i)
        r.push_back({params[i], Term(values[i], where), Term(gradients[i], where), {}});
    if (lazy_rows)
        for (Parameter& p : r) p.reached = rows_looked_up(p.gradient);
    return r;
}

// Zeros like a parameter, named after it.
Shared state_of(const Shared& parameter, const char* suffix, Where where) {
    return shared(zeros(parameter.shape(), parameter.dtype()), parameter.name() + "." + suffix, where);
}

// The new value in the storage's own dtype: a float64 rate must not change what a float32 parameter is.
Update update_of(const Shared& target, const Term& value) {
    return {target, cast(value.x, target.dtype(), value.where), value.where};
}

// The rate in a parameter's dtype. A literal stays one.
Term rate_for(const Expr& rate, const Parameter& p) {
    const Where where = p.value.where;
    return {rate.is_weak() ? rate : cast(rate, p.shared.dtype(), where), where};
}

}  // namespace

Updates operator+(Updates a, const Updates& b) try {
    a.insert(a.end(), b.begin(), b.end());
    return a;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates sgd(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, SgdOptions options,
            Where where) try {
    require_rate(rate, "sgd", where);
    Updates updates;
    for (const Parameter& p : differentiated(loss, params, options.lazy_rows, where))
        updates.push_back(update_of(p.shared, p.changed(p.value - rate_for(rate, p) * p.gradient, p.value)));
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates momentum(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 MomentumOptions options, Where where) try {
    require_rate(rate, "momentum", where);
    Updates updates;
    for (const Parameter& p : differentiated(loss, params, options.lazy_rows, where)) {
        const Shared velocity = state_of(p.shared, "velocity", where);
        Term g = p.gradient;
        if (options.weight_decay != 0) g = g + p.value * options.weight_decay;
        const Term before(Expr(velocity, where), where);
        const Term v = p.changed(before * options.momentum - rate_for(rate, p) * g, before);
        updates.push_back(update_of(velocity, v));
        updates.push_back(update_of(p.shared, p.changed(p.value + v, p.value)));
    }
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates adam(const Expr& loss, const std::vector<Shared>& params, const Expr& rate, AdamOptions options,
             Where where) try {
    require_rate(rate, "adam", where);
    const std::vector<Parameter> parameters = differentiated(loss, params, options.lazy_rows, where);
    // The count is exact for as long as anybody trains; the rate and its correction are as wide as the widest
    // parameter, and are rounded once, to each parameter's own dtype.
    DType widest = float32;
    for (const Shared& p : params)
        if (p.dtype() == float64) widest = float64;
    const Shared steps = shared(zeros({}, int64), "adam.t", where);
    const Term count = Term(Expr(steps, where), where) + 1;
    const Term t(cast(count.x, widest, where), where);
    // 1 - beta^t by way of expm1: the difference itself would lose most of its digits at the first steps.
    const auto correction = [&](double beta) { return -expm1(t * std::log(beta)); };
    const Term scale = sqrt(correction(options.beta2)) / correction(options.beta1);
    const Term corrected = Term(rate.is_weak() ? rate : cast(rate, widest, where), where) * scale;
    Updates updates{update_of(steps, count)};
    for (const Parameter& p : parameters) {
        const Shared first = state_of(p.shared, "m", where), second = state_of(p.shared, "v", where);
        const Term& g = p.gradient;
        const Term m_before(Expr(first, where), where), v_before(Expr(second, where), where);
        const Term m = p.changed(m_before * options.beta1 + g * (1 - options.beta1), m_before);
        const Term v = p.changed(v_before * options.beta2 + g * g * (1 - options.beta2), v_before);
        updates.push_back(update_of(first, m));
        updates.push_back(update_of(second, v));
        const Term step = rate_for(corrected.x, p) * m / (sqrt(v) + options.epsilon);
        updates.push_back(update_of(p.shared, p.changed(p.value - step, p.value)));
    }
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates adadelta(const Expr& loss, const std::vector<Shared>& params, const Expr& rate,
                 AdadeltaOptions options, Where where) try {
    require_rate(rate, "adadelta", where);
    Updates updates;
    for (const Parameter& p : differentiated(loss, params, options.lazy_rows, where)) {
        const Shared gradients = state_of(p.shared, "gradients", where),
                     steps = state_of(p.shared, "steps", where);
        const Term& g = p.gradient;
        const Term before(Expr(steps, where), where), old_squares(Expr(gradients, where), where);
        const Term squares = p.changed(old_squares * options.rho + g * g * (1 - options.rho), old_squares);
        const Term step = g * sqrt(before + options.epsilon) / sqrt(squares + options.epsilon);
        updates.push_back(update_of(gradients, squares));
        updates.push_back(
            update_of(steps, p.changed(before * options.rho + step * step * (1 - options.rho), before)));
        updates.push_back(update_of(p.shared, p.changed(p.value - rate_for(rate, p) * step, p.value)));
    }
    return updates;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
