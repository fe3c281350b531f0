// More than 99 % of MNIST's test images: AdamW with a cosine schedule, clipped gradients, dropout. It may be
// stopped at any time, even by kill -9; started again it goes on, with the bits of a run without a stop.
#include <bitale/bitale.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

using namespace bitale;

int main(int argc, char** argv) try {
    const std::string path = argc > 1 ? argv[1] : "mnist_best.safetensors";
    const std::int64_t epochs = argc > 2 ? std::atoi(argv[2]) : 6, batch = 100, steps = 600;
    const std::string folder = std::getenv("BITALE_DATA") ? std::getenv("BITALE_DATA") : "data/mnist";
    const auto file = [&](const char* name) { return shared(load_idx(folder + "/" + name), name); };
    const Shared images = file("train-images-idx3-ubyte.gz"), labels = file("train-labels-idx1-ubyte.gz"),
                 unseen = file("t10k-images-idx3-ubyte.gz"), truth = file("t10k-labels-idx1-ubyte.gz");

    Parameters params;
    const auto layer = [&](const std::string& name, const Dims& weights, std::int64_t outputs) {
        Parameters own = params.in(name);
        return std::pair{own.add("w", he_normal(weights, params.size() + 1)), own.add("b", zeros({outputs}))};
    };
    const auto conv1 = layer("conv1", {16, 1, 5, 5}, 16), conv2 = layer("conv2", {32, 16, 5, 5}, 32),
               dense = layer("dense", {1568, 128}, 128), out = layer("out", {128, 10}, 10);
    RandomStream random(1);
    const auto network = [&](const Expr& bytes, double rate) {
        const auto drop = [&](const Expr& h) { return rate > 0 ? dropout(h, rate, random) : h; };
        const Expr x = reshape(cast(bytes, float32) / 255, {batch, 1, 28, 28});
        Expr h = relu(max_pool(conv2d(x, conv1.first, {.border_mode = half}), 2) + channel(conv1.second));
        h = relu(max_pool(conv2d(h, conv2.first, {.border_mode = half}), 2) + channel(conv2.second));
        h = relu(dot(drop(flatten(h, 2)), dense.first) + dense.second);
        return dot(drop(h), out.first) + out.second;
    };

    const Expr i = lscalar("i"), rows = range(i * batch, (i + 1) * batch);
    Shared order = shared(permutation(60000, 0), "order");
    const StepCounter step;
    const Expr loss = mean(softmax_crossentropy(network(images[order[rows]], 0.4), labels[order[rows]]));
    const Updates updates = adamw(clip_by_global_norm(gradients(loss, params), 1),
                                  cosine_decay(step, 0.002, epochs * steps, {.warm_up = 200}));
    Function train = function({i}, loss, {.updates = updates, .name = "train"});
    Function test = function({i}, mean(eq(argmax(network(unseen[rows], 0), {1}), truth[rows])));

    std::int64_t epoch = 0;
    const Checkpoint state{params, updates, random, {"epoch", epoch}};
    if (std::filesystem::exists(path)) load_checkpoint(path, state);
    while (epoch < epochs) {
        order.set_value(permutation(60000, static_cast<std::uint64_t>(epoch)));
        train.loop(0, steps, {.every = 100, .on_progress = print_progress});
        double right = 0;
        for (const double part : test.loop(0, 100)[0].to_vector<double>()) right += part;
        ++epoch;
        save_checkpoint(path, state);
        std::cout << "epoch " << epoch << ": " << right << " % right" << std::endl;
    }
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
