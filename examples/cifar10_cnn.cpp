// A convolutional network on CIFAR-10: convolution of 5x5, max-pooling, one or two dense layers of 1000,
// softmax; by momentum with weight decay. With --zca on images that are whitened.
#include <bitale/bitale.h>

#include <iostream>
#include <string>
#include <vector>

#include "common/cifar10.h"
#include "common/training.h"

using namespace bitale;

namespace {

Expr pooled(const Expr& x, const std::string& kind) {
    if (kind == "2") return max_pool(x, 2);
    if (kind == "overlapping") return max_pool(x, 4, {.stride = Size2(2)});
    return max_pool(x, 4);
}

std::int64_t pooled_side(const std::string& kind) {
    return kind == "2" ? 14 : kind == "overlapping" ? 13 : 7;
}

// Images less their mean, rotated so that all directions vary alike. Mean and matrix are computed once, on
// the CPU whatever the device is, from images that stay bytes; a minibatch is whitened in the graph.
Expr whitened(const Expr& x, const Data& data, const Settings& settings) {
    constexpr double epsilon = 10;  // a variance of grey levels; less than that counts as noise
    const Shared images = shared(data.train.images, "images");
    const Zca z = zca(flatten(cast(images, float32) + data.offset, 2), epsilon);
    Function whiten = function({}, {z.mean, z.matrix}, {.name = "zca", .device = "cpu"});
    const Results found = whiten();
    if (!settings.quiet)
        std::cout << "whitened by " << data.train.count() << " images, at most "
                  << whiten.peak_bytes() / 1000000 << " MB\n";
    const Shared mean = shared(found[0], "zca_mean"), matrix = shared(found[1], "zca_matrix");
    return reshape(dot(flatten(x, 2) - mean, matrix), {x.length(0), 3, 32, 32});
}

Model network(const Expr& x, const Expr& y, const Data& data, const Settings& settings) {
    const std::int64_t filters = std::stoll(settings.chosen("filters"));
    const std::string pool = settings.chosen("pool");
    Parameters params;
    const Shared w = params.add("w_conv", he_normal({filters, 3, 5, 5}, settings.seed)),
                 b = params.add("b_conv", zeros({filters}));
    const auto dense = [&](const Expr& h, const Array& weights, const std::string& name) {
        const Shared v = params.add("w_" + name, weights),
                     c = params.add("b_" + name, zeros({weights.shape()[1]}));
        return dot(h, v) + c;
    };

    // The images arrive as bytes.
    const Expr pixels = settings.chosen("zca") == "on" ? whitened(x, data, settings) : (x - 128) / 64;
    const Expr maps = relu(pooled(conv2d(pixels, w), pool) + channel(b));
    const std::int64_t size = filters * pooled_side(pool) * pooled_side(pool);
    Expr h = relu(dense(flatten(maps, 2), he_normal({size, 1000}, settings.seed + 1), "dense1"));
    if (settings.chosen("dense") == "2")
        h = relu(dense(h, he_normal({1000, 1000}, settings.seed + 2), "dense2"));
    const Scores scores = score(softmax(dense(h, zeros({1000, 10}), "out")), y);
    return {.x = x,
            .y = y,
            .training = scores,
            .testing = scores,
            .params = params,
            .updates = momentum(scores.loss, params, 0.002, {.momentum = 0.9, .weight_decay = 1e-4})};
}

}  // namespace

int main(int argc, char** argv) try {
    const Settings settings = parse_settings(
        argc, argv,
        {.example = "cifar10_cnn",
         .description = "A convolutional network on CIFAR-10, or on synthetic images of its shape.",
         .epochs = 10,
         .batch = 100,
         .choices = {{"filters", "Filters of the convolution", {"64", "16", "256"}},
                     {"pool",
                      "Max-pooling: over 4x4, over 4x4 every 2, or over 2x2",
                      {"4", "overlapping", "2"}},
                     {"dense", "Dense layers of 1000 before the last", {"1", "2"}},
                     {"zca", "Whiten the images", {"off", "on"}, true}},
         .data = "",
         .data_help = "Folder with the binary version of CIFAR-10; without it, synthetic images",
         .accuracy = true});
    const Expr x = tensor4("x"), y = ivector("y");
    const Data data = load_cifar10(settings);
    return train(settings, data, network(x, y, data, settings));
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
