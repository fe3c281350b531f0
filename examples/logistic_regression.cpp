// Multi-class logistic regression on MNIST: 784 pixels to 10 classes, plain gradient descent.
#include <bitale/bitale.h>

#include <iostream>

#include "common/mnist.h"
#include "common/training.h"

using namespace bitale;

int main(int argc, char** argv) try {
    const Settings settings = parse_settings(argc, argv,
                                             {.example = "logistic_regression",
                                              .description = "Logistic regression on MNIST.",
                                              .epochs = 10,
                                              .batch = 600});
    const Expr x = matrix("x"), y = ivector("y");
    Parameters params;
    const Shared w = params.add("w", zeros({784, 10})), b = params.add("b", zeros({10}));

    const Expr pixels = (x - mean(x)) / 128;  // the images arrive as bytes
    const Scores scores = score(softmax(dot(pixels, w) + b), y);

    return train(settings, load_mnist(settings),
                 {.x = x,
                  .y = y,
                  .training = scores,
                  .testing = scores,
                  .params = params,
                  .updates = sgd(scores.loss, params, 0.13)});
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
