// Reductions over every subset of axes, forms of the same sum, positions of maxima, and losses.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

using Reduce = Expr (*)(const Expr&, const Axes&, ReduceOptions, Where);

void every_subset(Builder& b, const Expr& x, Reduce reduce) {
    for (int subset = 1; subset < 16; ++subset) {
        Axes axes;
        std::string name = "over";
        for (int axis = 0; axis < 4; ++axis)
            if (subset >> axis & 1) {
                axes.push_back(axis);
                name += " " + std::to_string(axis);
            }
        b.output(reduce(x, axes, {}, Where::current()), name);
    }
}

Expr four_axes(Builder& b) {
    const std::int64_t n = b.size(24, 5);
    return b.floats({n, b.size(32, 6), b.size(20, 7), b.size(40, 19)}, "x");
}

}  // namespace

GRAPH(sum_every_subset) { every_subset(b, four_axes(b), sum); }
GRAPH(max_every_subset) { every_subset(b, four_axes(b), max); }

GRAPH(sum_every_subset_unknown) {
    const Expr x = b.floats({unknown(b.size(24, 5)), unknown(6), unknown(7), unknown(b.size(40, 19))}, "x");
    every_subset(b, x, sum);
}

GRAPH(sum_rows) {
    const Expr x = b.floats({1024, b.size(4096, 64)}, "x");
    b.output(sum(x, {1}), "sums");
}

GRAPH(sum_rows_reshaped) {
    b.form_of("sum_rows");
    const Expr x = b.floats({1024, b.size(4096, 64)}, "x");
    b.output(reshape(sum(reshape(x, {32, 32, b.size(4096, 64)}), {2}), {1024}), "sums");
}

GRAPH(max_planes) {
    const Expr x = b.floats({b.size(64, 4), 16, 28, 28}, "x");
    b.output(max(x, {2, 3}), "maxima");
}

GRAPH(max_planes_as_rows) {
    b.form_of("max_planes");
    const Expr x = b.floats({b.size(64, 4), 16, 28, 28}, "x");
    b.output(max(flatten(x, 3), {2}), "maxima");
}

GRAPH(sum_planes) {
    const Expr x = b.floats({b.size(64, 4), 16, 28, b.size(28, 26)}, "x");
    b.output(sum(x, {2, 3}), "sums");
    b.output(argmax(x, {2, 3}), "positions");
    b.output(max(x, {1, 3}), "maxima");
}

// In another order of axes, from the end, and by one axis.
GRAPH(sum_planes_turned) {
    b.form_of("sum_planes");
    const std::int64_t width = b.size(28, 26);
    const Expr x = b.floats({b.size(64, 4), 16, 28, width}, "x");
    b.output(sum(flip(transpose(x, {3, 0, 2, 1}), 0), {0, 2}), "sums");
    b.output(argmax(reshape(x, {b.size(64, 4), 16, 28 * width}), {2}), "positions");
    b.output(max(transpose(x, {0, 2, 3, 1}), {2, 3}), "maxima");
}

GRAPH(strided_rows) {
    const Expr x = b.floats({unknown(b.size(1000, 20)), b.size(4096, 96)}, "x");
    const Expr every_second = x[{colon, Slice{.step = 2}}];
    b.output(sum(every_second, {1}), "sums");
    b.output(argmin(flip(x, 1), {1}), "positions from the end");
}

GRAPH(argmax_rows) {
    const Expr x = b.floats({unknown(b.size(1000, 20)), b.size(4096, 48)}, "x");
    b.output(argmax(x, {1}), "positions");
    b.output(max(x, {1}), "maxima");
}

GRAPH(argmax_rows_by_comparison) {
    b.form_of("argmax_rows");
    const std::int64_t n = b.size(4096, 48);
    const Expr x = b.floats({unknown(b.size(1000, 20)), n}, "x");
    const Expr most = max(x, {1}, {.keepdims = true});
    const Expr place = broadcast_to(expand_dims(range(0, n), 0), {x.length(0), n});
    b.output(min(where(eq(x, most), place, n), {1}), "positions");
    b.output(max(x, {1}), "maxima");
}

GRAPH(argmax_columns) {
    const Expr x = b.floats({b.size(500, 20), b.size(300, 33)}, "x");
    b.output(argmax(x, {0}), "positions");
    b.output(argmin(x, {0}), "positions of minima");
    b.output(argmax(x), "position");
}

GRAPH(prod_gradient) {
    const Expr x = b.floats({b.size(200, 8), b.size(64, 9)}, "x", {0.5, 1.5});
    const Expr y = prod(x, {1});
    b.output(y, "products");
    b.output(grad(sum(y), x), "gradient");
}

GRAPH(sums_of_integers) {
    const Expr bytes = b.bytes({unknown(b.size(1000, 17)), 100}, "bytes"),
               words = b.input(int16, {unknown(b.size(1000, 17)), 100}, "words", {-30000, 30000}),
               longs = b.input(int64, {50}, "longs", {-1e15, 1e15});
    b.output(sum(bytes, {1}), "bytes");
    b.output(sum(bytes, {0}), "columns of bytes");
    b.output(mean(bytes), "mean of bytes");
    b.output(sum(words), "words");
    b.output(prod(longs), "product");
    b.output(max(words, {0}), "maxima");
    b.output(any(gt(words, 29990), {1}), "any");
    b.output(all(gt(words, -29990), {0}), "all");
}

// One long row, in chunks; a second pass over it.
GRAPH(long_sums) {
    const Expr x = b.floats({unknown(b.size(4000000, 5000))}, "x");
    const Expr m = mean(x);
    b.output(m, "mean");
    b.output(mean(sqr(x - m)), "variance");
    b.output(logsumexp(x), "logsumexp");
    b.output(max(abs(x)), "largest");
}

GRAPH(sum_of_sums) {
    const Expr x = b.floats({b.size(200, 9), b.size(300, 21)}, "x");
    b.output(sum(exp(sum(x, {1})) * sum(abs(x), {1})), "rows");
    b.output(sum(exp(mean(x, {0})) * mean(abs(x), {0})), "columns");
}

// Sums that have nothing to do with each other.
GRAPH(independent_sums) {
    for (int k = 0; k < 24; ++k) {
        const std::string name = "x" + std::to_string(k);
        b.output(sum(tanh(b.floats({unknown(10 + k)}, name))), name);
    }
}

// ---- Losses
// ---------------------------------------------------------------------------------------------------

GRAPH(softmax_forms) {
    const Expr x = b.floats({unknown(b.size(1000, 13)), b.size(100, 21)}, "x", {-9, 9});
    b.output(softmax(x), "softmax");
    b.output(softmax(x, 0), "of columns");
    b.output(log_softmax(x), "logarithm");
    b.output(logsumexp(x, {1}), "logsumexp");
    b.output(grad(sum(sqr(softmax(x))), x), "gradient");
}

GRAPH(crossentropy) {
    const Expr x = b.floats({unknown(b.size(10000, 13)), 10}, "x", {-9, 9}),
               labels = b.labels(unknown(b.size(10000, 13)), 10, "labels");
    const Expr loss = mean(softmax_crossentropy(x, labels));
    b.output(loss, "loss");
    b.output(grad(loss, x), "gradient");
}

GRAPH(crossentropy_of_softmax) {
    b.form_of("crossentropy");
    const Expr x = b.floats({unknown(b.size(10000, 13)), 10}, "x", {-9, 9}),
               labels = b.labels(unknown(b.size(10000, 13)), 10, "labels");
    const Expr loss = mean(categorical_crossentropy(softmax(x), labels));
    b.output(loss, "loss");
    b.output(grad(loss, x), "gradient");
}

GRAPH(crossentropy_of_many_classes) {
    const std::int64_t rows = b.size(1000, 20), classes = b.size(1000, 70);
    const Expr x = b.floats({rows, classes}, "x", {-9, 9}), labels = b.labels(rows, classes, "labels");
    const Expr loss = mean(softmax_crossentropy(x, labels));
    b.output(loss, "loss");
    b.output(grad(loss, x), "gradient");
}

GRAPH(prod_gradient_columns) {
    const Expr x = b.floats({b.size(500, 20), b.size(300, 9)}, "x", {0.5, 1.5});
    b.output(grad(sum(prod(x, {0})), x), "gradient");
}

GRAPH(crossentropy_by_hand) {
    b.form_of("crossentropy");
    const Expr x = b.floats({unknown(b.size(10000, 13)), 10}, "x", {-9, 9}),
               labels = b.labels(unknown(b.size(10000, 13)), 10, "labels");
    const Expr loss = -mean(sum(log(softmax(x)) * one_hot(labels, 10), {1}));
    b.output(loss, "loss");
    b.output(grad(loss, x), "gradient");
}

GRAPH(crossentropy_dense) {
    const Length rows = unknown(b.size(1000, 13));
    const Expr x = b.floats({rows, 10}, "x", {-9, 9}), target = softmax(b.floats({rows, 10}, "target"));
    const Expr loss = mean(categorical_crossentropy(softmax(x), target));
    b.output(loss, "loss");
    b.output(grad(loss, x), "gradient");
    const Expr p = sigmoid(x);
    b.output(mean(binary_crossentropy(p, target)), "binary");
    b.output(grad(sum(binary_crossentropy(p, target)), x), "gradient of binary");
}
