// Logistic regression on MNIST as a newcomer writes it: signed bytes, minibatches, a validation set,
// patience, the best model on disk and back, predictions.
#include <bitale/bitale.h>

#include <iostream>

using namespace bitale;

int main(int argc, char** argv) try {
    const std::string data = argc > 1 ? argv[1] : "data/mnist",
                      best_model = argc > 2 ? argv[2] : "best_model.npz";
    const Array pixels = load_idx(data + "/train-images-idx3-ubyte.gz").reshaped({60000, 784}),
                digits = load_idx(data + "/train-labels-idx1-ubyte.gz").as(int32);
    const Array all = (pixels.as(int16) - 128).as(int8);
    const std::int64_t batch = 600, train_batches = 50000 / batch;
    Shared train_x = shared(all.rows(0, 50000), "train_x"),
           train_y = shared(digits.rows(0, 50000), "train_y");
    const Array valid_x = all.rows(50000, 60000), valid_y = digits.rows(50000, 60000);
    const Array test_pixels = load_idx(data + "/t10k-images-idx3-ubyte.gz").reshaped({10000, 784}),
                test_x = (test_pixels.as(int16) - 128).as(int8),
                test_y = load_idx(data + "/t10k-labels-idx1-ubyte.gz").as(int32);

    Expr x = matrix("x", int8), y = ivector("y"), index = lscalar("index");
    Shared w = shared(zeros({784, 10}), "W"), b = shared(zeros({10}), "b");
    Expr p_y_given_x = softmax(dot(cast(x, float32) / 128, w) + b);
    Expr y_pred = argmax(p_y_given_x, 1);
    Expr cost = mean(categorical_crossentropy(p_y_given_x, y));
    Expr errors = mean(neq(y_pred, y));

    const Slice minibatch{index * batch, (index + 1) * batch};
    Function train_model = function({index}, cost,
                                    {.updates = sgd(cost, {w, b}, 0.13),
                                     .givens = {{x, train_x[minibatch]}, {y, train_y[minibatch]}},
                                     .name = "train_model"});
    Function error_of = function({x, y}, errors, {.name = "error_of"});

    double best_validation = 1;
    int epoch = 0, best_epoch = 0;
    for (const int patience = 2; epoch < 5 && epoch - best_epoch < patience;) {
        ++epoch;
        train_model.loop(0, train_batches);
        const double validation = error_of(valid_x, valid_y);
        std::cout << "epoch " << epoch << ", validation error " << 100 * validation << " %\n";
        if (validation >= best_validation) continue;
        best_validation = validation;
        best_epoch = epoch;
        save_npz(best_model, {{"W", w.get_value()}, {"b", b.get_value()}});
    }
    const auto saved = load_npz(best_model);
    w.set_value(saved.at("W"));
    b.set_value(saved.at("b"));
    std::cout << "test error " << 100 * double(error_of(test_x, test_y)) << " %\n";

    Function predict = function({x}, y_pred, {.name = "predict"});
    std::cout << "predicted " << Array(predict(test_x.rows(0, 10))) << "\nlabels    " << test_y.rows(0, 10)
              << '\n';
    std::cout << train_model.kernels().size() << " kernels a step\n";
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
