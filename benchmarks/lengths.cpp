// What it costs that a function's trailing lengths are not known when it is written: the deep MNIST network
// (convolutions of 32 and 64 filters of 5 x 5 with pooling, 1024 units, 10 classes) as tensor4("x"), compiled
// for the lengths of its calls and for all lengths, against input(float32, {-1, 1, 28, 28}, "x"). Rounds take
// turns; medians of seconds, and bytes, as a line of JSON each. The loss tells that
// results have the same bits.
//
//     bench_lengths [IMAGES [ROUNDS [general]]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bitale/bitale.h"

using namespace bitale;

namespace {

struct Network {
    Shared w1 = shared(glorot_uniform({32, 1, 5, 5}, 1), "w1"), b1 = shared(zeros({32}), "b1");
    Shared w2 = shared(glorot_uniform({64, 32, 5, 5}, 2), "w2"), b2 = shared(zeros({64}), "b2");
    Shared w3 = shared(glorot_uniform({1024, 1024}, 3), "w3"), b3 = shared(zeros({1024}), "b3");
    Shared w4 = shared(glorot_uniform({1024, 10}, 4), "w4"), b4 = shared(zeros({10}), "b4");

    static Expr channels(const Shared& b, std::int64_t count) { return reshape(b, {1, count, 1, 1}); }
    Expr scores(const Expr& x) const {
        Expr h = relu(max_pool(conv2d(x, w1), 2) + channels(b1, 32));
        h = relu(max_pool(conv2d(h, w2), 2) + channels(b2, 64));
        h = relu(dot(flatten(h, 2), w3) + b3);
        return dot(h, w4) + b4;
    }
    Expr loss(const Expr& x, const Expr& y) const { return mean(softmax_crossentropy(scores(x), y)); }
    Function evaluation(const Expr& x, const Expr& y, bool specialise) const {
        return function({x, y}, {loss(x, y), sum(neq(argmax(scores(x), {1}), y))},
                        {.name = "evaluation", .specialise = specialise});
    }
    Function step(const Expr& x, const Expr& y, bool specialise) const {
        const Expr l = loss(x, y);
        return function({x, y}, l,
                        {.updates = sgd(l, {w1, b1, w2, b2, w3, b3, w4, b4}, 0.01),
                         .name = "step",
                         .specialise = specialise});
    }
};

struct Way {
    const char* name = "";
    Network network{};
    Function evaluation{}, step{};
    std::vector<double> evaluations{}, steps{};
    double loss = 0;
};

double seconds_of(Function& f, const Array& x, const Array& y, double& first) {
    const auto start = std::chrono::steady_clock::now();
    const Results results = f(x, y);
    first = results[0].at(0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    return x[x.size() / 2];
}

void print(const Way& way, const char* what, const std::vector<double>& seconds, const Function& f,
           double loss) {
    std::printf(
        "{\"what\": \"%s\", \"way\": \"%s\", \"median_s\": %.5f, \"least_s\": %.5f, \"peak_bytes\": %lld, "
        "\"compile_s\": %.2f, \"loss\": %.9g}\n",
        what, way.name, median(seconds), *std::min_element(seconds.begin(), seconds.end()),
        static_cast<long long>(f.peak_bytes()), f.compile_seconds(), loss);
}

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t images = argc > 1 ? std::atoll(argv[1]) : 1000;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
    const bool with_general = argc > 3;
    const Expr y = ivector("y");
    std::vector<Way> ways;
    const auto add = [&](const char* name, const Expr& x, bool specialise) {
        Way& way = ways.emplace_back();
        way.name = name;
        way.evaluation = way.network.evaluation(x, y, specialise);
        way.step = way.network.step(x, y, specialise);
    };
    add("known lengths", input(float32, {-1, 1, 28, 28}, "x"), true);
    add("unknown lengths", tensor4("x"), true);
    if (with_general) add("unknown lengths, one version for all", tensor4("x"), false);

    const Array x = glorot_uniform({images, 1, 28, 28}, 5), batch = glorot_uniform({128, 1, 28, 28}, 6);
    Array labels(int32, {images});
    for (std::int64_t i = 0; i < images; ++i)
        static_cast<std::int32_t*>(labels.mutable_data())[i] = static_cast<std::int32_t>(i % 10);
    const Array of_batch = eval(y[Slice{0, 128}], {{y, labels}});
    for (int round = -1; round < rounds; ++round)  // the first round compiles
        for (Way& way : ways) {
            const double evaluation = seconds_of(way.evaluation, x, labels, way.loss);
            double ignored = 0;
            std::vector<double> steps;
            for (int k = 0; k < 3; ++k) steps.push_back(seconds_of(way.step, batch, of_batch, ignored));
            if (round < 0) continue;
            way.evaluations.push_back(evaluation);
            way.steps.push_back(median(steps));
        }
    for (const Way& way : ways) {
        print(way, "evaluation", way.evaluations, way.evaluation, way.loss);
        print(way, "step of 128", way.steps, way.step, way.loss);
    }

    // A call that does next to nothing, of which the look at the lengths is a part.
    const Expr t = tensor4("t"), known = input(float32, {-1, 1, 2, 2}, "t");
    Function small = function({t}, sum(t)), of_known = function({known}, sum(known));
    const Array few(float32, {1, 1, 2, 2});
    std::vector<double> nanoseconds[2];
    for (int round = 0; round < 15; ++round)
        for (Function* f : {&of_known, &small}) {
            const int calls = 20000;
            const auto start = std::chrono::steady_clock::now();
            for (int k = 0; k < calls; ++k) (*f)(few);
            const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
            nanoseconds[f == &small].push_back(1e9 * all.count() / calls);
        }
    std::printf("{\"what\": \"a tiny call\", \"known_ns\": %.1f, \"unknown_ns\": %.1f}\n",
                median(nanoseconds[0]), median(nanoseconds[1]));
}
