// The same bits for any number of threads and from run to run; the same losses for any storage of the data.
#include <fmt/format.h>

#include <functional>

#include "graph/base/options.h"
#include "tests/numerics/random_graph.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Everything that some calls of a function give, and the shared variables after them.
using Made = std::function<std::vector<Array>()>;

std::vector<Array> with_threads(int threads, const Made& made) {
    Options chosen = options();
    chosen.threads = threads;
    const ScopedOptions scope(chosen);
    return made();
}

void require_same_bits(const Made& made) {
    const std::vector<Array> one = with_threads(1, made);
    REQUIRE(!one.empty());
    for (const int threads : {1, 2, 2, 3}) {
        const std::vector<Array> other = with_threads(threads, made);
        REQUIRE(other.size() == one.size());
        for (std::size_t k = 0; k < one.size(); ++k) {
            INFO("result " << k << " with " << threads << " threads: " << difference(other[k], one[k]));
            REQUIRE(same(other[k], one[k]));
        }
    }
}

constexpr std::int64_t images_count = 70, side = 14, batch = 16;

// Pixels 0 .. 255 as uint8, float32, or int8 (pixel - 128).
Array stored_as(DType dtype, const Array& pixels) {
    if (dtype != int8) return pixels.as(dtype);
    Array shifted(int8, pixels.shape());
    for (std::int64_t i = 0; i < pixels.size(); ++i)
        static_cast<std::int8_t*>(shifted.mutable_data())[i] = static_cast<std::int8_t>(pixels.at(i) - 128);
    return shifted;
}

// A small convolutional network on shuffled minibatches, the last of them partial: losses of each step and
// the parameters at the end.
std::vector<Array> trained(DType storage, double rate_of_dropout, const std::string& device = "cpu") {
    Random random(5);
    const Array pixels = random_array(uint8, {images_count, 1, side, side}, random, 0, 255),
                classes = random_array(uint8, {images_count}, random, 0, 9);
    Shared images = shared(stored_as(storage, pixels), "images"), labels = shared(classes, "labels"),
           order = shared(permutation(images_count, 3), "order");
    Shared w = shared(glorot_uniform({6, 1, 3, 3}, 1), "w"), b = shared(zeros({6}), "b"),
           v = shared(glorot_uniform({6 * 49, 10}, 2), "v"), c = shared(zeros({10}), "c");
    RandomStream stream(9);
    const Expr x = tensor4("x"), y = ivector("y"), i = lscalar("i");
    Expr h =
        flatten(relu(max_pool(conv2d((x - mean(x)) / 128, w, {.border_mode = half}), 2) + channel(b)), 2);
    if (rate_of_dropout > 0) h = dropout(h, rate_of_dropout, stream);
    const Expr p = softmax(dot(h, v) + c);
    const Expr loss = mean(categorical_crossentropy(p, y)), errors = sum(neq(argmax(p, {1}), y));
    const Expr at = Expr(order)[Slice{i * batch, (i + 1) * batch}];
    Function step = function({i}, {loss, errors},
                             {.updates = adam(loss, {w, b, v, c}, 0.01) + stream.updates(),
                              .givens = {{x, cast(images[at], float32)}, {y, cast(labels[at], int32)}},
                              .name = "step",
                              .device = device});
    std::vector<Array> all;
    for (int epoch = 0; epoch < 3; ++epoch) {
        order.set_value(permutation(images_count, 10 + static_cast<std::uint64_t>(epoch)));
        for (std::int64_t k = 0; k * batch < images_count; ++k) {
            const Results r = step(k);
            all.push_back(r[0]);
            all.push_back(r[1]);
        }
        const Results looped = step.loop(0, images_count / batch);
        all.push_back(looped[0]);
        all.push_back(looped[1]);
    }
    for (const Shared& s : {w, b, v, c}) all.push_back(s.get_value());
    return all;
}

}  // namespace

TEST_CASE("same bits for any number of threads: long and many reductions, products, convolutions") {
    Random random(1);
    const Array one = random_array(float32, {300'007}, random),
                tall = random_array(float32, {50'001, 3}, random),
                many = random_array(float32, {129, 1000}, random),
                bytes = random_array(int8, {200'001}, random, -9, 9),
                left = random_array(float32, {130, 257}, random),
                right = random_array(float32, {257, 65}, random),
                image = random_array(float32, {9, 3, 20, 21}, random),
                filters = random_array(float32, {7, 3, 3, 3}, random);
    require_same_bits([&] {
        const Expr a = vector("a"), t = matrix("t"), m = matrix("m"), i = input(int8, 1, "i"),
                   l = matrix("l"), r = matrix("r"), x = tensor4("x"), w = input(float32, {7, 3, 3, 3}, "w");
        const Expr y = conv2d(x, w, {.border_mode = half, .subsample = Size2(1, 2)});
        const Expr p = max_pool(relu(y), 3, {.stride = Size2(2)});
        const Expr cost = mean(p * sin(p)) + mean(sqr(dot(l, r)));
        const std::vector<Expr> outputs = {sum(a),
                                           mean(exp(a)),
                                           sqrt(mean(sqr(a - mean(a)))),
                                           prod(a / abs(a), {}),
                                           max(a),
                                           argmax(a),
                                           sum(t, {0}),
                                           mean(t, {1}),
                                           argmin(t, {0}),
                                           softmax(m),
                                           sum(m),
                                           log_softmax(m, 0),
                                           sum(i),
                                           mean(i),
                                           dot(l, r),
                                           dot(transpose(tanh(l)), tanh(l)),
                                           y,
                                           p,
                                           cost,
                                           grad(cost, x),
                                           grad(cost, w),
                                           grad(cost, l)};
        return results_of(function({a, t, m, i, l, r, x, w}, outputs, {.name = "mixed", .device = "cpu"}),
                          {one, tall, many, bytes, left, right, image, filters}, 2);
    });
}

TEST_CASE("same bits for any number of threads: filters that learn through winners") {
    Random random(4);
    const Array image = random_array(float32, {11, 9, 22, 21}, random),
                filters = random_array(float32, {7, 9, 3, 3}, random);
    require_same_bits([&] {
        const Expr x = tensor4("x"), w = input(float32, {7, 9, 3, 3}, "w");
        const Expr y = conv2d(x / 3, w, {.border_mode = half}),
                   p = max_pool(relu(y), 3, {.stride = Size2(2)}), q = max_pool(y, 2);
        return results_of(function({x, w}, {grad(sum(p * p), w), grad(sum(q * q), w)}, {.device = "cpu"}),
                          {image, filters}, 2);
    });
}

TEST_CASE("same bits for any number of threads: random numbers") {
    require_same_bits([] {
        RandomStream stream(3);
        const Expr u = stream.uniform({50'001}), n = stream.normal({301, 67});
        return results_of(
            function({}, {u, n, sum(u), mean(n, {0})}, {.updates = stream.updates(), .device = "cpu"}), {},
            3);
    });
}

TEST_CASE("same bits for any number of threads: a convolutional network in training, with dropout") {
    require_same_bits([] { return trained(uint8, 0.25); });
}

TEST_CASE("same bits for any number of threads: the networks of the examples") {
    for (const std::string& name : net_names()) {
        INFO(name);
        require_same_bits([&] {
            NetOptions some;
            some.device = "cpu";
            some.images = 112;
            some.batch = 48;  // the last minibatch is partial
            some.test_batch = 64;
            some.seed = 11;
            Net net = make_net(name, some);
            std::vector<Array> all;
            const Results steps = net.step.loop(0, 2), last = net.step(2), evaluated = net.evaluation(1);
            for (const Results* r : {&steps, &last, &evaluated})
                for (std::size_t k = 0; k < r->size(); ++k) all.push_back((*r)[k]);
            for (const Shared& s : net.params) all.push_back(s.get_value());
            return all;
        });
    }
}

TEST_CASE("same bits for any number of threads: random graphs") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        require_same_bits([&] {
            GraphGenerator generator(seed, Arithmetic::smooth);
            const RandomGraph graph = generator.generate(12);
            return results_of(function({graph.inputs.begin(), graph.inputs.end()}, graph.outputs,
                                       {.device = "cpu", .on_unused_input = OnUnused::ignore}),
                              graph.arguments, 2);
        });
    }
}

TEST_CASE("one seed gives the same losses whether the data are kept as bytes or as floats") {
    const std::vector<Array> floats = trained(float32, 0), bytes = trained(uint8, 0),
                             shifted = trained(int8, 0);
    REQUIRE(floats.size() == bytes.size());
    REQUIRE(floats.size() == shifted.size());
    CHECK(floats[0].at(0) > 1);  // it learns something
    CHECK(floats[floats.size() - 8].at(0) < floats[0].at(0));
    for (std::size_t k = 0; k < floats.size(); ++k) {
        INFO("result " << k);
        CHECK(same(bytes[k], floats[k]));
        CHECK(difference(shifted[k], floats[k], {.absolute = 1e-5, .relative = 1e-5}) == "");
    }
    // The oracle's first epoch.
    const std::vector<Array> oracle = trained(uint8, 0, "reference");
    for (std::size_t k = 0; k < 10; ++k) CHECK(difference(bytes[k], oracle[k], {.absolute = 1e-4}) == "");
}
