// Two functions with many kernels each, to be compiled in more than one way and compared bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/numerics.h"

namespace bitale::test {

struct Workload {
    std::vector<Input> inputs;
    std::vector<Array> values;
    std::vector<Expr> outputs;

    Expr add(DType dtype, const Dims& shape, Random& random, double low = -1, double high = 1) {
        const Expr x = input(dtype, shape, "x" + std::to_string(inputs.size()));
        inputs.emplace_back(x);
        values.push_back(random_array(dtype, shape, random, low, high));
        return x;
    }
};

// Sums of products in vector registers, with tiles, rests of rows and of lanes, and channels as lanes.
inline Workload products() {
    Workload w;
    Random random(3);
    for (const Dims& s : {Dims{17, 33, 19}, Dims{5, 70, 10}, Dims{64, 12, 128}}) {
        const Expr a = w.add(float32, {s[0], s[1]}, random), b = w.add(float32, {s[1], s[2]}, random);
        w.outputs.push_back(relu(dot(a, b)));
        w.outputs.push_back(dot(transpose(b), transpose(a)));
    }
    const Expr a = w.add(float64, {9, 21}, random), b = w.add(float64, {21, 11}, random);
    w.outputs.push_back(dot(a, b));
    for (const int channels : {3, 16, 20}) {
        const Expr x = w.add(float32, {3, 2, 13, 14}, random),
                   f = w.add(float32, {channels, 2, 3, 3}, random);
        const Expr loss = sum(sqr(max_pool(relu(conv2d(x, f)), 2)));
        w.outputs.push_back(loss);
        for (const Expr& g : grad(loss, std::vector<Expr>{x, f})) w.outputs.push_back(g);
    }
    return w;
}

inline Workload elements() {
    Workload w;
    Random random(4);
    for (const std::int64_t length : {7, 64, 103}) {
        const Expr x = w.add(float32, {5, length}, random, -4, 4),
                   y = w.add(float32, {5, length}, random, 0.1, 3);
        w.outputs.push_back(exp(x) + log(y) * tanh(x));
        w.outputs.push_back(sigmoid(x) / sqrt(y) + sin(x) * erf(y));
        w.outputs.push_back(softmax(x));
        w.outputs.push_back(sum(x * y, {0}) + 1.0);
        w.outputs.push_back(max(x, {1}));
        w.outputs.push_back(argmax(x, {1}));
        w.outputs.push_back(transpose(x) * 2.0);
        const Expr bytes = w.add(uint8, {6, length}, random, 0, 255),
                   wide = w.add(float64, {3, length}, random);
        w.outputs.push_back(mean(cast(bytes, float32)));
        w.outputs.push_back(sum(bytes, {1}));
        w.outputs.push_back(exp(wide) + sum(wide * wide));
        w.outputs.push_back(cast(cast(x, float16), float32) + cast(cast(y, bfloat16), float32));
    }
    return w;
}

}  // namespace bitale::test
