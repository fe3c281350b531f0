// A multilayer perceptron on MNIST as a newcomer writes it: 500 hidden units, L1 and L2 penalties, batches
// of 20.
#include <bitale/bitale.h>

#include <iostream>

using namespace bitale;

int main(int argc, char** argv) try {
    const std::string data = argc > 1 ? argv[1] : "data/mnist";
    const std::int64_t epochs = argc > 2 ? std::stoi(argv[2]) : 1;
    const Array images = load_idx(data + "/train-images-idx3-ubyte.gz").reshaped({60000, 784}),
                digits = load_idx(data + "/train-labels-idx1-ubyte.gz").as(int32);
    Shared train_x = shared(images.rows(0, 50000), "train_x"),
           train_y = shared(digits.rows(0, 50000), "train_y");
    Shared valid_x = shared(images.rows(50000, 60000), "valid_x"),
           valid_y = shared(digits.rows(50000, 60000), "valid_y");

    Expr x = matrix("x"), y = ivector("y"), index = lscalar("index");
    Shared hidden_w = shared(glorot_uniform({784, 500}, 1234), "hidden_W"),
           hidden_b = shared(zeros({500}), "hidden_b");
    Shared out_w = shared(zeros({500, 10}), "out_W"), out_b = shared(zeros({10}), "out_b");
    Expr hidden = tanh(dot(x / 256, hidden_w) + hidden_b);
    Expr p = softmax(dot(hidden, out_w) + out_b);
    Expr l1 = sum(abs(hidden_w)) + sum(abs(out_w)), l2 = sum(sqr(hidden_w)) + sum(sqr(out_w));
    Expr cost = mean(categorical_crossentropy(p, y)) + 0.00 * l1 + 0.0001 * l2;
    Expr errors = mean(neq(argmax(p, 1), y));

    const auto on = [&](const Shared& images_of, const Shared& labels_of, std::int64_t batch) {
        const Slice rows{index * batch, (index + 1) * batch};
        return Givens{{x, cast(images_of[rows], float32)}, {y, labels_of[rows]}};
    };
    Function train = function({index}, cost,
                              {.updates = sgd(cost, {hidden_w, hidden_b, out_w, out_b}, 0.05),
                               .givens = on(train_x, train_y, 20),
                               .name = "train"});
    Function validate = function({index}, errors, {.givens = on(valid_x, valid_y, 1000), .name = "validate"});
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        train.loop(0, 2500);
        double wrong = 0;
        for (const double part : validate.loop(0, 10)[0].to_vector<double>()) wrong += part / 10;
        std::cout << "epoch " << epoch << ", validation error " << 100 * wrong << " %\n";
    }
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
