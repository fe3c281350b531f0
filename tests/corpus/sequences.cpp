// Unrolled recurrences, and stencils stepped by updates.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

Expr laplacian(const Expr& u) {
    const auto shifted = [&](int i, int j) {
        return u[{Slice{1 + i, i == 1 ? Slice{}.stop : std::optional<Expr>(i - 1)},
                  Slice{1 + j, j == 1 ? Slice{}.stop : std::optional<Expr>(j - 1)}}];
    };
    return shifted(1, 0) + shifted(-1, 0) + shifted(0, 1) + shifted(0, -1) - 4 * shifted(0, 0);
}

}  // namespace

GRAPH(gru_step) {
    const std::int64_t width = 48, features = 20, length = 12;
    const Expr x = b.floats({length, unknown(b.size(32, 3)), features}, "x"),
               target = b.floats({unknown(b.size(32, 3)), width}, "target");
    const auto gate = [&](const char* name) {
        const Shared u = b.weights({width, width}, std::string("u_") + name),
                     w = b.weights({features, width}, std::string("w_") + name);
        return std::pair(w, u);
    };
    const auto [wz, uz] = gate("update");
    const auto [wr, ur] = gate("reset");
    const auto [wn, un] = gate("new");
    const Shared bz = b.bias(width, "b_update"), br = b.bias(width, "b_reset"), bn = b.bias(width, "b_new");
    Expr h = zeros_like(target);
    for (std::int64_t t = 0; t < length; ++t) {
        const Expr z = sigmoid(dot(x[t], wz) + dot(h, uz) + bz), r = sigmoid(dot(x[t], wr) + dot(h, ur) + br);
        const Expr n = tanh(dot(x[t], wn) + dot(r * h, un) + bn);
        h = (1 - z) * n + z * h;
    }
    const Expr loss = mean(sqr(h - target));
    b.output(loss, "loss");
    b.update(sgd(loss, b.parameters(), 0.1));
}

// All states, with an input that is known before the recurrence begins.
GRAPH(rnn_states) {
    const std::int64_t width = 32, length = 10;
    const Expr x = b.floats({length, b.size(16, 3), width}, "x");
    const Shared w = b.weights({width, width}, "w"), u = b.weights({width, width}, "u");
    const Expr inputs = dot(x, w);
    std::vector<Expr> states;
    Expr h = zeros_like(x[0]);
    for (std::int64_t t = 0; t < length; ++t) {
        h = tanh(inputs[t] + dot(h, u));
        states.push_back(expand_dims(h, 0));
    }
    b.output(concatenate(states), "states");
}

GRAPH(heat_step) {
    const std::int64_t n = b.size(1024, 40);
    const Shared u = b.variable({n, n}, "u");
    const Expr inner = laplacian(u) * 0.1;
    b.update({{u, u + pad(inner, {{1, 1}, {1, 1}})}});
}

// Differences of neighbours in images of whatever size: total variation, with its gradient.
GRAPH(total_variation) {
    const Expr x = b.floats({unknown(b.size(1024, 30)), unknown(b.size(1000, 20))}, "x");
    const Slice first{{}, Expr(-1)}, later{Expr(1), {}};
    const Expr rows = x[Index{later, colon}] - x[Index{first, colon}],
               columns = x[Index{colon, later}] - x[Index{colon, first}];
    const Expr cost = sum(sqr(rows)) + sum(sqr(columns));
    b.output(cost, "cost");
    b.output(grad(cost, x), "gradient");
}

GRAPH(heat_by_convolution) {
    b.form_of("heat_step");
    const std::int64_t n = b.size(1024, 40);
    const Shared u = b.variable({n, n}, "u");
    const Array cross(std::vector<float>{0, 1, 0, 1, -4, 1, 0, 1, 0}, {1, 1, 3, 3});
    const Expr inner = reshape(conv2d(reshape(u, {1, 1, n, n}), constant(cross)), {n - 2, n - 2}) * 0.1;
    b.update({{u, u + pad(inner, {{1, 1}, {1, 1}})}});
}

// The wave equation: two variables change places.
GRAPH(wave_step) {
    const std::int64_t n = b.size(512, 24);
    const Shared now = b.variable({n, n}, "now"), before = b.variable({n, n}, "before");
    const Expr next = 2 * now - before + pad(laplacian(now), {{1, 1}, {1, 1}}) * 0.25;
    b.output(sum(sqr(next)), "energy");
    b.update({{before, Expr(now)}, {now, next}});
}

GRAPH(life_step) {
    const std::int64_t n = b.size(1000, 30);
    const Shared cells = b.variable({n, n}, "cells", {0, 1}, uint8);
    const Expr around = pad(cells, {{1, 1}, {1, 1}});
    Expr count;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            if (i == 1 && j == 1) continue;
            const Expr one = around[{Slice{i, i + n}, Slice{j, j + n}}];
            count = count.is_null() ? one : count + one;
        }
    const Expr alive = logical_or(eq(count, 3), logical_and(eq(count, 2), cells));
    b.output(sum(alive), "alive");
    b.update({{cells, cast(alive, uint8)}});
}

// Five points of a long row, twice.
GRAPH(smooth_row) {
    const Expr x = b.floats({unknown(b.size(1000000, 300))}, "x");
    const auto smooth = [](const Expr& y) {
        const auto from = [&](int k) {
            return y[Slice{k, k == 4 ? Slice{}.stop : std::optional<Expr>(k - 4)}];
        };
        return (from(0) + 4 * from(1) + 6 * from(2) + 4 * from(3) + from(4)) / 16;
    };
    b.output(smooth(smooth(x)), "smooth");
}

// A sum up to each place, by a triangle.
GRAPH(cumulative_by_triangle) {
    const Expr x = b.floats({b.size(128, 20), 30}, "x");
    const Expr place = range(0, x.length(0));
    const Expr before = cast(le(expand_dims(place, 0), expand_dims(place, 1)), float32);
    b.output(dot(before, x), "sums");
}

// A causal convolution of a sequence, an image of one row, of which a tap looks 4 elements back.
GRAPH(causal_step) {
    const std::int64_t length = b.size(500, 21);
    const Expr h = b.floats({unknown(b.size(32, 3)), length, 32}, "h");
    const Shared w = b.variable({64, 32, 1, 2}, "w");
    const Expr row = expand_dims(transpose(h, {0, 2, 1}), 2),
               y = conv2d(pad(row, {{0, 0}, {0, 0}, {0, 0}, {4, 0}}), w,
                          {.dilation = Size2(1, 4), .filter_flip = false});
    const Expr loss = mean(sum(sqr(y), {1, 2}));
    b.output(loss, "loss");
    b.update(sgd(loss, {w}, 0.1));
}

GRAPH(causal_step_by_products) {
    b.form_of("causal_step");
    const std::int64_t length = b.size(500, 21);
    const Expr h = b.floats({unknown(b.size(32, 3)), length, 32}, "h");
    const Shared w = b.variable({64, 32, 1, 2}, "w");
    const Expr past = pad(h, {{0, 0}, {4, 0}, {0, 0}})[{colon, Slice{0, length}}];
    const auto tap = [&](int k) { return transpose(w[{colon, colon, 0, k}]); };
    const Expr y = dot(past, tap(0)) + dot(h, tap(1));
    const Expr loss = mean(sum(sqr(y), 2));
    b.output(loss, "loss");
    b.update(sgd(loss, {w}, 0.1));
}

// A wave on a torus, in two fields that are stepped together.
GRAPH(periodic_wave) {
    const Dims shape = {b.size(512, 18), b.size(640, 33)};
    const Shared height = b.variable(shape, "height"), speed = b.variable(shape, "speed");
    const Expr u = height;
    const Expr force = roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4 * u;
    const Expr next = speed + 0.1 * force;
    b.output(max(stack({u, next}), {1, 2}), "greatest");
    b.update({{speed, next}, {height, u + 0.1 * next}});
}
