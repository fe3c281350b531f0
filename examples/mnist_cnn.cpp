// Convolutional networks on MNIST. `small`: convolution 10 of 3x3, max-pooling, dense 100, dense 10, Adam.
// `keras`: convolutions 32 and 64 of 3x3, max-pooling, dropout, dense 128, dropout, dense 10, Adadelta.
#include <bitale/bitale.h>

#include <iostream>

#include "common/mnist.h"
#include "common/training.h"

using namespace bitale;

namespace {

// A dense layer on rows, and a convolution with its bias; both add their parameters to the list.
Expr dense(const Expr& x, std::int64_t from, std::int64_t to, const std::string& name, std::uint64_t seed,
           std::vector<Shared>& params) {
    const Shared w = shared(glorot_uniform({from, to}, seed), "w_" + name),
                 b = shared(zeros({to}), "b_" + name);
    params.insert(params.end(), {w, b});
    return dot(x, w) + b;
}

Model small(const Expr& x, const Expr& y, std::uint64_t seed) {
    const Shared w = shared(glorot_uniform({10, 1, 3, 3}, seed), "w_conv"), b = shared(zeros({10}), "b_conv");
    std::vector<Shared> params{w, b};

    const Expr pixels = (x - mean(x)) / 128;
    Expr h = relu(max_pool(conv2d(pixels, w, {.border_mode = half}), 2) + channel(b));
    h = relu(dense(flatten(h, 2), 10 * 14 * 14, 100, "hidden", seed + 1, params));
    const Scores scores = score(softmax(dense(h, 100, 10, "out", seed + 2, params)), y);
    return {.x = x,
            .y = y,
            .training = scores,
            .testing = scores,
            .params = params,
            .updates = adam(scores.loss, params, 0.002)};
}

Model keras(const Expr& x, const Expr& y, std::uint64_t seed) {
    const Shared w1 = shared(glorot_uniform({32, 1, 3, 3}, seed), "w_conv1"),
                 b1 = shared(zeros({32}), "b_conv1");
    const Shared w2 = shared(glorot_uniform({64, 32, 3, 3}, seed + 1), "w_conv2"),
                 b2 = shared(zeros({64}), "b_conv2");
    const Shared w3 = shared(glorot_uniform({9216, 128}, seed + 2), "w_hidden"),
                 b3 = shared(zeros({128}), "b_hidden");
    const Shared w4 = shared(glorot_uniform({128, 10}, seed + 3), "w_out"), b4 = shared(zeros({10}), "b_out");
    const std::vector<Shared> params{w1, b1, w2, b2, w3, b3, w4, b4};
    RandomStream random(seed);

    const auto network = [&](bool training) {
        const auto drop = [&](const Expr& h, double rate) { return training ? dropout(h, rate, random) : h; };
        Expr h = relu(conv2d((x - mean(x)) / 128, w1) + channel(b1));
        h = relu(max_pool(conv2d(h, w2) + channel(b2), 2));
        h = relu(dot(flatten(drop(h, 0.25), 2), w3) + b3);
        return softmax(dot(drop(h, 0.5), w4) + b4);
    };
    const Scores training = score(network(true), y);
    return {.x = x,
            .y = y,
            .training = training,
            .testing = score(network(false), y),
            .params = params,
            .updates = adadelta(training.loss, params) + random.updates()};
}

}  // namespace

int main(int argc, char** argv) try {
    const Settings settings = parse_settings(argc, argv,
                                             {.example = "mnist_cnn",
                                              .description = "A convolutional network on MNIST.",
                                              .epochs = 3,
                                              .batch = 128,
                                              .choices = {{"net", "Network", {"small", "keras"}}}});
    const Expr x = tensor4("x"), y = ivector("y");
    return train(settings, load_mnist(settings),
                 settings.chosen("net") == "keras" ? keras(x, y, settings.seed) : small(x, y, settings.seed));
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
