// Random numbers: the same on every device, call by call; dropout; optimizers on the CPU against the oracle.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Results of some calls of what `make` builds on a device.
template <class Make>
std::vector<Array> calls_on(const char* device, int calls, const Make& make) {
    Function f = make(device);
    std::vector<Array> all;
    for (int i = 0; i < calls; ++i) {
        const Results r = f.call({});
        for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
    }
    return all;
}

}  // namespace

TEST_CASE(
    "uniform numbers have the same bits on the cpu device and in the oracle, normal ones within rounding") {
    for (const Dims& shape : {Dims{}, Dims{1}, Dims{1001}, Dims{3, 70}, Dims{0, 5}, Dims{2, 3, 4, 5}}) {
        INFO(text_of(shape));
        std::vector<std::vector<Array>> all;
        for (const char* device : {tested_device(), "reference"}) {
            all.push_back(calls_on(device, 3, [&](const char* on) {
                RandomStream stream(42);
                const std::vector<Expr> lengths(shape.begin(), shape.end());
                const Expr a = stream.uniform(lengths), b = stream.uniform(lengths, -3, 5),
                           c = stream.normal(lengths), d = stream.normal(lengths, 10, 0.5);
                return function({}, {a, b, lt(a, 0.25), c, d}, {.updates = stream.updates(), .device = on});
            }));
        }
        for (std::size_t k = 0; k < all[0].size(); ++k) {
            INFO("result " << k % 5 << " of call " << k / 5);
            const Tolerance rounding{.ulps = 4, .absolute = 1e-6};
            CHECK(difference(all[0][k], all[1][k], k % 5 < 3 ? Tolerance{.absolute = 1e-7} : rounding) == "");
            if (k % 5 == 0 || k % 5 == 2) CHECK(same(all[0][k], all[1][k]));
            if (k >= 5 && count_of(shape) > 1) CHECK(!same(all[0][k], all[0][k - 5]));  // another call
        }
    }
}

TEST_CASE("uniform numbers that are looked up are those of the elements") {
    for (const int axis : {0, 1, 2}) {
        INFO("axis " << axis);
        std::vector<std::vector<Array>> all;
        for (const char* device : {tested_device(), "reference"})
            all.push_back(calls_on(device, 2, [&](const char* on) {
                RandomStream stream(7);
                const Expr x = stream.uniform({7, 6, 80});
                return function({}, {topk(x, 4, axis).values, sort(x, axis)},
                                {.updates = stream.updates(), .device = on});
            }));
        for (std::size_t k = 0; k < all[0].size(); ++k) CHECK(same(all[0][k], all[1][k]));
    }
}

TEST_CASE("dropout: one mask for value and gradient, the same on the cpu device and in the oracle") {
    Random random(2);
    for (const DType dtype : {float32, float64}) {
        const Array value = random_array(dtype, {37, 19}, random, 0.5, 2);
        std::vector<std::vector<Array>> all;
        for (const char* device : {tested_device(), "reference"}) {
            RandomStream stream(7);
            const Expr x = matrix("x", dtype), y = dropout(x, 0.3, stream), z = dropout(tanh(y), 0.5, stream);
            Function f = function({x}, {y, z, grad(sum(y), x), grad(sum(z), x)},
                                  {.updates = stream.updates(), .device = device});
            all.emplace_back();
            for (int call = 0; call < 2; ++call) {
                const Results r = f(value);
                for (std::size_t k = 0; k < r.size(); ++k) all.back().push_back(r[k]);
            }
        }
        for (std::size_t k = 0; k < all[0].size(); ++k)
            CHECK(difference(all[0][k], all[1][k], {.ulps = 4, .absolute = 1e-6}) == "");
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < value.size(); ++i) {
            const bool is_kept = all[0][0].at(i) != 0;
            kept += is_kept;
            REQUIRE(is_kept == (all[0][2].at(i) != 0));
        }
        CHECK(std::abs(static_cast<double>(kept) / static_cast<double>(value.size()) - 0.7) < 0.06);
    }
}

TEST_CASE("the gradient of dropout behind a relu, read from its result") {
    constexpr float inf = std::numeric_limits<float>::infinity();
    Random random(4);
    Array value = random_array(float32, {64, 33}, random, -2, 2);
    auto* values = static_cast<float*>(value.mutable_data());
    const float awkward[] = {0.0F,
                             -0.0F,
                             inf,
                             -inf,
                             std::numeric_limits<float>::denorm_min(),
                             std::numeric_limits<float>::quiet_NaN()};
    for (std::int64_t k = 0; k < value.size(); k += 5) values[k] = awkward[k / 5 % 6];
    const Array weights = random_array(float32, {64, 33}, random, 1, 2);
    for (const double rate : {0.0, 0.25, 0.5}) {
        RandomStream stream(9);
        const Expr x = input(float32, Dims{64, 33}, "x"), w = input(float32, Dims{64, 33}, "w");
        const Expr y = dropout(relu(x), rate, stream);
        Function f = function({x, w}, {y, grad(sum(y * w), x)},
                              {.updates = stream.updates(), .device = tested_device()});
        const Results r = f(value, weights);
        const double scale = 1 / (1 - rate);
        std::int64_t dropped = 0, wrong = 0;
        for (std::int64_t i = 0; i < value.size(); ++i) {
            const float v = values[i];
            const bool kept = r[0].at(i) != 0;  // NaN too
            const double expected = kept && v > 0 ? weights.at(i) * scale : 0;
            dropped += v > 0 && !kept;
            wrong += std::abs(r[1].at(i) - expected) > 1e-5;
            wrong += kept && v == v && !(v > 0);
        }
        CHECK(wrong == 0);
        CHECK((rate == 0) == (dropped == 0));
    }
}

TEST_CASE("every optimizer trains on the cpu device as in the oracle") {
    Random random(3);
    const Array x = random_array(float32, {20, 6}, random, -1, 1),
                y = random_array(int32, {20}, random, 0, 3);
    using Make = std::function<Updates(const Expr&, const std::vector<Shared>&)>;
    const std::vector<std::pair<const char*, Make>> optimizers = {
        {"sgd", [](const Expr& l, const std::vector<Shared>& p) { return sgd(l, p, 0.3); }},
        {"momentum",
         [](const Expr& l, const std::vector<Shared>& p) {
             return momentum(l, p, 0.1, {.momentum = 0.8, .weight_decay = 0.01});
         }},
        {"adam", [](const Expr& l, const std::vector<Shared>& p) { return adam(l, p, 0.05); }},
        {"adadelta", [](const Expr& l, const std::vector<Shared>& p) { return adadelta(l, p); }}};
    for (const auto& [name, make] : optimizers) {
        INFO(name);
        std::vector<std::vector<Array>> all;
        for (const char* device : {tested_device(), "reference"}) {
            Shared w = shared(glorot_uniform({6, 9}, 1), "w"), b = shared(zeros({9}), "b"),
                   v = shared(glorot_uniform({9, 4}, 2), "v"), c = shared(zeros({4}), "c");
            const Expr in = matrix("in"), labels = ivector("labels");
            const Expr loss =
                mean(categorical_crossentropy(softmax(dot(tanh(dot(in, w) + b), v) + c), labels));
            const Updates updates = make(loss, {w, b, v, c});
            Function step = function({in, labels}, loss, {.updates = updates, .device = device});
            all.emplace_back();
            for (int i = 0; i < 8; ++i) all.back().push_back(step(x, y));
            for (const Update& u : updates) all.back().push_back(u.target.get_value());
        }
        REQUIRE(all[0].size() == all[1].size());
        for (std::size_t k = 0; k < all[0].size(); ++k)
            CHECK(difference(all[0][k], all[1][k], {.absolute = 2e-5, .relative = 1e-4}) == "");
        CHECK(all[0][7].at(0) < all[0][0].at(0));
    }
}
