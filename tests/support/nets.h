// The networks of the examples as pairs of functions, on data of the sizes of MNIST and CIFAR-10: what plans
// and kernels are judged by.
#pragma once

#include <string>
#include <vector>

#include "bitale/bitale.h"

namespace bitale::test {

struct NetOptions {
    std::string device = "null";
    std::int64_t images = 60000, batch = 128, test_batch = 500;
    DType storage = uint8;
    std::uint64_t seed = 0;  // of random images and labels; 0: all are zero
    Precision precision = Precision::float32;
};

struct Net {
    std::string name;
    std::int64_t pixels;  // of an image
    std::vector<Shared> params;
    Function step;        // of the minibatch's number; trains on it: loss and number of wrong images
    Function evaluation;  // likewise, changing nothing
};

// "logistic", "mlp", "small", "keras" and "cifar": those of logistic_regression, mlp, mnist_cnn's two, and
// cifar10_cnn's default.
const std::vector<std::string>& net_names();
// With the minibatch of the example that has the network.
NetOptions options_of(const std::string& name);
Net make_net(const std::string& name, const NetOptions& options = {});

}  // namespace bitale::test
