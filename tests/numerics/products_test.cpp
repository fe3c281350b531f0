// Matrix products of the CPU: by the library and generated, every way of storing the factors, thin, odd, of
// one and of nothing, with what is fused into them; against sums in float64, and with the same bits for any
// number of threads.
#include <fmt/format.h>

#include <cmath>
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

struct ProductSizes {
    std::int64_t m, n, k;
};

// a[m, k] . b[k, n], stored as the names say, in float64.
Array expected(const Array& a, bool turned_a, const Array& b, bool turned_b, const ProductSizes& s) {
    Array r(float64, {s.m, s.n});
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
            double sum = 0;
            for (std::int64_t t = 0; t < s.k; ++t)
                sum +=
                    a.at(turned_a ? t * s.m + i : i * s.k + t) * b.at(turned_b ? j * s.k + t : t * s.n + j);
            to[i * s.n + j] = sum;
        }
    return r;
}

constexpr Tolerance rounding{.of_largest = 3e-6};

std::string wrong(const Array& got, const Array& exact) {
    return difference(got, exact.as(float32), rounding);
}

}  // namespace

TEST_CASE("products of any size, with and without a library") {
    const std::vector<ProductSizes> all = {{1, 1, 1},     {0, 3, 2},      {3, 0, 2},    {3, 2, 0},
                                           {7, 5, 3},     {17, 33, 65},   {64, 64, 64}, {5, 300, 40},
                                           {300, 10, 70}, {130, 70, 260}, {1, 90, 200}, {129, 1, 150}};
    Random random(1);
    for (const bool library : {true, false}) {
        const ScopedOptions scope(with(library, 0));
        const Expr a = matrix("a"), b = matrix("b"), at = matrix("at"), bt = matrix("bt");
        Function f = function({a, b, at, bt},
                              {dot(a, b), dot(transpose(at), b), dot(a, transpose(bt)),
                               dot(transpose(at), transpose(bt)), relu(dot(a, b) * 0.5 + 1)},
                              {.name = "products", .device = tested_device()});
        for (const ProductSizes& s : all) {
            const Array x = random_array(float32, {s.m, s.k}, random),
                        y = random_array(float32, {s.k, s.n}, random),
                        xt = random_array(float32, {s.k, s.m}, random),
                        yt = random_array(float32, {s.n, s.k}, random);
            const Results r = f.call(std::vector<Array>{x, y, xt, yt});
            INFO(fmt::format("{} x {} x {}, library {}", s.m, s.n, s.k, library));
            const Array plain = expected(x, false, y, false, s);
            CHECK(wrong(r[0], plain) == "");
            CHECK(wrong(r[1], expected(xt, true, y, false, s)) == "");
            CHECK(wrong(r[2], expected(x, false, yt, true, s)) == "");
            CHECK(wrong(r[3], expected(xt, true, yt, true, s)) == "");
            Array clipped(float64, {s.m, s.n});
            for (std::int64_t i = 0; i < s.m * s.n; ++i)
                static_cast<double*>(clipped.mutable_data())[i] = std::max(0.0, plain.at(i) * 0.5 + 1);
            CHECK(wrong(r[4], clipped) == "");
        }
    }
}

namespace {

// A layer of few results on gathered rows, and what its training computes: the product, its weights'
// gradient, and the gradient that goes on.
struct ThinLayers {
    std::int64_t inputs, hidden, classes, batch;
    DType stored = uint8;
};

std::vector<Array> trained(const ThinLayers& net, const std::string& device) {
    const auto [inputs, hidden, classes, batch, stored] = net;
    Random random(7);
    const Array pixels = random_array(stored, {100, inputs}, random, stored == uint8 ? 0 : -128, 127);
    // The last image, behind which there is nothing to read, among them.
    Array order = random_array(int64, {batch}, random, 0, 99);
    static_cast<std::int64_t*>(order.mutable_data())[batch - 1] = 99;
    const Array targets = random_array(float32, {batch, classes}, random, 0, 1);
    Shared images = shared(pixels, "images"),
           w = shared(random_array(float32, {inputs, hidden}, random, -1, 1), "w"),
           b = shared(random_array(float32, {hidden}, random, -1, 1), "b"),
           v = shared(random_array(float32, {hidden, classes}, random, -1, 1), "v");
    const Expr rows = input(int64, 1, "rows"), t = matrix("t");
    const Expr x = (cast(images[rows], float32) - 127) / 256;
    const Expr h = tanh(dot(x, w) / static_cast<double>(inputs) + b);
    const Expr cost = mean(sqr(dot(h, v) - t));
    const std::vector<Expr> gradients = grad(cost, {w, b, v});
    Function f = function({rows, t}, {cost, gradients[0], gradients[1], gradients[2]},
                          {.updates = sgd(cost, {w, b, v}, 0.1), .name = "layers", .device = device});
    std::vector<Array> all;
    for (int step = 0; step < 2; ++step) {
        const Results r = f.call(std::vector<Array>{order, targets});
        for (std::size_t i = 0; i < r.size(); ++i) all.push_back(r[i]);
    }
    for (const Shared& s : {w, b, v}) all.push_back(s.get_value());
    return all;
}

}  // namespace

TEST_CASE("thin layers on gathered rows and their gradients") {
    for (const ThinLayers& net :
         {ThinLayers{100, 10, 3, 70}, ThinLayers{49, 16, 10, 300}, ThinLayers{70, 33, 1, 5},
          ThinLayers{130, 7, 12, 1}, ThinLayers{784, 10, 2, 33}, ThinLayers{192, 12, 3, 150, int8},
          ThinLayers{128, 5, 3, 40, float32}, ThinLayers{100, 14, 3, 40, float32}}) {
        const std::vector<Array> exact = trained(net, "reference");
        for (const bool library : {true, false}) {
            std::vector<Array> first;
            for (const int threads : {1, 2, 3}) {
                const ScopedOptions scope(with(library, threads));
                const std::vector<Array> got = trained(net, tested_device());
                INFO(fmt::format("{} -> {} -> {}, batch {}, library {}, {} threads", net.inputs, net.hidden,
                                 net.classes, net.batch, library, threads));
                REQUIRE(got.size() == exact.size());
                for (std::size_t i = 0; i < got.size(); ++i) {
                    INFO("result " << i);
                    CHECK(difference(got[i], exact[i], {.of_largest = 2e-5}) == "");
                    if (!first.empty()) CHECK(difference(got[i], first[i]) == "");
                }
                if (first.empty()) first = got;
            }
        }
    }
}

// Blocks of terms are added up by themselves: in one float32 sum the error would grow with the length.
TEST_CASE("products over a long axis of unknown length are as precise as those of known ones") {
    Random random(5);
    const bool is_cpu = tested_device() == std::string("cpu");
    for (const std::int64_t columns : {17, 24, 40, 64, 80})
        for (const std::int64_t rows : is_cpu ? std::vector<std::int64_t>{0, 1, 255, 257, 3000, 40'000}
                                              : std::vector<std::int64_t>{1, 257, 1500}) {
            const Expr x = input(float32, Dims{-1, columns}, "x"), moved = x - 0.25F,
                       wide = cast(moved, float64);
            const Array values = random_array(float32, {rows, columns}, random, 0, 1);
            const Array got =
                            function({x}, dot(transpose(moved), moved), {.device = tested_device()})(values),
                        exact = function({x}, dot(transpose(wide), wide), {.device = "reference"})(values);
            double error = 0, most = 1e-30;
            for (std::int64_t i = 0; i < columns * columns; ++i) {
                error = std::max(error, std::abs(got.at(i) - exact.at(i)));
                most = std::max(most, std::abs(exact.at(i)));
            }
            INFO(columns << " columns, " << rows << " rows");
            CHECK(error <= 1e-6 * most);
        }
}
