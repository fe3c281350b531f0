// Residual networks with batch normalisation written by hand, and convolutions of every geometry.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

Expr batch_norm(Builder& b, const Expr& x, std::int64_t channels, const std::string& name) {
    const Axes axes = {0, 2, 3};
    const Expr centred = x - mean(x, axes, {.keepdims = true});
    const Expr variance = mean(sqr(centred), axes, {.keepdims = true});
    // Parameters have the order of these lines, whatever a compiler makes of operands.
    const Expr shift = b.bias(channels, "shift_" + name), scale = b.bias(channels, "scale_" + name);
    return centred / sqrt(variance + 1e-5) * channel(scale + 1) + channel(shift);
}

Expr convolution(Builder& b, const Expr& x, std::int64_t from, std::int64_t to, int kernel, int stride,
                 const std::string& name) {
    return conv2d(x, b.weights({to, from, kernel, kernel}, "w_" + name),
                  {.border_mode = half, .subsample = stride, .filter_flip = false});
}

Expr block(Builder& b, const Expr& x, std::int64_t from, std::int64_t to, int stride,
           const std::string& name) {
    Expr h =
        relu(batch_norm(b, convolution(b, x, from, to, 3, stride, name + "_first"), to, name + "_first"));
    h = batch_norm(b, convolution(b, h, to, to, 3, 1, name + "_second"), to, name + "_second");
    const Expr shortcut = from == to && stride == 1
                              ? x
                              : batch_norm(b, convolution(b, x, from, to, 1, stride, name + "_shortcut"), to,
                                           name + "_shortcut");
    return relu(h + shortcut);
}

// He et al. 2016 for CIFAR-10: 6 * blocks + 2 layers.
void residual_network(Builder& b, const Length& batch, int blocks) {
    const Expr x = b.bytes({batch, 3, 32, 32}, "x"), labels = b.labels(batch, 10, "labels");
    Expr h =
        relu(batch_norm(b, convolution(b, (cast(x, float32) - 128) / 64, 3, 16, 3, 1, "first"), 16, "first"));
    std::int64_t from = 16;
    for (int stage = 0; stage < 3; ++stage) {
        const std::int64_t to = std::int64_t{16} << stage;
        for (int k = 0; k < blocks; ++k) {
            h = block(b, h, from, to, stage > 0 && k == 0 ? 2 : 1,
                      "block" + std::to_string(stage) + std::to_string(k));
            from = to;
        }
    }
    // Parameters have the order of these lines, whatever a compiler makes of operands.
    const Expr b_out = b.bias(10, "b_out"), w_out = b.weights({64, 10}, "w_out");
    const Expr y = dot(mean(h, {2, 3}), w_out) + b_out;
    const Expr loss = mean(softmax_crossentropy(y, labels));
    b.output(loss, "loss");
    b.update(momentum(loss, b.parameters(), 0.1, {.momentum = 0.9, .weight_decay = 1e-4}));
}

Expr five_convolutions(Builder& b, const Expr& x, std::int64_t from, std::int64_t channels) {
    Expr h = relu(convolution(b, x, from, channels, 3, 1, "first"));
    for (const std::string name : {"one", "two"}) {
        const Expr inner = relu(convolution(b, h, channels, channels, 3, 1, name + "_first"));
        h = relu(h + convolution(b, inner, channels, channels, 3, 1, name + "_second"));
    }
    return h;
}

void gradients(Builder& b, const Length& batch, std::int64_t channels, std::int64_t filters,
               const Length& side, int kernel, const ConvOptions& options) {
    const Expr x = b.floats({batch, channels, side, side}, "x"),
               w = b.floats({filters, channels, kernel, kernel}, "w");
    const Expr y = conv2d(x, w, options);
    b.output(y, "forward");
    const std::vector<Expr> g = grad(sum(sqr(y)), {x, w});
    b.output(g[0], "gradient of the image");
    b.output(g[1], "gradient of the filters");
}

}  // namespace

GRAPH(resnet8_step) { residual_network(b, unknown(b.size(32, 2)), 1); }

GRAPH(resnet20_step) { residual_network(b, b.size(128, 1), 3); }

// Five convolutions of 16 channels and no normalisation, forward and backward.
GRAPH(residual_five) {
    const std::int64_t batch = b.size(32, 2);
    const Expr x = b.floats({batch, 16, 28, 28}, "x"), target = b.floats({batch, 10}, "target");
    const Expr h = five_convolutions(b, x, 16, 16);
    const Expr y = dot(flatten(h, 2), b.weights({16 * 28 * 28, 10}, "w_out"));
    const Expr loss = mean(sqr(y - target));
    b.output(loss, "loss");
    b.update(sgd(loss, b.parameters(), 0.01));
}

// With a small product at their end, whose rows are those of the images.
GRAPH(residual_five_pooled) {
    const std::int64_t batch = b.size(32, 3), side = b.size(32, 6), channels = b.size(64, 16);
    const Expr x = b.bytes({batch, 3, side, side}, "x"), labels = b.labels(batch, 10, "labels");
    const Expr h = five_convolutions(b, cast(x, float32) / 255, 3, channels);
    const Expr b_out = b.bias(10, "b_out"), w_out = b.weights({channels, 10}, "w_out");
    const Expr y = dot(mean(h, {2, 3}), w_out) + b_out;
    const Expr loss = mean(softmax_crossentropy(y, labels));
    b.output(loss, "loss");
    b.update(sgd(loss, b.parameters(), 0.01));
}

// The forward pass as an evaluation has it: scale and shift are variables.
GRAPH(residual_evaluation) {
    Expr h = b.floats({unknown(b.size(100, 2)), 32, 16, 16}, "x");
    for (const char* name : {"one", "two", "three"}) {
        const std::string n = name;
        const Expr shift = channel(b.bias(32, "shift_" + n)), scale = channel(b.bias(32, "scale_" + n) + 1);
        const Expr y = convolution(b, h, 32, 32, 3, 1, n) * scale + shift;
        h = relu(h + y);
    }
    b.output(mean(h, {2, 3}), "features");
}

GRAPH(conv_3x3) { gradients(b, unknown(b.size(32, 2)), 16, 24, 14, 3, {.border_mode = half}); }
GRAPH(conv_3x3_stride2) { gradients(b, b.size(32, 2), 16, 24, 14, 3, {.border_mode = 1, .subsample = 2}); }
GRAPH(conv_3x3_stride3) { gradients(b, b.size(32, 2), 8, 8, 15, 3, {.border_mode = 1, .subsample = 3}); }
GRAPH(conv_5x5_deep) { gradients(b, b.size(16, 1), 96, 96, b.size(14, 7), 5, {.border_mode = half}); }
GRAPH(conv_patches) { gradients(b, b.size(16, 2), 3, 32, b.size(64, 32), 16, {.subsample = 16}); }
GRAPH(conv_1x1) { gradients(b, b.size(32, 2), 32, 64, 14, 1, {}); }
GRAPH(conv_1x1_stride2) { gradients(b, b.size(32, 2), 32, 64, 14, 1, {.subsample = 2}); }
GRAPH(conv_5x5_bytes) {
    const Expr x = b.bytes({unknown(b.size(100, 3)), 3, 32, 32}, "x"), w = b.floats({16, 3, 5, 5}, "w");
    const Expr y = conv2d((cast(x, float32) - 128) / 64, w);
    b.output(y, "forward");
    b.output(grad(sum(sqr(y)), w), "gradient of the filters");
}
GRAPH(conv_dilated) { gradients(b, b.size(32, 2), 8, 8, 20, 3, {.border_mode = 2, .dilation = 2}); }
GRAPH(conv_full) { gradients(b, b.size(32, 2), 8, 4, 10, 3, {.border_mode = full, .filter_flip = false}); }
GRAPH(conv_uneven) {
    gradients(b, b.size(16, 2), 3, 5, 13, 3,
              {.border_mode = {2, 0}, .subsample = {1, 2}, .dilation = {2, 1}});
}

// Images of whatever size, and as many as come.
GRAPH(conv_any_size) {
    gradients(b, unknown(b.size(32, 2)), 16, 24, unknown(14), 3, {.border_mode = half, .subsample = 2});
}

GRAPH(conv_float64) {
    const Expr x = b.input(float64, {b.size(16, 2), 4, 9, 9}, "x"), w = b.input(float64, {6, 4, 3, 3}, "w");
    const Expr y = conv2d(x, w, {.border_mode = half});
    b.output(y, "forward");
    b.output(grad(sum(sqr(y)), w), "gradient of the filters");
}

GRAPH(conv_groups) {
    const Expr x = b.floats({b.size(32, 2), 32, 14, 14}, "x"), w = b.floats({32, 8, 3, 3}, "w");
    const Expr y = conv2d(x, w, {.border_mode = half, .groups = 4});
    b.output(y, "forward");
    const std::vector<Expr> g = grad(sum(sqr(y)), {x, w});
    b.output(g[0], "gradient of the image");
    b.output(g[1], "gradient of the filters");
}

GRAPH(conv_depthwise) {
    const Expr x = b.floats({b.size(32, 2), 24, 16, 16}, "x"), w = b.floats({24, 1, 3, 3}, "w");
    const Expr y = conv2d(x, w, {.groups = 24});
    b.output(y, "forward");
    const std::vector<Expr> g = grad(sum(sqr(y)), {x, w});
    b.output(g[0], "gradient of the image");
    b.output(g[1], "gradient of the filters");
}

// Groups of channels by slices and a concatenation.
GRAPH(conv_groups_by_slices) {
    const Expr x = b.floats({b.size(32, 2), 32, 14, 14}, "x"), w = b.floats({32, 8, 3, 3}, "w");
    std::vector<Expr> parts;
    for (int g = 0; g < 4; ++g) {
        const Slice channels{8 * g, 8 * (g + 1)};
        parts.push_back(conv2d(x[{colon, channels}], w[channels], {.border_mode = half}));
    }
    const Expr y = concatenate(parts, 1);
    b.output(y, "forward");
    const std::vector<Expr> g = grad(sum(sqr(y)), {x, w});
    b.output(g[0], "gradient of the image");
    b.output(g[1], "gradient of the filters");
}

// A filter for each channel, by nine shifted products.
GRAPH(conv_depthwise_by_places) {
    const Expr x = b.floats({b.size(32, 2), 24, 16, 16}, "x"), w = b.floats({24, 3, 3}, "w");
    Expr y;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const Expr term =
                x[{colon, colon, Slice{i, i + 14}, Slice{j, j + 14}}] * channel(w[{colon, i, j}]);
            y = y.is_null() ? term : y + term;
        }
    b.output(y, "forward");
    const std::vector<Expr> g = grad(sum(sqr(y)), {x, w});
    b.output(g[0], "gradient of the image");
    b.output(g[1], "gradient of the filters");
}

// What a decoder enlarges with: the gradient of a convolution with stride 2 as an operation.
GRAPH(conv_transposed) {
    const Expr small = b.floats({b.size(32, 2), 16, 7, 7}, "small"), w = b.floats({16, 8, 4, 4}, "w");
    const Expr large = zeros_like(b.floats({b.size(32, 2), 8, 14, 14}, "large"));
    const Expr y = grad(sum(conv2d(large, w, {.border_mode = 1, .subsample = 2}) * small), large);
    b.output(relu(y), "enlarged");
}

GRAPH(pool_planes) {
    const Expr x = b.floats({unknown(b.size(32, 2)), 16, 28, 28}, "x");
    const Expr y = max_pool(x, 2);
    b.output(y, "maxima");
    b.output(grad(sum(sqr(y)), x), "gradient");
}

GRAPH(pool_overlap) {
    const Expr x = b.floats({b.size(100, 2), 16, 28, 28}, "x");
    const Expr y = max_pool(x, 4, {.stride = 2}), z = max_pool(x, 3, {.stride = 2, .pad = 1});
    b.output(y, "maxima of 4x4 every 2");
    b.output(z, "maxima of 3x3 every 2");
    b.output(grad(sum(sqr(y)) + sum(sqr(z)), x), "gradient");
}

GRAPH(pool_bytes) {
    const Expr x = b.bytes({unknown(b.size(100, 2)), 3, 32, 32}, "x");
    b.output(max_pool(x, 4, {.stride = 2}), "maxima");
    b.output(max_pool(x, 3, {.stride = 3}), "maxima of 3x3");
}

GRAPH(pool_average) {
    const Expr x = b.floats({unknown(b.size(32, 2)), 16, 28, 28}, "x");
    const Expr y = mean(reshape(x, {-1, 16, 14, 2, 14, 2}), {3, 5});
    b.output(y, "means");
    b.output(grad(sum(sqr(y)), x), "gradient");
}
