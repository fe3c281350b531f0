// The program of the README: logistic regression on MNIST.
#include <bitale/bitale.h>

#include <cstdio>
#include <numeric>

using namespace bitale;

int main(int argc, char** argv) try {
    const std::string data = argc > 1 ? argv[1] : "data/mnist";
    Shared images = shared(load_idx(data + "/train-images-idx3-ubyte.gz").reshaped({60000, 784}), "images");
    Shared labels =
        shared(load_idx(data + "/train-labels-idx1-ubyte.gz"), "labels");  // uint8, like the images
    Shared w = shared(zeros({784, 10}), "w"), b = shared(zeros({10}), "b");

    Expr x = matrix("x"), y = ivector("y"), i = lscalar("i");
    Expr p = softmax(dot((x - mean(x)) / 128, w) + b);
    Expr loss = mean(categorical_crossentropy(p, y));

    Expr rows = range(i * 600, (i + 1) * 600);  // minibatch i
    Function step = function({i}, loss,
                             {.updates = sgd(loss, {w, b}, 0.13),
                              .givens = {{x, cast(images[rows], float32)}, {y, cast(labels[rows], int32)}},
                              .name = "step"});

    for (int epoch = 1; epoch <= 3; ++epoch) {
        const auto losses = step.loop(0, 100)[0].to_vector<float>();  // 100 minibatches in one call
        std::printf("epoch %d: loss %.3f\n", epoch, std::reduce(losses.begin(), losses.end()) / 100);
    }
    std::printf("%zu kernels a step, %.1f MB on the device\n", step.kernels().size(),
                step.peak_bytes() / 1e6);
} catch (const Error& error) {  // says the line above, the types and shapes, and the cure
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
