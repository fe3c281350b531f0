// Products of more than two matrices' worth of axes, as users write them by hand: broadcast, multiply, sum.
// Attention, layer normalisation, products of integers with scales.
#include <cmath>

#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

// [h, m, k] and [h, n, k] -> [h, m, n].
Expr products_of_rows(const Expr& a, const Expr& b) {
    return sum(expand_dims(a, 2) * expand_dims(b, 1), {3});
}

// [h, m, k] and [h, k, n] -> [h, m, n].
Expr products(const Expr& a, const Expr& b) { return sum(expand_dims(a, 3) * expand_dims(b, 1), {2}); }

Expr layer_norm(Builder& b, const Expr& x, std::int64_t width, const std::string& name) {
    const Expr centred = x - mean(x, {-1}, {.keepdims = true});
    const Expr variance = mean(sqr(centred), {-1}, {.keepdims = true});
    // Parameters have the order of these lines, whatever a compiler makes of operands.
    const Expr shift = b.bias(width, "shift_" + name), scale = b.bias(width, "scale_" + name);
    return centred / sqrt(variance + 1e-5) * (scale + 1) + shift;
}

Expr gelu_by_erf(const Expr& x) { return x * 0.5 * (erf(x * std::sqrt(0.5)) + 1); }

struct Heads {
    Expr q, k, v;
};

Heads heads(Builder& b, const Length& rows, std::int64_t depth) {
    const std::int64_t n = b.size(8, 2);
    return {b.floats({n, rows, depth}, "q"), b.floats({n, rows, depth}, "k"),
            b.floats({n, rows, depth}, "v")};
}

void with_gradients(Builder& b, const Expr& y, const Heads& h) {
    b.output(y, "attention");
    const std::vector<Expr> g = grad(sum(sqr(y)), {h.q, h.k, h.v});
    b.output(g[0], "gradient of q");
    b.output(g[1], "gradient of k");
    b.output(g[2], "gradient of v");
}

}  // namespace

GRAPH(attention) {
    const Heads h = heads(b, b.size(128, 12), 64);
    with_gradients(b, products(softmax(products_of_rows(h.q, h.k) / 8), h.v), h);
}

GRAPH(attention_by_heads) {
    b.form_of("attention");
    const Heads h = heads(b, b.size(128, 12), 64);
    std::vector<Expr> parts;
    for (std::int64_t k = 0; k < b.size(8, 2); ++k)
        parts.push_back(expand_dims(dot(softmax(dot(h.q[k], transpose(h.k[k])) / 8), h.v[k]), 0));
    with_gradients(b, concatenate(parts), h);
}

GRAPH(attention_unknown_length) {
    const Heads h = heads(b, unknown(b.size(512, 20)), 64);
    b.output(products(softmax(products_of_rows(h.q, h.k) / 8), h.v), "attention");
}

// The factors lie in one tensor, between those of other heads.
GRAPH(attention_matmul) {
    const std::int64_t rows = b.size(128, 12), heads = b.size(8, 2), depth = b.size(64, 16);
    const Expr all = b.floats({rows, 3, heads, depth}, "all");
    const auto part = [&](int which) { return transpose(all[{colon, which}], {1, 0, 2}); };
    const Expr scores = matmul(part(0), transpose(part(1), {0, 2, 1})) / 8;
    b.output(transpose(matmul(softmax(scores), part(2)), {1, 0, 2}), "attention");
    b.output(batched_dot(part(0), part(1)[{colon, 0}]), "scores of the first place");
}

// Pre-normalised, one layer, with a causal mask.
GRAPH(transformer_layer) {
    const std::int64_t rows = b.size(64, 8), width = 64, heads = 4, depth = 16;
    const Expr x = b.floats({rows, width}, "x");
    const auto split = [&](const Expr& y) { return transpose(reshape(y, {rows, heads, depth}), {1, 0, 2}); };
    const Expr n = layer_norm(b, x, width, "first");
    const Expr q = split(dot(n, b.weights({width, width}, "w_q"))),
               k = split(dot(n, b.weights({width, width}, "w_k"))),
               v = split(dot(n, b.weights({width, width}, "w_v")));
    const Expr place = range(0, rows);
    const Expr seen = le(expand_dims(place, 0), expand_dims(place, 1));
    const Expr scores = where(seen, products_of_rows(q, k) / std::sqrt(double(depth)), -1e9);
    const Expr mixed = reshape(transpose(products(softmax(scores), v), {1, 0, 2}), {rows, width});
    const Expr y = x + dot(mixed, b.weights({width, width}, "w_mix"));
    const Expr w_up = b.weights({width, 4 * width}, "w_up");
    const Expr inner = gelu_by_erf(dot(layer_norm(b, y, width, "second"), w_up));
    const Expr z = y + dot(inner, b.weights({4 * width, width}, "w_down"));
    b.output(z, "z");
    b.update(adam(mean(sqr(z)), b.parameters()));
}

// One token is generated: its key and value enter the caches, and all places up to its own are looked at.
// Four heads of queries share each pair of keys and values; the layer behind is gated.
GRAPH(cached_attention_step) {
    const std::int64_t groups = b.size(4, 2), heads = 4 * groups, places = b.size(2048, 24),
                       depth = b.size(64, 8), width = heads * depth;
    const Expr x = b.floats({width}, "x"), place = b.number(5, "place");
    const Shared keys = b.variable({groups, places, depth}, "keys"),
                 values = b.variable({groups, places, depth}, "values");
    const auto projected = [&](std::int64_t n, const char* name) {
        return reshape(dot(x, b.weights({width, n * depth}, name)), {n, depth});
    };
    const Expr q = projected(heads, "w_q"), k = projected(groups, "w_k"), v = projected(groups, "w_v");
    const Expr all_keys = set_subtensor(keys, {colon, place}, k),
               all_values = set_subtensor(values, {colon, place}, v);
    const Expr scores = matmul(repeat(all_keys, 4, 0), expand_dims(q, 2))[{colon, colon, 0}];
    const Expr weights = softmax(where(le(range(0, places), place), scores / std::sqrt(double(depth)), -1e9));
    const Expr mixed = sum(expand_dims(weights, 2) * repeat(all_values, 4, 0), {1});
    const Expr y = x + reshape(mixed, {width});
    const Expr up = dot(y, b.weights({width, 2 * width}, "w_up"));
    const Expr gate = dot(y, b.weights({width, 2 * width}, "w_gate"));
    b.output(y + dot(silu(gate) * gelu(up), b.weights({2 * width, width}, "w_down")), "y");
    b.update({{keys, all_keys}, {values, all_values}});
}

GRAPH(batched_product) {
    const std::int64_t n = b.size(16, 3), m = b.size(96, 10);
    const Expr x = b.floats({n, m, 64}, "x"), y = b.floats({n, 64, 80}, "y");
    b.output(products(x, y), "product");
}

// Both factors along k.
GRAPH(batched_product_of_rows) {
    const std::int64_t n = b.size(16, 3), m = b.size(96, 10);
    const Expr x = b.floats({n, m, 64}, "x"), y = b.floats({n, 80, 64}, "y");
    b.output(products_of_rows(x, y), "product");
}

// One matrix, written as the product of rows.
GRAPH(product_by_sum) {
    const Expr x = b.floats({unknown(b.size(256, 9)), 100}, "x"), y = b.floats({100, 80}, "y");
    b.output(sum(expand_dims(x, 2) * expand_dims(y, 0), {1}), "product");
}

GRAPH(product_by_dot) {
    b.form_of("product_by_sum");
    const Expr x = b.floats({unknown(b.size(256, 9)), 100}, "x"), y = b.floats({100, 80}, "y");
    b.output(dot(x, y), "product");
}

GRAPH(product_forms) {
    const Expr a = b.floats({64, 100}, "a"), c = b.floats({100, 48}, "c"), v = b.floats({100}, "v"),
               t = b.floats({3, 7, 64}, "t");
    b.output(dot(a, c), "NN");
    b.output(dot(transpose(c), transpose(a)), "TT");
    b.output(dot(transpose(a), b.floats({64, 48}, "d")), "TN");
    b.output(dot(a, transpose(b.floats({32, 100}, "e"))), "NT");
    b.output(dot(a, v), "matrix and vector");
    b.output(dot(v, c), "vector and matrix");
    b.output(dot(v, v), "vectors");
    b.output(dot(t, a), "rank 3");
}

// Weights of eight bits with a scale for each column.
GRAPH(int8_weights) {
    const std::int64_t from = b.size(4096, 256), to = b.size(4096, 192);
    const Expr x = b.floats({b.size(256, 5), from}, "x");
    const Shared w = b.variable({from, to}, "w", {-127, 127}, int8), scale = b.variable({to}, "scale");
    b.output(dot(x, cast(w, float32) * scale), "y");
}

GRAPH(int8_weights_scaled_after) {
    b.form_of("int8_weights");
    const std::int64_t from = b.size(4096, 256), to = b.size(4096, 192);
    const Expr x = b.floats({b.size(256, 5), from}, "x");
    const Shared w = b.variable({from, to}, "w", {-127, 127}, int8), scale = b.variable({to}, "scale");
    b.output(dot(x, cast(w, float32)) * scale, "y");
}

// Quantised layers: in integers, in floats with scales, with zero points, and requantised.
GRAPH(products_of_bytes) {
    const std::int64_t n = b.size(256, 20), k = b.size(784, 70), m = b.size(512, 24);
    const Expr x = b.bytes({n, k}, "x"), w = b.input(int8, {k, m}, "w", {-128, 127}),
               second = b.input(int8, {m, b.size(128, 16)}, "second", {-128, 127}),
               scale = b.floats({m}, "scale");
    const auto wide = [](const Expr& e) { return cast(e, float32); };
    const Expr sums = dot(x, w);
    b.output(sums, "in integers");
    b.output(dot(wide(x) / 255, wide(w) * scale), "with scales");
    b.output(dot(cast(x, int32) - 128, cast(w, int32)), "with a zero point");
    b.output(dot(cast(clip(round(wide(sums) / 4096), -127, 127), int8), second), "requantised");
}

GRAPH(layer_norm_gradients) {
    const Expr x = b.floats({unknown(b.size(512, 7)), 96}, "x");
    const Expr y = gelu_by_erf(layer_norm(b, x, 96, "norm"));
    b.output(y, "y");
    b.output(grad(sum(sqr(y)), x), "gradient");
}

// Distances between all pairs of rows.
GRAPH(pairwise_distances) {
    const Expr x = b.floats({unknown(b.size(500, 11)), 8}, "x"),
               y = b.floats({unknown(b.size(300, 7)), 8}, "y");
    const Expr squares = sum(sqr(expand_dims(x, 1) - expand_dims(y, 0)), {2});
    b.output(exp(-squares), "kernel");
    b.output(argmin(squares, {1}), "nearest");
}
