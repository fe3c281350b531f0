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
           Parameters& params) {
    const Shared w = params.add("w_" + name, glorot_uniform({from, to}, seed)),
                 b = params.add("b_" + name, zeros({to}));
    return dot(x, w) + b;
}

Model small(const Expr& x, const Expr& y, std::uint64_t seed) {
    Parameters params;
    const Shared w = params.add("w_conv", glorot_uniform({10, 1, 3, 3}, seed)),
                 b = params.add("b_conv", zeros({10}));

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
    Parameters params;
    const auto add = [&](const std::string& name, const Array& weights, std::int64_t outputs) {
        const Shared w = params.add("w_" + name, weights);
        return std::pair{w, params.add("b_" + name, zeros({outputs}))};
    };
    const auto conv1 = add("conv1", glorot_uniform({32, 1, 3, 3}, seed), 32),
               conv2 = add("conv2", glorot_uniform({64, 32, 3, 3}, seed + 1), 64),
               hidden = add("hidden", glorot_uniform({9216, 128}, seed + 2), 128),
               out = add("out", glorot_uniform({128, 10}, seed + 3), 10);
    RandomStream random(seed);

    const auto network = [&](bool training) {
        const auto drop = [&](const Expr& h, double rate) { return training ? dropout(h, rate, random) : h; };
        Expr h = relu(conv2d((x - mean(x)) / 128, conv1.first) + channel(conv1.second));
        h = relu(max_pool(conv2d(h, conv2.first) + channel(conv2.second), 2));
        h = relu(dot(flatten(drop(h, 0.25), 2), hidden.first) + hidden.second);
        return softmax(dot(drop(h, 0.5), out.first) + out.second);
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
