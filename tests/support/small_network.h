// A network whose steps are small, and write variables in every way that steps have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/numerics.h"

namespace bitale::test {

// Two layers with momentum and a counter: some products are new values of variables themselves.
struct SmallNetwork {
    Shared data, w, v, mw, mv, count;
    Function step, minibatch;
    Array x, t;

    SmallNetwork(const std::string& device, std::int64_t inputs, std::int64_t hidden, std::int64_t batch) {
        Random random(5);
        data = shared(random_array(float32, {batch * 4, inputs}, random), "data");
        w = shared(random_array(float32, {inputs, hidden}, random, -0.1, 0.1), "w");
        v = shared(random_array(float32, {hidden, 10}, random, -0.1, 0.1), "v");
        mw = shared(zeros({inputs, hidden}), "mw");
        mv = shared(zeros({hidden, 10}), "mv");
        count = shared(Array(std::int64_t{0}), "count");
        x = random_array(float32, {batch, inputs}, random);
        t = random_array(int32, {batch}, random, 0, 9);
        const Expr in = matrix("x"), i = lscalar("i"), labels = ivector("t");
        step = trained(in, {in, labels}, labels, device);
        minibatch = trained(data[Slice{i * batch, (i + 1) * batch}], {i, {labels, t}}, labels, device);
    }

    Function trained(const Expr& in, const std::vector<Input>& inputs, const Expr& labels,
                     const std::string& device) const {
        const Expr loss = mean(categorical_crossentropy(softmax(dot(tanh(dot(in, w)), v)), labels));
        const std::vector<Expr> g = grad(loss, {w, v});
        return function(inputs, {loss},
                        {.updates = {{mw, mw * 0.9f + g[0]},
                                     {mv, mv * 0.9f + g[1]},
                                     {w, w - mw * 0.1f},
                                     {v, v - g[1] * 0.1f},
                                     {count, count + 1}},
                         .device = device});
    }
    std::vector<Array> values() const {
        std::vector<Array> all;
        for (const Shared& s : {w, v, mw, mv, count}) all.push_back(s.get_value());
        return all;
    }
    void set(const std::vector<Array>& values) {
        std::size_t k = 0;
        for (Shared* s : {&w, &v, &mw, &mv, &count}) s->set_value(values[k++]);
    }
};

// Empty where all are equal to the bit, or within `tolerance`.
inline std::string differences(const std::vector<Array>& got, const std::vector<Array>& expected,
                               const Tolerance& tolerance = {}) {
    std::string text;
    for (std::size_t k = 0; k < got.size(); ++k) text += difference(got[k], expected[k], tolerance);
    return text;
}

}  // namespace bitale::test
