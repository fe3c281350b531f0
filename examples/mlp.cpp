// A perceptron with one hidden layer on MNIST: 784 pixels, 500 tanh units, 10 classes.
#include <bitale/bitale.h>

#include <iostream>

#include "common/mnist.h"
#include "common/training.h"

using namespace bitale;

int main(int argc, char** argv) try {
    const Settings settings = parse_settings(
        argc, argv,
        {.example = "mlp", .description = "A multilayer perceptron on MNIST.", .epochs = 10, .batch = 20});
    const Expr x = matrix("x"), y = ivector("y");
    Parameters params;
    const Shared w1 = params.add("w1", glorot_uniform({784, 500}, settings.seed)),
                 b1 = params.add("b1", zeros({500}));
    const Shared w2 = params.add("w2", zeros({500, 10})), b2 = params.add("b2", zeros({10}));

    const Expr pixels = (x - mean(x)) / 128;
    const Expr hidden = tanh(dot(pixels, w1) + b1);
    const Scores scores = score(softmax(dot(hidden, w2) + b2), y);

    return train(settings, load_mnist(settings),
                 {.x = x,
                  .y = y,
                  .training = scores,
                  .testing = scores,
                  .params = params,
                  .updates = sgd(scores.loss, params, 0.02)});
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
