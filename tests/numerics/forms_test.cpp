// The same sums in forms whose elements lie otherwise in memory: columns of bytes, interleaved channels, rows
// that fill no tile, and distances between two sets of points.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "bitale/bitale.h"
#include "codegen/program.h"
#include "graph/base/options.h"
#include "runtime/state.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array whole_range(DType dtype, const Dims& shape, Random& random) {
    if (dtype == boolean) return random_array(dtype, shape, random, 0, 1);
    return dtype == int8 ? random_array(dtype, shape, random, -128, 127)
                         : random_array(dtype, shape, random, 0, 255);
}

// Over the first axis of rows x columns.
std::vector<double> sums_of_columns(const Array& x, std::int64_t rows, std::int64_t columns) {
    std::vector<double> sums(static_cast<std::size_t>(columns), 0);
    for (std::int64_t i = 0; i < rows * columns; ++i) sums[static_cast<std::size_t>(i % columns)] += x.at(i);
    return sums;
}

// On the device, and with the same bits on a GPU.
std::vector<Array> the_same_everywhere(const std::function<Function(const std::string&)>& made,
                                       const std::vector<Array>& arguments) {
    std::vector<Array> own = results_of(made(tested_device()), arguments);
    const std::vector<Array> gpu = results_of(made(tested_gpu()), arguments);
    for (std::size_t k = 0; k < own.size(); ++k) {
        INFO("result " << k << ": " << difference(gpu[k], own[k]));
        REQUIRE(same(gpu[k], own[k]));
    }
    return own;
}

// Mean, variance, extremes and a sum of exponentials of (x - 33.3) / 128 by channel, against float64.
void check_channels(const std::vector<Array>& got, const Array& x) {
    const std::int64_t points = x.shape()[0], channels = x.shape()[1];
    INFO(name_of(x.dtype()) << ", " << points << " points of " << channels);
    for (std::int64_t c = 0; c < channels; ++c) {
        double total = 0, squares = 0, exponentials = 0, most = -1e9, least = 1e9;
        const auto value = [&](std::int64_t p) { return (x.at(p * channels + c) - 33.3) / 128; };
        for (std::int64_t p = 0; p < points; ++p) total += value(p);
        const double many = static_cast<double>(points), m = total / many;
        for (std::int64_t p = 0; p < points; ++p) {
            const double v = value(p);
            squares += (v - m) * (v - m);
            exponentials += std::exp(v) * 0.5 + m;
            most = std::max(most, v);
            least = std::min(least, v - m);
        }
        CHECK(got[0].at(c) == Approx(m).epsilon(1e-4).margin(1e-5));
        CHECK(got[1].at(c) == Approx(squares / many).epsilon(1e-3).margin(1e-7));
        CHECK(got[2].at(c) == Approx(most).epsilon(1e-4).margin(1e-5));
        CHECK(got[3].at(c) == Approx(least).epsilon(1e-3).margin(1e-5));
        CHECK(got[4].at(c) == Approx(exponentials).epsilon(1e-3).margin(1e-3));
    }
}

}  // namespace

TEST_CASE("sums of columns of bytes are exact, of any number and of an unknown one") {
    Random random(3);
    for (const DType dtype : {uint8, int8, boolean}) {
        const Expr any = matrix("x", dtype);
        Function unknown =
            function({any}, {sum(any, {0}), mean(cast(any, float32), {0})}, {.device = tested_device()});
        for (const Dims& shape :
             {Dims{0, 5}, Dims{5, 0}, Dims{1, 1}, Dims{3, 2}, Dims{127, 3}, Dims{128, 3}, Dims{131, 63},
              Dims{70'001, 1}, Dims{30'011, 2}, Dims{20'000, 3}, Dims{3000, 17}, Dims{1000, 64},
              Dims{259, 65}, Dims{513, 4097}, Dims{700, 333}, Dims{200, 20'003}, Dims{66, 9000}}) {
            const Array x = whole_range(dtype, shape, random);
            const std::vector<double> expected = sums_of_columns(x, shape[0], shape[1]);
            std::vector<Function> all{unknown};
            if (shape[0] > 500 && dtype != boolean)
                for (const std::int64_t rows : {shape[0], std::int64_t{-1}}) {
                    const Expr known = input(dtype, {rows, shape[1]}, "x");
                    all.push_back(function({known}, {sum(known, {0}), mean(cast(known, float32), {0})},
                                           {.device = tested_device()}));
                }
            for (std::size_t f = 0; f < all.size(); ++f) {
                const Results got = all[f].call(std::vector<Array>{x});
                INFO(name_of(dtype) << " " << text_of(shape) << ", function " << f);
                REQUIRE(got[0].to_vector<double>() == expected);
                for (std::int64_t j = 0; shape[0] > 0 && j < shape[1]; ++j)
                    REQUIRE(got[1].at(j) ==
                            Approx(expected[static_cast<std::size_t>(j)] / static_cast<double>(shape[0])));
            }
        }
    }
}

TEST_CASE("sums of bytes over images: by channel, of some channels, by column of pixels") {
    Random random(4);
    for (const DType dtype : {uint8, int8})
        for (const std::int64_t channels : {2, 3, 7, 33, 100}) {
            const std::int64_t n = 40, h = 21, w = 13, some = channels - 1;
            const Array x = whole_range(dtype, {n, h, w, channels}, random);
            const Expr images = input(dtype, {n, h, w, channels}, "images"), any = tensor4("images", dtype);
            const auto sums = [&](const Expr& i) {
                return std::vector<Expr>{sum(i, {0, 1, 2}),
                                         sum(i[{colon, colon, colon, Slice{0, some}}], {0, 1, 2}),
                                         sum(i[{colon, Slice{2, 20}, Slice{1, 12}}], {0, 1, 2}),
                                         sum(i, {0}),
                                         sum(i, {1, 2}),
                                         sum(i, {0, 1})};
            };
            std::vector<std::vector<double>> expected(6);
            expected[0] = expected[2] = std::vector<double>(channels, 0);
            expected[1] = std::vector<double>(some, 0);
            expected[3] = std::vector<double>(h * w * channels, 0);
            expected[4] = std::vector<double>(n * channels, 0);
            expected[5] = std::vector<double>(w * channels, 0);
            for (std::int64_t i = 0; i < x.size(); ++i) {
                const std::int64_t c = i % channels, column = i / channels % w, row = i / channels / w % h,
                                   image = i / channels / w / h;
                const double value = x.at(i);
                expected[0][c] += value;
                if (c < some) expected[1][c] += value;
                if (row >= 2 && row < 20 && column >= 1 && column < 12) expected[2][c] += value;
                expected[3][i % (h * w * channels)] += value;
                expected[4][image * channels + c] += value;
                expected[5][column * channels + c] += value;
            }
            for (const Expr& i : {images, any}) {
                const std::vector<Array> got =
                    results_of(function({i}, sums(i), {.device = tested_device()}), std::vector<Array>{x});
                for (std::size_t k = 0; k < got.size(); ++k) {
                    INFO(name_of(dtype) << ", " << channels << " channels, sum " << k);
                    REQUIRE(got[k].to_vector<double>() == expected[k]);
                }
            }
        }
}

TEST_CASE("interleaved channels are reduced in the order of each channel by itself") {
    Random random(5);
    for (const DType dtype : {float32, uint8, float64})
        for (const std::int64_t channels : {2, 3, 7}) {
            const DType wide = dtype == float64 ? float64 : float32;
            const auto made = [&](std::int64_t points) {
                return [=](const std::string& device) {
                    const Expr pixels = input(dtype, {points, channels}, "pixels");
                    const Expr scaled = (cast(pixels, wide) - 33.3F) / 128;
                    const Expr m = mean(scaled, {0});
                    return function({pixels},
                                    {m, mean(sqr(scaled - m), {0}), max(scaled, {0}), min(scaled - m, {0}),
                                     sum(exp(scaled) * 0.5F + m, {0})},
                                    {.device = device});
                };
            };
            for (const std::int64_t points : {200, 40'007}) {
                const Array x = dtype == uint8 ? whole_range(dtype, {points, channels}, random)
                                               : random_array(dtype, {points, channels}, random, -1, 1);
                check_channels(the_same_everywhere(made(points), {x}), x);
            }
            Function any = made(-1)(tested_device());
            for (const std::int64_t points : {1, 15, 63, 64, 65, 1024, 17'000}) {
                const Array x = dtype == uint8 ? whole_range(dtype, {points, channels}, random)
                                               : random_array(dtype, {points, channels}, random, -1, 1);
                check_channels(results_of(any, {x}), x);
            }
        }
}

TEST_CASE("images of interleaved channels, each by itself") {
    Random random(6);
    const std::int64_t n = 5, points = 7 * 31, channels = 3;
    const Array x = random_array(float32, {n, points, channels}, random, -1, 1);
    for (const bool known : {true, false}) {
        const auto made = [&](const std::string& device) {
            const Expr images = known ? input(float32, {n, points, channels}, "x") : tensor3("x");
            const Expr m = mean(images, {1}, {.keepdims = true});
            return function({images}, {mean(images, {1}), mean(sqr(images - m), {1})}, {.device = device});
        };
        const std::vector<Array> got = the_same_everywhere(made, {x});
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t c = 0; c < channels; ++c) {
                double total = 0, squares = 0;
                for (std::int64_t p = 0; p < points; ++p) total += x.at((i * points + p) * channels + c);
                const double m = total / static_cast<double>(points);
                for (std::int64_t p = 0; p < points; ++p)
                    squares += std::pow(x.at((i * points + p) * channels + c) - m, 2);
                CHECK(got[0].at(i * channels + c) == Approx(m).margin(1e-6));
                CHECK(got[1].at(i * channels + c) ==
                      Approx(squares / static_cast<double>(points)).epsilon(1e-4));
            }
    }
}

namespace {

// Whether a library computes the product of a result: its calls may add in another order where rows are more
// or fewer. CUDA's is asked for products of more than a few rows, columns and terms.
std::vector<bool> by_library(const Function& f, std::size_t results) {
    std::vector<bool> found(results, false);
    const auto& program = f.state().program;
    if (!program) return found;
    for (const Step& step : program->body.steps)
        if (const auto* call = std::get_if<GemmStep>(&step.operation)) {
            const BufferInfo& to = program->buffers[static_cast<std::size_t>(call->c)];
            // The second product is not the result itself.
            const bool first = to.kind == BufferInfo::Kind::output && to.index == 0;
            found[first ? 0 : 1] = true;
        }
    return found;
}

struct Sum {
    double value = 0, magnitudes = 0;
    void add(double term) {
        value += term;
        magnitudes += std::abs(term);
    }
};

// relu changes no error, nor does a term more than there is.
bool is_any_order(double got, const Sum& sum, std::int64_t terms) {
    constexpr double roundoff = 0x1p-24, beside = 4;  // of the operand, the quotient, the bias and the result
    return std::abs(got - sum.value) <= (static_cast<double>(terms) + beside) * roundoff * sum.magnitudes;
}

}  // namespace

// Bits of generated code; of a library's, a sum of the same terms in some order.
TEST_CASE("batches of every length have the bits of the rows of a large one") {
    Random random(7);
    constexpr std::int64_t most = 40;
    Options generated = options();
    generated.disabled.insert("onednn");  // whose bits depend on the batch
    const ScopedOptions scope(generated);
    for (const std::int64_t depth : {3, 20, 300, 784})
        for (const std::int64_t columns : {3, 10, 16, 33, 70}) {
            const Array all = random_array(float32, {most, depth}, random, -1, 1),
                        weights = random_array(float32, {depth, columns}, random, -1, 1);
            const Expr x = matrix("x"), w = input(float32, {depth, columns}, "w"), y = matrix("y", uint8);
            const Array bytes = random_array(uint8, {most, depth}, random, 0, 255);
            Function f = function({x, y, w}, {dot(x, w), relu(dot(cast(y, float32) / 255, w) + 0.5F)},
                                  {.device = tested_device()});
            const std::vector<bool> library = by_library(f, 2);
            const Results whole = f(all, bytes, weights);
            std::vector<Sum> sums[2];
            for (std::int64_t i = 0; i < most; ++i)
                for (std::int64_t j = 0; j < columns; ++j) {
                    Sum of_floats, of_bytes;
                    for (std::int64_t k = 0; k < depth; ++k) {
                        const double weight = weights.at(k * columns + j);
                        of_floats.add(all.at(i * depth + k) * weight);
                        of_bytes.add(bytes.at(i * depth + k) / 255 * weight);
                    }
                    of_bytes.add(0.5);
                    of_bytes.value = std::max(of_bytes.value, 0.0);
                    CHECK(whole[0].at(i * columns + j) == Approx(of_floats.value).margin(1e-4));
                    CHECK(whole[1].at(i * columns + j) == Approx(of_bytes.value).margin(1e-4));
                    sums[0].push_back(of_floats);
                    sums[1].push_back(of_bytes);
                }
            for (std::int64_t n = 0; n < most; ++n) {
                const auto rows = [&](const Array& of) {
                    Array some(of.dtype(), {n, depth});
                    for (std::int64_t i = 0; i < some.size(); ++i)
                        if (of.dtype() == float32)
                            static_cast<float*>(some.mutable_data())[i] =
                                static_cast<const float*>(of.data())[i];
                        else
                            static_cast<std::uint8_t*>(some.mutable_data())[i] =
                                static_cast<const std::uint8_t*>(of.data())[i];
                    return some;
                };
                const Results r = f(rows(all), rows(bytes), weights);
                for (std::size_t k = 0; k < 2; ++k) {
                    INFO(n << " rows, " << depth << " x " << columns << ", result " << k
                           << (library[k] ? ", by a library" : ""));
                    for (std::int64_t i = 0; i < n * columns; ++i)
                        if (library[k])
                            REQUIRE(is_any_order(r[k].at(i), sums[k][static_cast<std::size_t>(i)], depth));
                        else
                            REQUIRE(r[k].at(i) == whole[k].at(i));
                }
            }
        }
}

TEST_CASE("distances between two sets of points have the bits of one by itself") {
    Random random(8);
    const auto made = [](DType dtype, const Dims& lengths) {
        return [=](const std::string& device) {
            const Expr a = input(dtype, {lengths[0], lengths[2]}, "a"),
                       b = input(float32, {lengths[1], lengths[2]}, "b"),
                       c = input(float32, {lengths[2]}, "c");
            const Expr d = expand_dims(cast(a, float32), 1) - expand_dims(b, 0);
            return function({a, b, c}, {sum(sqr(d), {2}), sum(sqr(d) * c, {2}), sum(d, {2})},
                            {.device = device});
        };
    };
    for (const DType dtype : {float32, uint8}) {
        Function any = made(dtype, {-1, -1, -1})(tested_device());
        for (const std::int64_t depth : {1, 16, 17, 50, 64, 255, 256, 300, 1100})
            for (const Dims& counts : {Dims{1, 9}, Dims{3, 40}, Dims{9, 17}, Dims{30, 64}}) {
                const std::int64_t n = counts[0], m = counts[1];
                const std::vector<Array> points{dtype == uint8
                                                    ? whole_range(dtype, {n, depth}, random)
                                                    : random_array(dtype, {n, depth}, random, -1, 1),
                                                random_array(float32, {m, depth}, random, -1, 1),
                                                random_array(float32, {depth}, random, 0, 1)};
                std::vector<std::vector<Array>> all{results_of(any, points)};
                if (n == 9 || (n == 3 && depth % 16 == 0 && depth > 16))
                    all.push_back(the_same_everywhere(made(dtype, {n, m, depth}), points));
                INFO(name_of(dtype) << ", " << n << " and " << m << " points of " << depth);
                for (std::int64_t i = 0; i < n; ++i)
                    for (std::int64_t j = 0; j < m; ++j) {
                        double squares = 0, weighted = 0, sum = 0;
                        for (std::int64_t k = 0; k < depth; ++k) {
                            const double d = points[0].at(i * depth + k) - points[1].at(j * depth + k);
                            squares += d * d;
                            weighted += d * d * points[2].at(k);
                            sum += d;
                        }
                        const std::int64_t at = i * m + j;
                        for (const std::vector<Array>& r : all) {
                            REQUIRE(r[0].at(at) == Approx(squares).epsilon(1e-4));
                            REQUIRE(r[1].at(at) == Approx(weighted).epsilon(1e-4));
                            REQUIRE(r[2].at(at) == Approx(sum).epsilon(1e-4).margin(1e-3));
                        }
                    }
            }
    }
}
