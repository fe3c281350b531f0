// Max-pooling and its gradient over planes of every shape, to the bit: overlapping windows, strides that
// differ, padding, ties, zeros of both signs, infinities, NaN.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct PlanePooling {
    Dims shape;  // the last two axes are pooled
    Size2 window, stride, pad = 0;

    std::string text() const {
        return fmt::format("{} x {} in {} x {}, stride {} x {}, padding {} x {}, rank {}", window.h, window.w,
                           height(), width(), stride.h, stride.w, pad.h, pad.w, shape.size());
    }
    std::int64_t height() const { return shape[shape.size() - 2]; }
    std::int64_t width() const { return shape.back(); }
    std::int64_t rows() const { return (height() + 2 * pad.h - window.h) / stride.h + 1; }
    std::int64_t columns() const { return (width() + 2 * pad.w - window.w) / stride.w + 1; }
    std::int64_t planes() const {
        std::int64_t n = 1;
        for (std::size_t d = 0; d + 2 < shape.size(); ++d) n *= shape[d];
        return n;
    }
    Dims pooled() const {
        Dims r = shape;
        r[r.size() - 2] = rows();
        r.back() = columns();
        return r;
    }
    Expr operator()(const Expr& x) const { return max_pool(x, window, {.stride = stride, .pad = pad}); }
};

const std::vector<PlanePooling>& pools() {
    static const std::vector<PlanePooling> list = {
        {{2, 3, 28, 28}, 3, 2},
        {{2, 16, 28, 28}, 4, 4},
        {{2, 5, 28, 28}, 4, 2},
        {{3, 2, 13, 17}, 3, 2, 1},
        {{2, 3, 9, 31}, 3, 1, 1},
        {{2, 2, 11, 12}, {2, 3}, {1, 2}},
        {{1, 4, 15, 22}, {3, 1}, {2, 1}},
        {{2, 3, 10, 25}, {1, 4}, {1, 3}, {0, 2}},
        {{2, 2, 20, 33}, 5, 3, 2},
        {{2, 2, 30, 40}, 3, {3, 3}},
        {{2, 2, 29, 23}, {2, 5}, {4, 7}},
        {{3, 2, 16, 36}, 4, {2, 9}, {1, 3}},
        {{2, 18, 19}, 3, 2},
        {{2, 2, 3, 8, 10}, 3, 2, 1},
        {{2, 1, 70, 190}, 3, 2, 1},
        {{1, 2, 9, 700}, {3, 4}, {2, 3}},
        {{2, 40, 6, 6}, 2, 1},
        {{2, 3, 26, 27}, 7, 3, 3},
        {{2, 3, 14, 14}, 6, 1},
        {{4, 3, 12, 12}, 2, 2},
        {{2, 1, 303, 303}, 3, 3},
    };
    return list;
}

template <class T>
bool beats(T value, T best) {
    if constexpr (std::is_floating_point_v<T>)
        if (std::isnan(value)) return !std::isnan(best);
    return value > best;
}

// The maxima, and the gradient that each window's first maximum gets, added in the order of windows.
template <class T, class G>
void pool_by_loops(const PlanePooling& p, const T* x, const G* g, T* maxima, G* gradient) {
    const std::int64_t rows = p.rows(), columns = p.columns(), height = p.height(), width = p.width();
    for (std::int64_t i = 0; i < p.planes() * height * width; ++i) gradient[i] = 0;
    for (std::int64_t n = 0; n < p.planes(); ++n)
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) {
                std::int64_t best = -1;
                for (std::int64_t i = 0; i < p.window.h; ++i)
                    for (std::int64_t j = 0; j < p.window.w; ++j) {
                        const std::int64_t y = r * p.stride.h - p.pad.h + i, z = c * p.stride.w - p.pad.w + j;
                        if (y < 0 || y >= height || z < 0 || z >= width) continue;
                        const std::int64_t here = (n * height + y) * width + z;
                        if (best < 0 || beats(x[here], x[best])) best = here;
                    }
                const std::int64_t out = (n * rows + r) * columns + c;
                maxima[out] = x[best];
                gradient[best] += g[out];
            }
}

// Few values, so that many windows have ties; now and then something awkward.
template <class T>
Array awkward(DType dtype, const Dims& shape, Random& random, bool infinities) {
    Array a(dtype, shape);
    auto* data = static_cast<T*>(a.mutable_data());
    for (std::int64_t i = 0; i < a.size(); ++i) {
        data[i] = static_cast<T>(random.between(is_float(dtype) ? -4 : 0, 4));
        if constexpr (std::is_floating_point_v<T>) {
            if (infinities && random.chance(3)) data[i] = -std::numeric_limits<T>::infinity();
            if (data[i] == 0 && random.chance(2)) data[i] = -data[i];
            if (random.chance(60)) data[i] = std::numeric_limits<T>::quiet_NaN();
        }
    }
    return a;
}

template <class T>
Array expected_maxima(const PlanePooling& p, const Array& x, const Array& g, Array& gradient) {
    Array maxima(x.dtype(), p.pooled());
    gradient = Array(g.dtype(), p.shape);
    const auto* from = static_cast<const T*>(x.data());
    auto* to = static_cast<T*>(maxima.mutable_data());
    if (g.dtype() == float64)
        pool_by_loops(p, from, static_cast<const double*>(g.data()), to,
                      static_cast<double*>(gradient.mutable_data()));
    else
        pool_by_loops(p, from, static_cast<const float*>(g.data()), to,
                      static_cast<float*>(gradient.mutable_data()));
    return maxima;
}

void require_exact(const std::string& what, const Array& got, const Array& expected,
                   const Tolerance& tolerance = {}) {
    INFO(what);
    REQUIRE(difference(got, expected, tolerance) == "");
}

// Windows one element apart send gradients to rows first, which adds them up in another order.
Tolerance of_gradient(const PlanePooling& p) {
    const bool rows_first = p.stride.h == 1 && p.stride.w == 1 && p.window.h * p.window.w >= 16;
    return rows_first ? Tolerance{.ulps = 4, .of_largest = 1e-6} : Tolerance{};
}

// Cases in one function, as compiling takes its time: every one, or one of a few.
template <class T>
void require_pools(DType dtype, bool infinities, const FunctionOptions& options, std::size_t one_of = 1) {
    Random random(static_cast<std::uint64_t>(dtype) * 2 + (infinities ? 1 : 0));
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    std::vector<Array> values, expected;
    std::vector<PlanePooling> chosen_pools;
    for (std::size_t i = 0; i < pools().size(); i += one_of) chosen_pools.push_back(pools()[i]);
    for (const PlanePooling& p : chosen_pools) {
        const bool real = is_float(dtype);
        const DType gradient_dtype = real ? dtype : float32;
        const Expr x = input(dtype, p.shape, "x"), g = input(gradient_dtype, p.pooled(), "g");
        values.push_back(awkward<T>(dtype, p.shape, random, infinities));
        values.push_back(random_array(gradient_dtype, p.pooled(), random, -1, 1));
        inputs.emplace_back(x);
        inputs.emplace_back(g);
        Array gradient;
        expected.push_back(expected_maxima<T>(p, values[values.size() - 2], values.back(), gradient));
        outputs.push_back(p(x));
        if (real) {
            expected.push_back(gradient);
            outputs.push_back(grad(sum(p(x) * g), x));
        }
    }
    FunctionOptions chosen = options;
    chosen.on_unused_input = OnUnused::ignore;
    const Results r = function(inputs, outputs, chosen).call(values);
    std::size_t next = 0;
    for (const PlanePooling& p : chosen_pools) {
        require_exact(p.text(), r[next], expected[next]);
        ++next;
        if (!is_float(dtype)) continue;
        require_exact(p.text() + ", gradient", r[next], expected[next], of_gradient(p));
        ++next;
    }
}

}  // namespace

TEST_CASE("pooling over planes of every shape, with ties and NaN") {
    require_pools<float>(float32, false, {.device = tested_device()});
    require_pools<double>(float64, false, {.device = tested_device()}, 2);
}

TEST_CASE("windows of nothing but the lowest value have their first cell as winner") {
    require_pools<float>(float32, true, {.device = tested_device()});
}

TEST_CASE("pooling of integers") {
    require_pools<std::int32_t>(int32, false, {.device = tested_device()});
    require_pools<std::uint8_t>(uint8, false, {.device = tested_device()}, 2);
}

TEST_CASE("pooling is the same to the bit for other processors and without what takes long to compile") {
    for (const char* target : {"x86-64-v3", "x86-64"}) {
        Options chosen = options();
        chosen.cpu_target = target;
        const ScopedOptions scope(chosen);
        require_pools<float>(float32, false, {}, 3);
    }
    Options chosen = options();
    chosen.mode = Options::Mode::fast_compile;
    const ScopedOptions scope(chosen);
    require_pools<float>(float32, true, {}, 3);
}

TEST_CASE("pooling of computed planes, and of gradients that are computed as well") {
    Random random(4);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    for (const PlanePooling& p : pools()) {
        const Expr bytes = input(uint8, p.shape, "bytes"), w = input(float32, p.shape, "w");
        const Expr x = cast(bytes, float32) / 8 * w - 3, y = p(x);
        inputs.insert(inputs.end(), {bytes, w});
        values.push_back(random_array(uint8, p.shape, random, 0, 255));
        values.push_back(random_array(float32, p.shape, random, -1, 1));
        // Not exact: the oracle adds in float64.
        const Tolerance close{.ulps = 8, .of_largest = 1e-6};
        cases.push_back({p.text() + ", relu", relu(y) + 1, close});
        cases.push_back({p.text() + ", gradient", grad(sum(sqr(relu(y + 1))), w), close});
        cases.push_back({p.text() + ", least", -p(-x), close});
    }
    OnTwoDevices run(inputs, cases, "computed planes");
    REQUIRE(run(values) == "");
}

TEST_CASE("gradients of pooling beside factors of each plane, of each image and of all") {
    Random random(5);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    for (const PlanePooling& p : pools()) {
        if (p.shape.size() != 4) continue;
        const std::int64_t images = p.shape[0], channels = p.shape[1];
        const Expr x = input(float32, p.shape, "x"), g = input(float32, p.pooled(), "g");
        const Expr of_channel = input(float32, {1, channels, 1, 1}, "of_channel");
        const Expr of_plane = input(float32, {images, channels, 1, 1}, "of_plane");
        inputs.insert(inputs.end(), {x, g, of_channel, of_plane});
        for (const Dims& shape : {p.shape, p.pooled(), {1, channels, 1, 1}, {images, channels, 1, 1}})
            values.push_back(random_array(float32, shape, random, 0.5, 1));
        const Expr gradient = grad(sum(p(x) * g), x);
        const Tolerance close{.ulps = 8, .of_largest = 1e-6};
        cases.push_back({p.text() + ", channels", gradient * of_channel + of_channel, close});
        cases.push_back({p.text() + ", planes", gradient / of_plane, close});
        cases.push_back({p.text() + ", scaled before", grad(sum(p(x * of_channel) * g), x), close});
    }
    OnTwoDevices run(inputs, cases, "factors of planes");
    REQUIRE(run(values) == "");
}

TEST_CASE("gradients of lookups by few keys, whose rows are planes") {
    Random random(6);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    for (const Dims& shape :
         std::vector<Dims>{{3, 2, 3}, {2, 2, 6}, {7, 5, 4}, {64, 1, 9}, {2, 0, 4, 2}, {5, 3, 2, 4}}) {
        for (const std::int64_t keys : {1, 2, 3, 5}) {
            Dims looked_up = shape;
            looked_up[0] = keys;
            const Expr x = input(float64, shape, "x"), w = input(float64, looked_up, "w");
            const Expr key = input(int64, {keys}, "key");
            inputs.insert(inputs.end(), {x, w, key});
            values.push_back(random_array(float64, shape, random, -1, 1));
            values.push_back(random_array(float64, looked_up, random, -1, 1));
            values.push_back(random_array(int64, {keys}, random, 0, static_cast<double>(shape[0] - 1)));
            const Expr gradient = grad(sum(sin(gather(x, key)) * w), x);
            const std::string name = fmt::format("{} keys of {}", keys, text_of(shape));
            const Tolerance close{.ulps = 8, .of_largest = 1e-14};
            cases.push_back({name, gradient + 1.0, close});
            cases.push_back({name + ", summed up", cumsum(gradient, -1, {.reverse = true}), close});
            cases.push_back({name + ", beside another lookup",
                             grad(sum(gather(x, key) * w * gather(w, key % keys)), x), close});
        }
    }
    OnTwoDevices run(inputs, cases, "few keys");
    REQUIRE(run(values) == "");
}

TEST_CASE("windows one element apart, pooled by columns and rows") {
    Random random(7);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    for (const DType dtype : {uint8, int32, float32, float64})
        for (const Dims& shape : std::vector<Dims>{{7, 5}, {2, 9, 40}, {3, 1, 6, 67}, {0, 6, 6}}) {
            const Expr x = input(dtype, shape, "x");
            inputs.push_back(x);
            values.push_back(random_array(dtype, shape, random, 0, 100));
            for (const auto& [window, pad] : std::vector<std::pair<Size2, Size2>>{
                     {{3, 3}, {1, 1}}, {{2, 5}, {1, 4}}, {{5, 3}, {2, 0}}, {{4, 4}, {0, 2}}}) {
                const PoolOptions options{.stride = Size2{1, 1}, .pad = pad};
                const std::string name =
                    fmt::format("{} of {}, {} x {}", name_of(dtype), text_of(shape), window.h, window.w);
                const Expr pooled = max_pool(x, window, options);
                cases.push_back({name, pooled, {}});
                cases.push_back({name + ", of computed", max_pool(x * cast(2, dtype), window, options), {}});
                if (dtype == float64)
                    cases.push_back({name + ", its gradient", grad(sum(sqr(pooled)), x), {.ulps = 4}});
            }
        }
    OnTwoDevices run(inputs, cases, "one apart");
    REQUIRE(run(values) == "");
}

TEST_CASE("windows beside a border, of images that others read too, and their gradients alone") {
    Random random(8);
    std::vector<Expr> inputs;
    std::vector<Array> values;
    std::vector<Case> cases;
    // Enough for several tasks; rows shorter and longer than the loops that are cut at their borders.
    for (const Dims& shape : std::vector<Dims>{{8, 6, 40, 41}, {1, 2, 5, 150}, {9, 2}})
        for (const bool known : {true, false}) {
            const Expr x = input(float32, known ? shape : Dims(shape.size(), -1), "x");
            const Expr k = input(int16, known ? shape : Dims(shape.size(), -1), "k");
            inputs.insert(inputs.end(), {x, k});
            values.push_back(random_array(float32, shape, random, -1, 1));
            values.push_back(random_array(int16, shape, random, -50, 50));
            for (const auto& [of, at] :
                 std::vector<std::pair<Size2, Size2>>{{{3, 3}, {1, 1}}, {{5, 4}, {2, 3}}}) {
                const Size2 window = of, pad = at;
                const PoolOptions options{.stride = Size2{1, 1}, .pad = pad};
                const auto name = [&](const char* what) {
                    return fmt::format("{} {} x {} of {} {}", what, window.h, window.w,
                                       known ? "known" : "unknown", text_of(shape));
                };
                const auto pool = [&](const Expr& a) { return max_pool(a, window, options); };
                const Tolerance close{.ulps = 8, .of_largest = 1e-6};
                if (known) {
                    cases.push_back({name("of integers"), pool(k), {}});
                    cases.push_back({name("gradient of a sum"), grad(sum(pool(x)), x), close});
                } else {
                    cases.push_back({name("minima"), -pool(-k), {}});
                    cases.push_back({name("gradient"), grad(sum(sqr(pool(x))), x), close});
                }
                cases.push_back({name("maxima"), pool(x), {}});
                cases.push_back({name("a map beside"), x * 2 + 1, {.ulps = 2}});
            }
        }
    OnTwoDevices run(inputs, cases, "beside a border");
    REQUIRE(run(values) == "");
}
