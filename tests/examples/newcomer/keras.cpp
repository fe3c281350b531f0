// Keras' network for MNIST as a newcomer writes it: two convolutions, dropout, Adadelta, and a line of
// progress.
#include <bitale/bitale.h>

#include <cstdio>
#include <iostream>

using namespace bitale;

int main(int argc, char** argv) try {
    const std::string data = argc > 1 ? argv[1] : "data/mnist";
    const std::int64_t count = argc > 2 ? std::stoi(argv[2]) : 60000, batch = 64;
    const auto images_of = [&](const std::string& set, std::int64_t n) {
        const Array all = load_idx(data + "/" + set + "-images-idx3-ubyte.gz");
        return all.reshaped({all.shape()[0], 1, 28, 28}).rows(0, n);
    };
    const auto labels_of = [&](const std::string& set, std::int64_t n) {
        return load_idx(data + "/" + set + "-labels-idx1-ubyte.gz").rows(0, n);
    };
    Shared x_train = shared(images_of("train", count), "x_train"),
           y_train = shared(labels_of("train", count), "y_train");

    Parameters params;
    const auto weights = [&](const std::string& name, const Dims& shape, std::int64_t outputs) {
        Shared w = params.add(name + ".w", glorot_uniform(shape, params.size() + 1));
        return std::pair(w, params.add(name + ".b", zeros({outputs})));
    };
    const auto conv1 = weights("conv1", {32, 1, 3, 3}, 32), conv2 = weights("conv2", {64, 32, 3, 3}, 64);
    const auto dense1 = weights("dense1", {9216, 128}, 128), dense2 = weights("dense2", {128, 10}, 10);
    RandomStream random(1);
    Expr x = tensor4("x"), y = ivector("y"), index = lscalar("index");
    const auto model = [&](bool training) {
        const auto drop = [&](const Expr& h, double rate) { return training ? dropout(h, rate, random) : h; };
        Expr h = relu(conv2d(x / 255, conv1.first, {.filter_flip = false}) + channel(conv1.second));
        h = relu(conv2d(h, conv2.first, {.filter_flip = false}) + channel(conv2.second));
        h = flatten(drop(max_pool(h, 2), 0.25), 2);
        h = drop(relu(dot(h, dense1.first) + dense1.second), 0.5);
        return softmax(dot(h, dense2.first) + dense2.second);
    };
    Expr loss = mean(categorical_crossentropy(model(true), y));
    const Slice rows{index * batch, (index + 1) * batch};
    Function fit = function({index}, loss,
                            {.updates = adadelta(loss, params),
                             .givens = {{x, cast(x_train[rows], float32)}, {y, cast(y_train[rows], int32)}},
                             .name = "fit"});
    Function accuracy = function({x, y}, mean(eq(argmax(model(false), 1), y)), {.name = "accuracy"});

    const std::int64_t steps = count / batch;
    double sum = 0;
    fit.loop(0, steps, {.every = 5, .on_progress = [&](const Progress& progress) {
                            for (const float l : (*progress.part)[0].to_vector<float>()) sum += l;
                            std::printf("%d/%d - loss: %.4f\n", int(progress.done * batch), int(count),
                                        sum / double(progress.done));
                        }});
    std::printf("accuracy: %.4f\n",
                double(accuracy(images_of("t10k", 500).as(float32), labels_of("t10k", 500).as(int32))));
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
