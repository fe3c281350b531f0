// Whole data sets at once, mostly bytes: covariance, k-means, moments; look-ups in tables and their
// gradients.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

// The first half of whitening.
GRAPH(covariance_bytes) {
    const std::int64_t count = b.size(60000, 100), pixels = b.size(784, 50);
    const Expr x = cast(b.bytes({count, pixels}, "images"), float32) / 255;
    const Expr m = mean(x, {0});
    b.output(dot(transpose(x), x) / count - expand_dims(m, 1) * expand_dims(m, 0), "covariance");
}

GRAPH(covariance_int8) {
    const Expr raw = b.input(int8, {unknown(b.size(60000, 100)), b.size(784, 50)}, "images", {-128, 127});
    const Expr x = cast(raw, float32) / 128;
    const Expr centred = x - mean(x, {0});
    b.output(dot(transpose(centred), centred) / x.length(0), "covariance");
}

GRAPH(whiten) {
    const std::int64_t pixels = b.size(784, 40);
    const Expr x = cast(b.bytes({unknown(b.size(10000, 30)), pixels}, "images"), float32) / 255;
    const Shared m = b.variable({pixels}, "mean"), z = b.variable({pixels, pixels}, "zca");
    b.output(dot(x - m, z), "white");
}

// New centres of 64 clusters of bytes.
GRAPH(kmeans_step) {
    const std::int64_t count = b.size(60000, 90), pixels = b.size(784, 30), clusters = b.size(64, 7);
    const Shared images = b.variable({count, pixels}, "images", {0, 255}, uint8);
    const Shared centres = b.variable({clusters, pixels}, "centres", {0, 1});
    const Expr x = cast(images, float32) / 255;
    const Expr squares = sum(sqr(centres), {1}) - 2 * dot(x, transpose(centres));
    const Expr member = one_hot(argmin(squares, {1}), clusters);
    const Expr sizes = expand_dims(sum(member, {0}), 1);
    b.output(sum(min(squares, {1})), "inertia");
    b.update({{centres, where(gt(sizes, 0), dot(transpose(member), x) / maximum(sizes, 1), Expr(centres))}});
}

GRAPH(standardise) {
    const Expr x = b.floats({unknown(b.size(100000, 60)), 24}, "x");
    const Expr centred = x - mean(x, {0});
    b.output(centred / sqrt(mean(sqr(centred), {0})), "standard");
}

GRAPH(histogram) {
    const Expr x = b.bytes({unknown(b.size(100000, 200))}, "x");
    b.output(sum(one_hot(cast(x / 16, int32), 16), {0}), "counts");
}

GRAPH(image_statistics) {
    const Expr x = cast(b.bytes({unknown(b.size(40000, 12)), 3, 32, 32}, "images"), float32);
    b.output(mean(x, {0, 2, 3}), "mean of a channel");
    b.output(mean(sqr(x), {0, 2, 3}), "mean square of a channel");
    b.output(max(x, {1, 2, 3}) - min(x, {1, 2, 3}), "range of an image");
}

// Scaled and shifted as networks want their images.
GRAPH(byte_means) {
    const Expr x = b.bytes({unknown(b.size(1000, 6)), b.size(33, 9), 31, 5}, "images");
    const Expr pixels = cast(x, float32);
    b.output(mean((pixels - 128) / 255, {0, 1, 2}), "mean of a channel");
    b.output(mean(pixels / 255 - 0.5, {1, 2, 3}), "mean of an image");
}

GRAPH(byte_means_of_totals) {
    b.form_of("byte_means");
    const Expr x = b.bytes({unknown(b.size(1000, 6)), b.size(33, 9), 31, 5}, "images");
    b.output((mean(x, {0, 1, 2}) - 128) / 255, "mean of a channel");
    b.output(mean(x, {1, 2, 3}) / 255 - 0.5, "mean of an image");
}

// ---- Tables
// ---------------------------------------------------------------------------------------------------

GRAPH(embedding_step) {
    const std::int64_t words = b.size(100000, 300), rows = b.size(2048, 40);
    const Shared table = b.variable({words, 64}, "table");
    const Expr index = b.input(int32, {rows}, "index", {0, static_cast<double>(words - 1)});
    const Expr y = gather(table, index);
    const Expr loss = mean(sqr(y));
    b.output(loss, "loss");
    b.update(sgd(loss, {table}, 0.1));
}

// Sums and counts of the clusters that arrive are kept from batch to batch.
GRAPH(running_sums) {
    const std::int64_t clusters = b.size(10000, 40), rows = b.size(256, 30);
    const Shared sums = b.variable({clusters, 32}, "sums"), counts = b.variable({clusters}, "counts", {0, 9});
    const Expr index = b.input(int32, {rows}, "index", {0, static_cast<double>(clusters - 1)});
    const Expr x = b.floats({rows, 32}, "x");
    b.update({{sums, inc_subtensor(sums, {index}, x)}, {counts, inc_subtensor(counts, {index}, 1)}});
}

GRAPH(embedding_gradient) {
    const Expr table = b.floats({b.size(1000, 40), 16}, "table"),
               index = b.input(int64, {unknown(b.size(200, 25))}, "index", {0, 39});
    b.output(grad(sum(sqr(gather(table, index))), table), "gradient");
}

GRAPH(embedding_gradient_by_product) {
    b.form_of("embedding_gradient");
    const Expr table = b.floats({b.size(1000, 40), 16}, "table"),
               index = b.input(int64, {unknown(b.size(200, 25))}, "index", {0, 39});
    const Expr member = one_hot(index, b.size(1000, 40));
    b.output(dot(transpose(member), 2 * gather(table, index)), "gradient");
}

// A long vector, of which places are looked up.
GRAPH(vector_lookup_gradient) {
    const Expr line = b.floats({b.size(50000, 300)}, "line"),
               index = b.input(int32, {unknown(b.size(5000, 60))}, "index", {0, 299});
    b.output(grad(sum(sqr(gather(line, index))), line), "gradient");
}

// Two towers that share a table; with Adam every row changes.
GRAPH(shared_table_step) {
    const std::int64_t words = b.size(50000, 200), rows = b.size(1024, 30);
    const Shared table = b.variable({words, 32}, "table");
    const double last = static_cast<double>(words - 1);
    const Expr i = b.input(int32, {rows}, "i", {0, last}), j = b.input(int64, {rows, 3}, "j", {0, last});
    const Expr x = gather(table, i), y = sum(gather(table, j), {1});
    const Expr loss = sum(softplus(-sum(x * b.floats({rows, 32}, "w"), {1}))) + mean(y);
    b.output(loss, "loss");
    b.update(sgd(loss, {table}, 0.1));
}

GRAPH(table_adam_step) {
    const std::int64_t words = b.size(20000, 200);
    const Shared table = b.variable({words, 16}, "table");
    const Expr index = b.input(int32, {unknown(b.size(1000, 50))}, "index", {0, 199});
    const Expr loss = mean(tanh(gather(table, index)));
    b.output(loss, "loss");
    b.update(adam(loss, {table}, 0.01));
}

// Words before the next one: Bengio et al. 2003.
GRAPH(language_model_step) {
    const std::int64_t words = b.size(5000, 50), width = 16, batch = b.size(128, 6);
    const double last = static_cast<double>(words - 1);
    const Expr before = b.input(int32, {batch, 3}, "before", {0, last}),
               next = b.input(int32, {batch}, "next", {0, last});
    const Shared table = b.weights({words, width}, "table");
    const Expr x = reshape(gather(table, before), {batch, 3 * width});
    const Shared b_hidden = b.bias(32, "b_hidden"), w_hidden = b.weights({3 * width, 32}, "w_hidden"),
                 b_out = b.bias(words, "b_out"), w_out = b.weights({32, words}, "w_out");
    const Expr h = tanh(dot(x, w_hidden) + b_hidden);
    const Expr loss = mean(softmax_crossentropy(dot(h, w_out) + b_out, next));
    b.output(loss, "loss");
    b.update(sgd(loss, b.parameters(), 0.1));
}

// ---- Windows of a series of unknown length

GRAPH(windows_by_ranges) {
    const Expr x = b.floats({unknown(b.size(20000, 90))}, "x"), w = b.floats({24}, "w");
    const Expr y = sum(x[expand_dims(range(0, x.length(0) - 23), 1) + range(0, 24)] * w, {1});
    b.output(y, "filtered");
    b.output(grad(sum(sqr(y)), x), "gradient");
}

GRAPH(windows_by_slices) {
    b.form_of("windows_by_ranges");
    const Expr x = b.floats({unknown(b.size(20000, 90))}, "x"), w = b.floats({24}, "w");
    const Expr count = x.length(0) - 23;
    std::vector<Expr> lags;
    for (int k = 0; k < 24; ++k) lags.push_back(x[Slice{k, count + k}]);
    const Expr y = sum(stack(lags, 1) * w, {1});
    b.output(y, "filtered");
    b.output(grad(sum(sqr(y)), x), "gradient");
}

GRAPH(overlapping_frames) {
    const Expr x = b.floats({unknown(b.size(20000, 90))}, "x");
    const Expr frames = x[expand_dims(range(0, floordiv(x.length(0) - 32, 8) + 1), 1) * 8 + range(0, 32)];
    const Expr energy = log(mean(sqr(frames), {1}) + 1e-3F);
    b.output(energy, "energy");
    b.output(grad(sum(energy), x), "gradient");
}

GRAPH(rows_and_numbers) {
    const Expr x = b.floats({unknown(b.size(5000, 30)), 20}, "x");
    const Expr start = b.number(4, "start"), index = b.input(int32, {unknown(9)}, "index", {0, 29});
    b.output(rows(x, start, 5), "rows");
    b.output(x[index], "gathered");
    b.output(x[{start, colon}], "row");
    b.output(x[{Slice{start, start + 8}, Slice{2, 18, 3}}], "moving slice");
    b.output(sum(x[index] * x[Slice{start, start + 9}], {1}), "products");
}

GRAPH(moments) {
    const Expr x = b.floats({b.size(64, 3), b.size(16, 5), b.size(28, 9), b.size(28, 11)}, "x", {-2, 2});
    const Expr bytes = b.bytes({b.size(2000, 40), b.size(784, 33)}, "bytes");
    b.output(variance(x, {2, 3}, {.keepdims = true}), "of planes");
    b.output(variance(x, {0, 2, 3}), "of channels");
    b.output(standard_deviation(bytes, 0, {.ddof = 1}), "of pixels");
}

GRAPH(average_pooling_gradients) {
    const Expr x = b.floats({b.size(32, 2), b.size(16, 3), b.size(28, 12), b.size(28, 13)}, "x", {-1, 1});
    const Expr tiles = average_pool(x, 2), windows = average_pool(x, 3, {.stride = 2, .pad = 1});
    b.output(tiles, "tiles");
    b.output(windows, "windows");
    b.output(grad(sum(sqr(tiles)) + sum(sqr(windows)), x), "gradient");
}

GRAPH(parts_of_matrices) {
    const std::int64_t n = b.size(256, 12);
    const Expr x = b.floats({b.size(8, 2), n, n}, "x", {-2, 2});
    b.output(softmax(where(tril(ones_like(x)), x, -1e9F)), "without the future");
    b.output(triu(x, 1) + 0.5 * eye(n), "triangle");
    b.output(diagonal(x), "diagonals");
    b.output(trace(x), "traces");
}

GRAPH(rows_in_order_of_others) {
    const std::int64_t n = b.size(256, 6), m = b.size(500, 30);
    const Expr x = b.floats({n, m}, "x", {-2, 2}), keys = b.floats({n, m}, "keys", {-2, 2});
    const Expr y = take_along_axis(x, argsort(keys, 1), 1);
    b.output(y, "in order");
    b.output(grad(sum(y * keys), x), "gradient");
}

// Brightness, contrast and saturation of images whose colours lie side by side, then planes.
GRAPH(colour_jitter) {
    const std::int64_t n = b.size(32, 17);
    const Expr x = b.bytes({n, b.size(96, 7), b.size(128, 9), 3}, "x"),
               factors = b.floats({3, n}, "factors", {0.8, 1.2}),
               weights = b.floats({3}, "weights", {0.1, 0.5}), middle = b.floats({3}, "middle", {0.4, 0.5});
    const auto factor = [&](int k) { return reshape(factors[k], {n, 1, 1, 1}); };
    Expr v = clip(cast(x, float32) / 255 * factor(0), 0, 1);
    const Expr grey = reshape(mean(sum(v * weights, 3), {1, 2}), {n, 1, 1, 1});
    v = clip((v - grey) * factor(1) + grey, 0, 1);
    const Expr greys = sum(v * weights, 3, {.keepdims = true});
    v = clip((v - greys) * factor(2) + greys, 0, 1);
    b.output(transpose((v - middle) / 0.25F, {0, 3, 1, 2}), "planes");
    b.output(mean(sqr(v - middle)), "spread");
}

// A gated layer of a stack whose filters lie in one array, taps last.
GRAPH(gated_layer_of_stack) {
    const std::int64_t channels = b.size(32, 5);
    const Expr c = b.floats({b.size(8, 2), b.size(512, 9), 2 * channels}, "c", {-1, 1});
    const Shared filters = b.variable({4, channels, channels, 2}, "filters"),
                 gates = b.variable({4, channels, channels, 2}, "gates");
    const auto product = [&](const Expr& w) {
        return dot(c, reshape(transpose(w[3], {2, 1, 0}), {2 * channels, channels}));
    };
    b.output(tanh(product(filters)) * sigmoid(product(gates)), "gated");
}
