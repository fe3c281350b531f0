// Maps of a library's products, which run on slices of them: activations, their gradients and updates of
// parameters, against the oracle, with the same bits for any number of threads; and what must not run so.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

enum class UpdateRule { sgd, momentum, adam };

struct Trained {
    std::vector<Array> values;
    std::string report;
};

// Three steps with minibatches of different sizes.
Trained trained(UpdateRule optimizer, std::int64_t inputs, std::int64_t hidden, std::int64_t outputs,
                const std::string& device) {
    Random random(11);
    Shared w = shared(random_array(float32, {inputs, hidden}, random, -0.1, 0.1), "w"),
           b = shared(random_array(float32, {hidden}, random, -1, 1), "b"),
           v = shared(random_array(float32, {hidden, outputs}, random, -0.1, 0.1), "v");
    const Expr x = matrix("x"), t = matrix("t");
    const Expr h = tanh(dot(x, w) + b);
    const Expr cost = mean(sqr(sigmoid(dot(h, v)) - t));
    const std::vector<Shared> parameters{w, b, v};
    const Updates updates = optimizer == UpdateRule::sgd        ? sgd(cost, parameters, 0.5)
                            : optimizer == UpdateRule::momentum ? momentum(cost, parameters, 0.5)
                                                                : adam(cost, parameters, 0.01);
    Function f = function({x, t}, {cost, h}, {.updates = updates, .name = "layers", .device = device});
    Trained r;
    for (const std::int64_t batch : {64, 5, 150}) {
        const Array images = random_array(float32, {batch, inputs}, random, -1, 1),
                    targets = random_array(float32, {batch, outputs}, random, 0, 1);
        const Results got = f.call(std::vector<Array>{images, targets});
        for (std::size_t i = 0; i < got.size(); ++i) r.values.push_back(got[i]);
    }
    for (const Shared& s : parameters) r.values.push_back(s.get_value());
    r.report = f.report(Detail::complete);
    return r;
}

}  // namespace

TEST_CASE("layers and their updates on slices of products") {
    for (const UpdateRule optimizer : {UpdateRule::sgd, UpdateRule::momentum, UpdateRule::adam}) {
        const Trained exact = trained(optimizer, 300, 130, 70, "reference");
        for (const bool library : {true, false}) {
            std::vector<Array> first;
            for (const int threads : {1, 2, 3}) {
                const ScopedOptions scope(with(library, threads));
                const Trained got = trained(optimizer, 300, 130, 70, tested_device());
                INFO(fmt::format("optimizer {}, library {}, {} threads", static_cast<int>(optimizer), library,
                                 threads));
                REQUIRE(got.values.size() == exact.values.size());
                for (std::size_t i = 0; i < got.values.size(); ++i) {
                    INFO("result " << i);
                    // The first steps of adam divide by gradients that may be close to nothing.
                    const double close = optimizer == UpdateRule::adam ? 2e-3 : 2e-5;
                    CHECK(difference(got.values[i], exact.values[i], {.of_largest = close}) == "");
                    if (!first.empty()) CHECK(difference(got.values[i], first[i]) == "");
                }
                if (first.empty()) first = got.values;
                const bool called = got.report.find("library call") != std::string::npos;
                if (std::string(tested_device()) != "cpu" || !called) continue;
                CHECK(got.report.find("right after the library has computed it") != std::string::npos);
                const bool adds =
                    got.report.find("the call adds it to the variable that it updates") != std::string::npos;
                CHECK(adds == (optimizer != UpdateRule::adam));
            }
        }
    }
}

TEST_CASE("maps of products that need more than a slice, or that others need too") {
    constexpr std::int64_t n = 160;
    const auto run = [&](const std::string& device) {
        Random random(5);
        Shared w = shared(random_array(float32, {n, n}, random, -0.1, 0.1), "w"),
               u = shared(random_array(float32, {n, n}, random, -0.1, 0.1), "u"),
               z = shared(random_array(float32, {n, n}, random, -0.1, 0.1), "z");
        const Expr x = matrix("x"), y = matrix("y");
        const Expr p = dot(x, w), q = dot(y, x);
        // The product reads what it replaces; a map that turns its own product; one that turns what it
        // replaces; a product that is wanted as it is, and maps of it; a map of two products.
        const Expr turned = q + transpose(q) * 2;
        Function f = function(
            {x, y}, {turned, tanh(q), q, tanh(p * q), exp(tanh(dot(y, y))) * 3},
            {.updates = {{w, w - p}, {u, transpose(u) - dot(y, u)}, {z, z * tanh(dot(x, y)) + mean(z, {0})}},
             .name = "hazards",
             .device = device});
        std::vector<Array> all;
        for (int step = 0; step < 2; ++step) {
            const Results r = f.call(std::vector<Array>{random_array(float32, {n, n}, random, -0.2, 0.2),
                                                        random_array(float32, {n, n}, random, -0.2, 0.2)});
            for (std::size_t i = 0; i < r.size(); ++i) all.push_back(r[i]);
            for (const Shared& s : {w, u, z}) all.push_back(s.get_value());
        }
        return all;
    };
    const std::vector<Array> exact = run("reference");
    for (const int threads : {1, 2, 3}) {
        const ScopedOptions scope(with(true, threads));
        const std::vector<Array> got = run(tested_device());
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO(fmt::format("{} threads, result {}", threads, i));
            CHECK(difference(got[i], exact[i], {.of_largest = 2e-5}) == "");
        }
    }
}

TEST_CASE("an update on slices is not made when a check fails") {
    Random random(3);
    const Array before = random_array(float32, {200, 150}, random, -0.1, 0.1);
    Shared w = shared(before, "w"), data = shared(random_array(float32, {90, 200}, random, -1, 1), "data");
    const Expr rows = input(int64, 1, "rows");
    const Expr cost = mean(sqr(dot(data[rows], w) - 1));
    Function f = function({rows}, {cost},
                          {.updates = sgd(cost, {w}, 0.1), .name = "checked", .device = tested_device()});
    Array order(int64, {64});
    for (std::int64_t i = 0; i < 64; ++i) static_cast<std::int64_t*>(order.mutable_data())[i] = i;
    static_cast<std::int64_t*>(order.mutable_data())[63] = 90;
    CHECK_THROWS_AS(f(order), IndexError);
    CHECK(difference(w.get_value(), before) == "");
    static_cast<std::int64_t*>(order.mutable_data())[63] = 89;
    f(order);
    CHECK(difference(w.get_value(), before) != "");
}

TEST_CASE("a residual stream is stored layer by layer, in place of its convolutions") {
    Random random(8);
    const auto weights = [&](const Dims& shape) { return random_array(float32, shape, random, -0.2, 0.2); };
    const Array image = weights({4, 32, 1, 2048});
    std::vector<Array> first, second;
    for (int l = 0; l < 6; ++l) {
        first.push_back(weights({32, 32, 1, 2}));
        second.push_back(weights({32, 32, 1, 1}));
    }
    std::vector<Array> results;
    for (const std::string& device : {std::string(tested_device()), std::string("reference")}) {
        Expr h = shared(image, "image");
        for (std::size_t l = 0; l < first.size(); ++l) {
            const Expr before = pad(h, {{0, 0}, {0, 0}, {0, 0}, {1, 0}});
            const Expr inner = tanh(conv2d(before, shared(first[l])));
            h = h + conv2d(inner, shared(second[l]));
        }
        Function f = function({}, h, {.device = device});
        results.push_back(f());
        if (device == "cpu") {
            const std::string report = f.report(Detail::complete);
            std::size_t stored = 0;
            for (std::size_t at = report.find("a sum of several arrays that ends a reduction");
                 at != std::string::npos;
                 at = report.find("a sum of several arrays that ends a reduction", at + 1))
                ++stored;
            CHECK(stored >= first.size() - 2);
        }
    }
    CHECK(difference(results[0], results[1], {.of_largest = 2e-6}).empty());
}
