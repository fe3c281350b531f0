// The networks of the examples and of the benchmarks (a) to (f), trained and evaluated on rows of a data set
// in shared variables, as they are there.
#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

Expr normalised(const Expr& x) { return (x - mean(x)) / 128; }

// Minibatch number i of images in random order, and its labels.
struct Minibatch {
    Expr x, labels;
};

Minibatch minibatch(Builder& b, const Dims& pixels, std::int64_t batch) {
    const std::int64_t count = b.size(60000, 3 * batch);
    Dims shape{count};
    shape.insert(shape.end(), pixels.begin(), pixels.end());
    const Shared images = b.variable(shape, "images", {0, 255}, uint8),
                 labels = b.variable({count}, "labels", {0, 9}, uint8),
                 order = b.variable({count}, "order", {0, static_cast<double>(count - 1)}, int64);
    const Expr i = b.number(1, "i");
    const Expr rows = order[Slice{i * batch, (i + 1) * batch}];
    return {cast(images[rows], float32), cast(labels[rows], int32)};
}

// Chunk number i of images as they come.
Minibatch chunk(Builder& b, const Dims& pixels, std::int64_t batch) {
    const std::int64_t count = b.size(10000, 2 * batch);
    Dims shape{count};
    shape.insert(shape.end(), pixels.begin(), pixels.end());
    const Shared images = b.variable(shape, "images", {0, 255}, uint8),
                 labels = b.variable({count}, "labels", {0, 9}, uint8);
    const Expr i = b.number(1, "i");
    const Slice rows{i * batch, (i + 1) * batch};
    return {cast(images[rows], float32), cast(labels[rows], int32)};
}

Expr dense(Builder& b, const Expr& x, std::int64_t from, std::int64_t to, const std::string& name) {
    // Parameters have the order of these lines, whatever a compiler makes of operands.
    const Expr bias = b.bias(to, "b_" + name), weights = b.weights({from, to}, "w_" + name);
    return dot(x, weights) + bias;
}

Expr score(Builder& b, const Expr& probabilities, const Expr& labels) {
    const Expr loss = mean(categorical_crossentropy(probabilities, labels));
    b.output(loss, "loss");
    b.output(sum(neq(argmax(probabilities, {1}), labels)), "wrong");
    return loss;
}

Expr small_cnn(Builder& b, const Expr& x) {
    const Expr weights = b.weights({10, 1, 3, 3}, "w_conv");
    Expr h = max_pool(conv2d(normalised(x), weights, {.border_mode = half}), 2);
    h = relu(h + channel(b.bias(10, "b_conv")));
    h = relu(dense(b, flatten(h, 2), 1960, 100, "hidden"));
    return softmax(dense(b, h, 100, 10, "out"));
}

Expr keras_cnn(Builder& b, const Expr& x, RandomStream* random) {
    const auto drop = [&](const Expr& h, double rate) { return random ? dropout(h, rate, *random) : h; };
    const Expr bias1 = b.bias(32, "b_conv1"), weights1 = b.weights({32, 1, 3, 3}, "w_conv1");
    Expr h = relu(conv2d(normalised(x), weights1) + channel(bias1));
    const Expr bias2 = b.bias(64, "b_conv2"), weights2 = b.weights({64, 32, 3, 3}, "w_conv2");
    h = relu(max_pool(conv2d(h, weights2) + channel(bias2), 2));
    h = relu(dense(b, flatten(drop(h, 0.25), 2), 9216, 128, "hidden"));
    return softmax(dense(b, drop(h, 0.5), 128, 10, "out"));
}

Expr cifar_cnn(Builder& b, const Expr& x, std::int64_t filters, int stride) {
    const std::int64_t side = (28 - 4) / stride + 1;
    Expr h = max_pool(conv2d((x - 128) / 64, b.weights({filters, 3, 5, 5}, "w_conv")), 4,
                      {.stride = Size2(stride)});
    h = relu(h + channel(b.bias(filters, "b_conv")));
    h = relu(dense(b, flatten(h, 2), filters * side * side, 1000, "hidden"));
    return softmax(dense(b, h, 1000, 10, "out"));
}

}  // namespace

// (a)
GRAPH(logistic_step) {
    const Minibatch m = minibatch(b, {784}, b.size(600, 60));
    const Expr loss = score(b, softmax(dense(b, normalised(m.x), 784, 10, "out")), m.labels);
    b.update(sgd(loss, b.parameters(), 0.13));
}

// (b)
GRAPH(mlp_step) {
    const Minibatch m = minibatch(b, {784}, b.size(128, 20));
    const Expr hidden = tanh(dense(b, normalised(m.x), 784, 500, "hidden"));
    const Expr loss = score(b, softmax(dense(b, hidden, 500, 10, "out")), m.labels);
    b.update(sgd(loss, b.parameters(), 0.02));
}

// (b), with the minibatch as arguments of unknown length.
GRAPH(mlp_step_arguments) {
    const Expr x = b.bytes({unknown(b.size(128, 20)), 784}, "x");
    const Expr labels = b.labels(unknown(b.size(128, 20)), 10, "labels");
    const Expr hidden = tanh(dense(b, (cast(x, float32) - 128) / 128, 784, 500, "hidden"));
    const Expr loss = score(b, softmax(dense(b, hidden, 500, 10, "out")), labels);
    b.update(momentum(loss, b.parameters(), 0.02, {.momentum = 0.9, .weight_decay = 1e-4}));
}

// (c)
GRAPH(small_cnn_step) {
    const Minibatch m = minibatch(b, {1, 28, 28}, b.size(128, 8));
    const Expr loss = score(b, small_cnn(b, m.x), m.labels);
    b.update(adam(loss, b.parameters(), 0.002));
}

// (d)
GRAPH(keras_cnn_step) {
    const Minibatch m = minibatch(b, {1, 28, 28}, b.size(128, 4));
    const Expr loss = score(b, keras_cnn(b, m.x, nullptr), m.labels);
    b.update(adadelta(loss, b.parameters()));
}

GRAPH(keras_cnn_dropout_step) {
    const Minibatch m = minibatch(b, {1, 28, 28}, b.size(128, 4));
    RandomStream random(1);
    const Expr loss = score(b, keras_cnn(b, m.x, &random), m.labels);
    b.update(adadelta(loss, b.parameters()) + random.updates());
}

// (e)
GRAPH(cifar_cnn_step) {
    const Minibatch m = minibatch(b, {3, 32, 32}, b.size(100, 4));
    const Expr loss = score(b, cifar_cnn(b, m.x, 16, 4), m.labels);
    b.update(momentum(loss, b.parameters(), 0.002, {.momentum = 0.9, .weight_decay = 1e-4}));
}

GRAPH(cifar_cnn_overlap_step) {
    const Minibatch m = minibatch(b, {3, 32, 32}, b.size(100, 4));
    const Expr loss = score(b, cifar_cnn(b, m.x, 16, 2), m.labels);
    b.update(momentum(loss, b.parameters(), 0.002, {.momentum = 0.9}));
}

// (f)
GRAPH(small_cnn_evaluation) {
    const Minibatch m = chunk(b, {1, 28, 28}, b.size(500, 8));
    score(b, small_cnn(b, m.x), m.labels);
}

GRAPH(keras_cnn_evaluation) {
    const Minibatch m = chunk(b, {1, 28, 28}, b.size(500, 4));
    score(b, keras_cnn(b, m.x, nullptr), m.labels);
}

GRAPH(autoencoder_step) {
    const std::int64_t batch = b.size(256, 16);
    const Shared images = b.variable({b.size(60000, 3 * batch), 784}, "images", {0, 255}, uint8);
    const Expr i = b.number(2, "i");
    const Expr x = cast(images[Slice{i * batch, (i + 1) * batch}], float32) / 255;
    Expr h = relu(dense(b, x, 784, 256, "encode1"));
    h = relu(dense(b, h, 256, 64, "encode2"));
    h = relu(dense(b, h, 64, 256, "decode1"));
    const Expr y = sigmoid(dense(b, h, 256, 784, "decode2"));
    const Expr loss = mean(sum(binary_crossentropy(y, x), {1}));
    b.output(loss, "loss");
    b.update(adam(loss, b.parameters()));
}

// One step from all rows at once: the data set is never wide.
GRAPH(logistic_full_batch) {
    const std::int64_t count = b.size(60000, 200);
    const Shared images = b.variable({count, 784}, "images", {0, 255}, uint8),
                 labels = b.variable({count}, "labels", {0, 9}, uint8);
    const Expr x = cast(images, float32) / 255;
    const Expr loss = score(b, softmax(dense(b, x, 784, 10, "out")), cast(labels, int32));
    b.update(sgd(loss, b.parameters(), 0.5));
}

// Many layers of one shape with Adam.
GRAPH(deep_mlp_adam) {
    Expr h = b.floats({unknown(b.size(32, 4)), 64}, "x");
    for (int layer = 0; layer < 24; ++layer) h = tanh(dense(b, h, 64, 64, std::to_string(layer)));
    const Expr loss = mean(sqr(h));
    b.output(loss, "loss");
    b.update(adam(loss, b.parameters()));
}

// Layers with dropout between checkpoints: the backward pass computes them again.
GRAPH(deep_mlp_checkpoints) {
    RandomStream random(2);
    Expr h = b.floats({unknown(b.size(512, 6)), 64}, "x");
    for (int layer = 0; layer < 16; ++layer) {
        h = dropout(tanh(dense(b, h, 64, 64, std::to_string(layer))), 0.1, random);
        if (layer % 4 == 3) h = checkpoint(h);
    }
    const Expr loss = mean(sqr(h));
    b.output(loss, "loss");
    b.update(sgd(loss, b.parameters(), 0.1));
}

// A network's gradient by itself, of parameters that are arguments.
GRAPH(mlp_gradients) {
    const Expr x = b.floats({unknown(b.size(64, 6)), 20}, "x"), w = b.floats({20, 30}, "w"),
               c = b.floats({30}, "c"), v = b.floats({30, 5}, "v");
    const Expr y = b.floats({unknown(b.size(64, 6)), 5}, "y");
    const Expr loss = mean(sqr(dot(sigmoid(dot(x, w) + c), v) - y));
    b.output(loss, "loss");
    const std::vector<Expr> gradients = grad(loss, {x, w, c, v});
    const char* const names[] = {"x", "w", "c", "v"};
    for (std::size_t k = 0; k < 4; ++k) b.output(gradients[k], std::string("gradient of ") + names[k]);
}

// Part of a cost that is not differentiated, as a moving target is.
GRAPH(moving_target) {
    const Expr x = b.floats({unknown(b.size(64, 6)), 20}, "x");
    const Shared w = b.weights({20, 10}, "w"), slow = b.variable({20, 10}, "slow");
    const Expr y = dot(x, w);
    const Expr loss = mean(sqr(y - disconnected_grad(0.5 * y + 0.5 * dot(x, slow)) - ones_like(y)));
    b.output(loss, "loss");
    b.update(sgd(loss, b.parameters(), 0.1));
    b.update({{slow, 0.99 * slow + 0.01 * w}});
}
