#include "tests/support/nets.h"

#include <stdexcept>
#include <utility>

#include "tests/support/numerics.h"

namespace bitale::test {

namespace {

struct Scores {
    Expr loss, wrong;
};

struct Model {
    Expr x, y;
    Scores training, testing;
    std::vector<Shared> params;
    Updates updates;
};

Scores score(const Expr& probabilities, const Expr& labels) {
    return {mean(categorical_crossentropy(probabilities, labels)),
            sum(neq(argmax(probabilities, {1}), labels))};
}

Expr normalised(const Expr& x) { return (x - mean(x)) / 128; }

Model logistic() {
    const Expr x = matrix("x"), y = ivector("y");
    const Shared w = shared(zeros({784, 10}), "w"), b = shared(zeros({10}), "b");
    const Scores scores = score(softmax(dot(normalised(x), w) + b), y);
    return {x, y, scores, scores, {w, b}, sgd(scores.loss, {w, b}, 0.13)};
}

Model mlp() {
    const Expr x = matrix("x"), y = ivector("y");
    const Shared w1 = shared(glorot_uniform({784, 500}, 1), "w1"), b1 = shared(zeros({500}), "b1");
    const Shared w2 = shared(zeros({500, 10}), "w2"), b2 = shared(zeros({10}), "b2");
    const Expr hidden = tanh(dot(normalised(x), w1) + b1);
    const Scores scores = score(softmax(dot(hidden, w2) + b2), y);
    return {x, y, scores, scores, {w1, b1, w2, b2}, sgd(scores.loss, {w1, b1, w2, b2}, 0.02)};
}

Model small() {
    const Expr x = tensor4("x"), y = ivector("y");
    const Shared w = shared(glorot_uniform({10, 1, 3, 3}, 1), "w_conv"), b = shared(zeros({10}), "b_conv");
    const Shared v = shared(glorot_uniform({1960, 100}, 2), "w_hidden"), c = shared(zeros({100}), "b_hidden");
    const Shared u = shared(glorot_uniform({100, 10}, 3), "w_out"), d = shared(zeros({10}), "b_out");
    const std::vector<Shared> params{w, b, v, c, u, d};
    Expr h = relu(max_pool(conv2d(normalised(x), w, {.border_mode = half}), 2) + channel(b));
    h = relu(dot(flatten(h, 2), v) + c);
    const Scores scores = score(softmax(dot(h, u) + d), y);
    return {x, y, scores, scores, params, adam(scores.loss, params, 0.002)};
}

Model keras() {
    const Expr x = tensor4("x"), y = ivector("y");
    const Shared w1 = shared(glorot_uniform({32, 1, 3, 3}, 1), "w_conv1"),
                 b1 = shared(zeros({32}), "b_conv1");
    const Shared w2 = shared(glorot_uniform({64, 32, 3, 3}, 2), "w_conv2"),
                 b2 = shared(zeros({64}), "b_conv2");
    const Shared w3 = shared(glorot_uniform({9216, 128}, 3), "w_hidden"),
                 b3 = shared(zeros({128}), "b_hidden");
    const Shared w4 = shared(glorot_uniform({128, 10}, 4), "w_out"), b4 = shared(zeros({10}), "b_out");
    const std::vector<Shared> params{w1, b1, w2, b2, w3, b3, w4, b4};
    RandomStream random(1);
    const auto network = [&](bool training) {
        const auto drop = [&](const Expr& h, double rate) { return training ? dropout(h, rate, random) : h; };
        Expr h = relu(conv2d(normalised(x), w1) + channel(b1));
        h = relu(max_pool(conv2d(h, w2) + channel(b2), 2));
        h = relu(dot(flatten(drop(h, 0.25), 2), w3) + b3);
        return softmax(dot(drop(h, 0.5), w4) + b4);
    };
    const Scores training = score(network(true), y);
    return {
        x, y, training, score(network(false), y), params, adadelta(training.loss, params) + random.updates()};
}

Model cifar() {
    const Expr x = tensor4("x"), y = ivector("y");
    const Shared w = shared(he_normal({64, 3, 5, 5}, 1), "w_conv"), b = shared(zeros({64}), "b_conv");
    const Shared v = shared(he_normal({3136, 1000}, 2), "w_dense1"), c = shared(zeros({1000}), "b_dense1");
    const Shared u = shared(zeros({1000, 10}), "w_out"), d = shared(zeros({10}), "b_out");
    const std::vector<Shared> params{w, b, v, c, u, d};
    Expr h = relu(max_pool(conv2d((x - 128) / 64, w), 4) + channel(b));
    h = relu(dot(flatten(h, 2), v) + c);
    const Scores scores = score(softmax(dot(h, u) + d), y);
    return {x,      y,      scores,
            scores, params, momentum(scores.loss, params, 0.002, {.momentum = 0.9, .weight_decay = 1e-4})};
}

Model model_of(const std::string& name) {
    if (name == "logistic") return logistic();
    if (name == "mlp") return mlp();
    if (name == "small") return small();
    if (name == "keras") return keras();
    if (name == "cifar") return cifar();
    throw std::invalid_argument(name);
}

}  // namespace

const std::vector<std::string>& net_names() {
    static const std::vector<std::string> names = {"logistic", "mlp", "small", "keras", "cifar"};
    return names;
}

NetOptions options_of(const std::string& name) {
    NetOptions options;
    if (name == "logistic") options.batch = 600;
    if (name == "mlp") options.batch = 20;
    if (name == "cifar") options.batch = 100;
    return options;
}

Net make_net(const std::string& name, const NetOptions& options) {
    const Model model = model_of(name);
    const std::int64_t count = options.images, batch = options.batch;
    const Dims shape = name == "cifar"       ? Dims{count, 3, 32, 32}
                       : model.x.rank() == 2 ? Dims{count, 784}
                                             : Dims{count, 1, 28, 28};
    Array pixels(options.storage, shape), classes(uint8, {count});
    if (options.seed) {
        Random random(options.seed);
        pixels = random_array(options.storage, shape, random, 0, 255);
        classes = random_array(uint8, {count}, random, 0, 9);
    }
    const Shared images = shared(std::move(pixels), "images"), labels = shared(std::move(classes), "labels");
    const Shared order = shared(permutation(count, 1), "order");
    const Expr i = lscalar("i");
    const Expr rows = order[Slice{i * batch, (i + 1) * batch}];
    const Slice test_rows{i * options.test_batch, (i + 1) * options.test_batch};
    return {
        name, count_of(shape) / count, model.params,
        function({i}, {model.training.loss, model.training.wrong},
                 {.updates = model.updates,
                  .givens = {{model.x, cast(images[rows], float32)}, {model.y, cast(labels[rows], int32)}},
                  .name = name + "_step",
                  .device = options.device,
                  .precision = options.precision}),
        function({i}, {model.testing.loss, model.testing.wrong},
                 {.givens = {{model.x, cast(images[test_rows], float32)},
                             {model.y, cast(labels[test_rows], int32)}},
                  .name = name + "_evaluation",
                  .device = options.device,
                  .precision = options.precision})};
}

}  // namespace bitale::test
