// Steps of every optimizer, with rates that follow a schedule and gradients that are clipped and added up.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

// A layer of tanh on rows, and its cost.
Expr cost_of(Builder& b, std::int64_t rows, std::int64_t from, std::int64_t to, const std::string& name) {
    const Expr x = b.floats({rows, from}, "x_" + name), y = b.floats({rows, to}, "y_" + name);
    const Shared w = b.weights({from, to}, "w_" + name), c = b.bias(to, "b_" + name);
    return mean(sqr(tanh(dot(x, w) + c) - y));
}

}  // namespace

GRAPH(clipped_adamw_step) {
    const Expr step = b.number(3, "step");
    const Expr cost = cost_of(b, b.size(128, 6), b.size(784, 20), b.size(500, 12), "layer");
    const Grads grads = gradients(cost, b.parameters()) + l2_penalty(b.parameters(), 1e-4);
    b.output(cost, "cost");
    b.output(global_norm(grads), "norm");
    b.update(adamw(clip_by_global_norm(grads, 0.5), cosine_decay(step, 0.01, 20, {.warm_up = 5})));
}

// A parameter and a schedule for each.
GRAPH(every_optimizer_step) {
    const Expr step = b.number(3, "step");
    // By themselves: compilers choose in which order the operands of a sum are made.
    const Expr second = cost_of(b, b.size(64, 5), b.size(100, 9), b.size(64, 8), "second"),
               cost = cost_of(b, b.size(64, 5), b.size(100, 9), b.size(64, 8), "first") + second;
    const std::vector<Shared>& p = b.parameters();
    b.output(cost, "cost");
    b.update(nesterov(clip_by_value(gradients(cost, {p[0]}), 0.1), step_decay(step, 0.1, 0.5, 2)));
    b.update(adagrad(clip_by_norm(gradients(cost, {p[1]}), 0.1), exponential_decay(step, 0.1, 0.9)));
    b.update(rmsprop(gradients(cost, {p[2]}), warm_up(step, 0.01, 5), {.momentum = 0.9, .centered = true}));
    b.update(momentum(gradients(cost, {p[3]}), piecewise_constant(step, {2, 4}, {0.1, 0.01, 0.001})));
}

GRAPH(gradient_sum_step) {
    const Expr cost = cost_of(b, b.size(64, 5), b.size(100, 9), b.size(64, 8), "layer");
    const GradSum sum(gradients(cost, b.parameters()));
    b.output(cost, "cost");
    b.update(sum.add());
}

GRAPH(gradient_sum_end) {
    const Expr cost = cost_of(b, b.size(64, 5), b.size(100, 9), b.size(64, 8), "layer");
    const GradSum sum(gradients(cost, b.parameters()));
    b.update(sgd(sum.mean(), 0.1) + sum.clear());
}
