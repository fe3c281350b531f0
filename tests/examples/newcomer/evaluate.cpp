// All 10,000 test images of MNIST through a deep network in one call, as a newcomer writes it: floats as an
// argument.
#include <bitale/bitale.h>

#include <iostream>

using namespace bitale;

int main(int argc, char** argv) try {
    const std::string data = argc > 1 ? argv[1] : "data/mnist";
    const Array images =
        load_idx(data + "/t10k-images-idx3-ubyte.gz").as(float32).reshaped({10000, 1, 28, 28}) / 255;
    const Array labels = load_idx(data + "/t10k-labels-idx1-ubyte.gz").as(int32);

    Shared w1 = shared(he_normal({32, 1, 5, 5}, 1), "w1"), w2 = shared(he_normal({64, 32, 5, 5}, 2), "w2"),
           w3 = shared(glorot_uniform({64 * 4 * 4, 1024}, 3), "w3"),
           w4 = shared(glorot_uniform({1024, 10}, 4), "w4");
    Expr x = tensor4("x"), y = ivector("y");
    Expr h = max_pool(relu(conv2d(x, w1)), 2);
    h = max_pool(relu(conv2d(h, w2)), 2);
    Expr logits = dot(relu(dot(flatten(h, 2), w3)), w4);
    Function evaluate = function({x, y}, mean(neq(argmax(logits, 1), y)), {.name = "evaluate"});
    std::cout << "error " << 100 * double(evaluate(images, labels)) << " %, peak "
              << evaluate.peak_bytes() / 1000000 << " MB\n";
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
