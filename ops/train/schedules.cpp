// Rates that follow the number of a step.
#include "ops/train/schedules.h"

#include <numbers>

#include "bitale/train.h"
#include "graph/base/numbers.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/train/gradients.h"

namespace bitale {

namespace {

void require(bool holds, const char* schedule, const std::string& rule, Where where) {
    if (!holds) throw Error(where, std::string(schedule) + ": " + rule);
}

Expr number(double x, Where where) { return constant(Array(x), where); }

// The step as an int64.
Expr whole_step(const Expr& step, const char* schedule, Where where) {
    require_present(schedule, {&step}, where);
    if (step.rank() != 0)
        throw ShapeError(where,
                         std::string(schedule) + ": the step is a scalar, not " + describe(*step.node()));
    if (!is_integer(step.dtype()))
        throw TypeError(where, std::string(schedule) + ": the step is an integer, not " +
                                   describe(*step.node()) + "; count steps with a StepCounter");
    return step.is_weak() ? strengthen(step, int64, where) : cast(step, int64, where);
}

Term wide(const Expr& x, Where where) { return {cast(x, float64, where), where}; }

Term power(double base, const Term& exponent) {
    return compose(pow_op(), {number(base, exponent.where), exponent.x}, exponent.where);
}

// (step + 1) / steps, at most 1.
Term warmth(const Term& step, std::int64_t steps) {
    const Term part = (step + 1) / static_cast<double>(steps);
    return compose(minimum_op(), {part.x, literal(1, step.where)}, step.where);
}

}  // namespace

const Op* step_count_op() {
    static const Op* op = register_op({
        .name = "step_count",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& inputs, const Attributes&, Where) { return inputs[0]->type; },
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{nullptr}; },
        .evaluate = [](const Node&, const std::vector<Array>& inputs) { return inputs[0]; },
        .decompose = [](const NodePtr& node) { return node->inputs[0]; },
    });
    return op;
}

void register_training_ops() { step_count_op(); }

StepCounter::StepCounter(const std::string& name, Where where) try
    : counter_(shared(Array(std::int64_t{0}), name, where)),
      count_(apply(step_count_op(), {Expr(counter_, where)}, {}, where)) {
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr step_decay(const Expr& step, double rate, double factor, std::int64_t every, Where where) try {
    require(every > 0, "step_decay",
            "the number of steps must be at least 1, but is " + std::to_string(every), where);
    require(factor > 0, "step_decay", "the factor must be above 0, but is " + number_text(factor), where);
    const Expr times =
        elementwise(floordiv_op(), {whole_step(step, "step_decay", where), Expr(every, where)}, where);
    return (power(factor, wide(times, where)) * rate).x;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr piecewise_constant(const Expr& step, const std::vector<std::int64_t>& boundaries,
                        const std::vector<double>& values, Where where) try {
    require(values.size() == boundaries.size() + 1, "piecewise_constant",
            "there must be one value more than boundaries, but there are " + std::to_string(values.size()) +
                " values and " + std::to_string(boundaries.size()) + " boundaries",
            where);
    for (std::size_t k = 1; k < boundaries.size(); ++k)
        require(boundaries[k - 1] < boundaries[k], "piecewise_constant",
                "boundaries must ascend, but " + std::to_string(boundaries[k]) + " follows " +
                    std::to_string(boundaries[k - 1]),
                where);
    const Expr at = whole_step(step, "piecewise_constant", where);
    Expr rate = number(values[0], where);
    for (std::size_t k = 0; k < boundaries.size(); ++k) {
        const Expr reached = elementwise(ge_op(), {at, Expr(boundaries[k], where)}, where);
        rate = elementwise(where_op(), {reached, number(values[k + 1], where), rate}, where);
    }
    return rate;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr exponential_decay(const Expr& step, double rate, double factor, std::int64_t every, Where where) try {
    require(every > 0, "exponential_decay",
            "the number of steps must be at least 1, but is " + std::to_string(every), where);
    require(factor > 0, "exponential_decay", "the factor must be above 0, but is " + number_text(factor),
            where);
    const Term at = wide(whole_step(step, "exponential_decay", where), where);
    return (power(factor, at / static_cast<double>(every)) * rate).x;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr cosine_decay(const Expr& step, double rate, std::int64_t steps, CosineOptions options, Where where) try {
    require(steps > 0, "cosine_decay",
            "the number of steps must be at least 1, but is " + std::to_string(steps), where);
    require(options.warm_up >= 0 && options.warm_up < steps, "cosine_decay",
            "the warm-up is part of the " + std::to_string(steps) +
                " steps, and not all of them: " + std::to_string(options.warm_up),
            where);
    const Expr whole = whole_step(step, "cosine_decay", where);
    const Term at = wide(whole, where);
    const auto before = static_cast<double>(options.warm_up), length = static_cast<double>(steps) - before;
    const Term part =
        compose(clip_op(), {((at - before) / length).x, literal(0, where), literal(1, where)}, where);
    const Term wave = map(cos_op(), part * std::numbers::pi);
    const Term decayed = (wave + 1) * ((rate - options.last) / 2) + options.last;
    if (options.warm_up == 0) return decayed.x;
    const Expr warm = elementwise(lt_op(), {whole, Expr(options.warm_up, where)}, where);
    return elementwise(where_op(), {warm, (warmth(at, options.warm_up) * rate).x, decayed.x}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr warm_up(const Expr& step, const Expr& rate, std::int64_t steps, Where where) try {
    require(steps > 0, "warm_up", "the number of steps must be at least 1, but is " + std::to_string(steps),
            where);
    require_float_scalar(rate, "warm_up: the rate", where);
    const Expr full = rate.is_weak() ? strengthen(rate, float64, where) : cast(rate, float64, where);
    return (Term(full, where) * warmth(wide(whole_step(step, "warm_up", where), where), steps)).x;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
