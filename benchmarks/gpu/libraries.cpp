#include "gpu/libraries.h"

#include <bitale/bitale.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "gpu/definition.h"
#include "gpu/describe.h"

using namespace bitale;
using namespace bitale::cuda;

namespace bench {

namespace {

// Root mean square of the error, of that of the result. Sums of float32 have errors of some 1e-7 whatever
// their order; with factors rounded to TF32 they have some 1e-4.
constexpr double strict = 1e-5;

double error_of(const std::vector<float>& got, const std::vector<double>& expected) {
    double errors = 0, squares = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double e = static_cast<double>(got[i]) - expected[i];
        errors += e * e;
        squares += expected[i] * expected[i];
    }
    return std::sqrt(errors / squares);
}

// ---- products ----

struct Product {
    GemmShape shape;
    std::vector<float> a, b, bias;
};

Product make_product(GemmShape shape) {
    return {shape, random_floats(shape.m * shape.k, 1), random_floats(shape.k * shape.n, 2),
            random_floats(shape.n, 3)};
}

std::vector<double> by_definition(const Product& p) {
    const GemmShape& s = p.shape;
    std::vector<double> c(static_cast<std::size_t>(s.m * s.n));
    for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
            double sum = s.bias ? p.bias[static_cast<std::size_t>(j)] : 0;
            for (std::int64_t k = 0; k < s.k; ++k)
                sum += static_cast<double>(
                           p.a[static_cast<std::size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)]) *
                       p.b[static_cast<std::size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
            c[static_cast<std::size_t>(i * s.n + j)] = s.relu ? std::max(sum, 0.0) : sum;
        }
    return c;
}

std::vector<float> run(Machine& machine, const Product& p, double* microseconds) {
    const Block a = machine.block(p.a), b = machine.block(p.b), bias = machine.block(p.bias);
    const auto count = static_cast<std::size_t>(p.shape.m * p.shape.n);
    const Block c(machine, count * sizeof(float));
    machine.fill(c.data(), 0xff, count * sizeof(float));
    const auto call = [&] {
        machine.backend().gemm(p.shape, a.floats(), b.floats(), p.shape.bias ? bias.floats() : nullptr,
                               c.floats(), machine.stream());
    };
    if (microseconds)
        *microseconds = 1e6 * median_of(3, [&] { return machine.seconds(call); });
    else
        call();
    return machine.floats(c, count);
}

// ---- convolutions ----

ConvSizes plain(std::array<std::int64_t, 4> shape) {
    ConvSizes t;
    t.shape = shape;
    std::int64_t stride = 1;
    for (std::size_t d = 4; d-- > 0;) {
        t.strides[d] = stride;
        stride *= shape[d];
    }
    return t;
}

std::int64_t count_of(const ConvSizes& t) { return t.shape[0] * t.strides[0]; }

struct Conv {
    ConvShape shape;
    std::vector<float> image, filters, output, bias;
    std::vector<float>& result() {
        return shape.kind == ConvCall::Kind::forward          ? output
               : shape.kind == ConvCall::Kind::image_gradient ? image
                                                              : filters;
    }
};

Conv make_conv(ConvCall::Kind kind, std::int64_t groups = 1) {
    Conv c;
    c.shape.kind = kind;
    c.shape.groups = groups;
    c.shape.image = plain({6, 8, 17, 20});
    c.shape.filters = plain({16, 8 / groups, 3, 3});
    c.shape.output = plain({6, 16, 15, 18});
    c.shape.flip = true;
    c.shape.bias = c.shape.relu = kind == ConvCall::Kind::forward;
    c.image = random_floats(count_of(c.shape.image), 4);
    c.filters = random_floats(count_of(c.shape.filters), 5);
    c.output = random_floats(count_of(c.shape.output), 6);
    c.bias = random_floats(c.shape.filters.shape[0], 7);
    return c;
}

std::vector<double> by_definition(Conv& c) {
    const ConvShape& s = c.shape;
    std::vector<double> result(c.result().size());
    const auto at = [](const ConvSizes& t, std::int64_t a, std::int64_t b, std::int64_t y, std::int64_t x) {
        return static_cast<std::size_t>(a * t.strides[0] + b * t.strides[1] + y * t.strides[2] +
                                        x * t.strides[3]);
    };
    for (std::int64_t n = 0; n < s.output.shape[0]; ++n)
        for (std::int64_t o = 0; o < s.output.shape[1]; ++o)
            for (std::int64_t y = 0; y < s.output.shape[2]; ++y)
                for (std::int64_t x = 0; x < s.output.shape[3]; ++x) {
                    const std::size_t g = at(s.output, n, o, y, x);
                    double sum = s.bias ? c.bias[static_cast<std::size_t>(o)] : 0;
                    const std::int64_t first = o / (s.output.shape[1] / s.groups) * s.filters.shape[1];
                    for (std::int64_t k = 0; k < s.filters.shape[1]; ++k)
                        for (std::int64_t r = 0; r < s.filters.shape[2]; ++r)
                            for (std::int64_t q = 0; q < s.filters.shape[3]; ++q) {
                                const std::size_t i = at(s.image, n, first + k, y + r, x + q),
                                                  f = at(s.filters, o, k, s.filters.shape[2] - 1 - r,
                                                         s.filters.shape[3] - 1 - q);
                                const double v = c.image[i], w = c.filters[f], d = c.output[g];
                                if (s.kind == ConvCall::Kind::forward) sum += v * w;
                                if (s.kind == ConvCall::Kind::image_gradient) result[i] += d * w;
                                if (s.kind == ConvCall::Kind::filter_gradient) result[f] += d * v;
                            }
                    if (s.kind == ConvCall::Kind::forward) result[g] = s.relu ? std::max(sum, 0.0) : sum;
                }
    return result;
}

std::vector<float> run(Machine& machine, Conv& c, double* microseconds) {
    const Block image = machine.block(c.image), filters = machine.block(c.filters),
                bias = machine.block(c.bias), output = machine.block(c.output);
    const ConvData data{image.data(), filters.data(), output.data(), c.shape.bias ? bias.data() : nullptr};
    const Block& result = c.shape.kind == ConvCall::Kind::forward          ? output
                          : c.shape.kind == ConvCall::Kind::image_gradient ? image
                                                                           : filters;
    machine.fill(result.data(), 0xff, c.result().size() * sizeof(float));
    const auto call = [&] { machine.backend().conv(c.shape, data, machine.stream()); };
    if (microseconds)
        *microseconds = 1e6 * median_of(3, [&] { return machine.seconds(call); });
    else
        call();
    return machine.floats(result, c.result().size());
}

// ---- NaN ----

Json nans_in(const std::vector<float>& got, std::int64_t expected) {
    std::int64_t count = 0;
    for (const float v : got) count += std::isnan(v);
    // More than expected: an engine that transforms tiles spreads it to neighbours; none of them is lost.
    return {{"expected", expected},
            {"found", count},
            {"survives", count >= expected},
            {"spreads", count > expected}};
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// One element of a product's first operand is NaN: a row of the result must be.
Json nan_through_product(Machine& machine, bool bias, bool relu) {
    GemmShape shape;
    shape.m = shape.n = 64;
    shape.k = 48;
    shape.bias = bias;
    shape.relu = relu;
    Product p = make_product(shape);
    p.a[5 * 48 + 7] = nan;
    return nans_in(run(machine, p, nullptr), shape.n);
}

// One pixel of an operand is NaN: every element whose sum has it as a factor must be.
Json nan_through_convolution(Machine& machine, ConvCall::Kind kind, bool bias, bool relu) {
    Conv c = make_conv(kind);
    c.shape.bias = bias;
    c.shape.relu = relu;
    const std::int64_t filters = c.shape.filters.shape[0], channels = c.shape.filters.shape[1];
    const bool from_image = kind != ConvCall::Kind::image_gradient;
    (from_image ? c.image : c.output)[static_cast<std::size_t>(
        8 * (from_image ? c.shape.image : c.shape.output).strides[2] + 9)] = nan;
    // Of 3x3 windows: nine places of each filter's map, of each channel's map, or all weights of a channel.
    const std::int64_t maps = kind == ConvCall::Kind::image_gradient ? channels : filters;
    return nans_in(run(machine, c, nullptr), 9 * maps);
}

// A NaN in the input of a layer of a network as a user writes it: whether the hidden layer, the loss and the
// gradient have it.
Json nan_through_network(const std::string& device, const Expr& x, const Expr& hidden, const Expr& w,
                         Array value) {
    const Expr loss = mean(sqr(hidden));
    Function f = function({x}, {sum(hidden), loss, sum(grad(loss, w))}, {.name = "nan", .device = device});
    static_cast<float*>(value.mutable_data())[11] = nan;
    const Results r = f(value);
    Json calls = Json::array();
    for (const LibraryCall& call : library_calls(f, value)) calls.push_back(text_of(call));
    const bool survives = std::isnan(r[0].at(0)) && std::isnan(r[1].at(0)) && std::isnan(r[2].at(0));
    return {{"hidden", std::isnan(r[0].at(0))},
            {"loss", std::isnan(r[1].at(0))},
            {"gradient", std::isnan(r[2].at(0))},
            {"survives", survives},
            {"library_calls", calls}};
}

Array zeros_and_ones(const Dims& shape) {
    Array a(float32, shape);
    auto* values = static_cast<float*>(a.mutable_data());
    for (std::int64_t i = 0; i < a.size(); ++i) values[i] = static_cast<float>(i % 2);
    return a;
}

}  // namespace

Json probe_cublaslt(Machine& machine) {
    if (!machine.backend().has_gemm()) throw NotHere("no library for products");
    Json calls = Json::array();
    std::string wrong;
    for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true}) {
            GemmShape shape;
            shape.m = 96;
            shape.n = 80;
            shape.k = 112;
            shape.transpose_a = transpose_a;
            shape.transpose_b = transpose_b;
            shape.bias = shape.relu = !transpose_a && !transpose_b;
            const Product p = make_product(shape);
            double us = 0;
            const std::vector<float> got = run(machine, p, &us);
            const double error = error_of(got, by_definition(p));
            const std::string text = text_of(LibraryCall{"", false, shape, {}});
            calls.push_back({{"call", text}, {"error", error}, {"us", us}});
            if (!(error < strict))
                wrong += fmt::format("{}{}: error {:.3g}", wrong.empty() ? "" : "; ", text, error);
        }
    if (!wrong.empty()) throw Wrong(wrong, {{"bound", strict}, {"calls", calls}});
    return {{"bound", strict}, {"calls", calls}};
}

Json probe_cudnn(Machine& machine) {
    if (!machine.backend().has_conv()) throw NotHere("no library for convolutions");
    Json calls = Json::array();
    std::string wrong;
    for (const std::int64_t groups : {1, 2})
        for (const auto kind :
             {ConvCall::Kind::forward, ConvCall::Kind::image_gradient, ConvCall::Kind::filter_gradient}) {
            Conv c = make_conv(kind, groups);
            double us = 0;
            const std::vector<float> got = run(machine, c, &us);
            const double error = error_of(got, by_definition(c));
            const std::string text = text_of(LibraryCall{"", true, {}, c.shape});
            calls.push_back({{"call", text}, {"error", error}, {"us", us}});
            if (!(error < strict))
                wrong += fmt::format("{}{}: error {:.3g}", wrong.empty() ? "" : "; ", text, error);
        }
    if (!wrong.empty()) throw Wrong(wrong, {{"bound", strict}, {"calls", calls}});
    return {{"bound", strict}, {"calls", calls}};
}

Json probe_nan(Machine& machine, const std::string& device) {
    Json found = Json::object();
    if (machine.backend().has_gemm()) {
        found["product"] = nan_through_product(machine, false, false);
        found["product_bias"] = nan_through_product(machine, true, false);
        found["product_relu"] = nan_through_product(machine, false, true);
        found["product_bias_relu"] = nan_through_product(machine, true, true);
    }
    if (machine.backend().has_conv()) {
        using Kind = ConvCall::Kind;
        found["convolution"] = nan_through_convolution(machine, Kind::forward, false, false);
        found["convolution_bias"] = nan_through_convolution(machine, Kind::forward, true, false);
        found["convolution_bias_relu"] = nan_through_convolution(machine, Kind::forward, true, true);
        found["image_gradient"] = nan_through_convolution(machine, Kind::image_gradient, false, false);
        found["filter_gradient"] = nan_through_convolution(machine, Kind::filter_gradient, false, false);
    }

    const Shared small = shared(glorot_uniform({12, 9}, 1), "w"), shift = shared(zeros({9}), "b"),
                 large = shared(glorot_uniform({200, 160}, 2), "w"), shifts = shared(zeros({160}), "b"),
                 filters = shared(glorot_uniform({32, 16, 3, 3}, 3), "filters"),
                 biases = shared(zeros({32}), "b");
    Expr x = input(float32, {5, 12}, "x");
    found["generated_network"] =
        nan_through_network(device, x, relu(dot(x, small) + shift), small, zeros_and_ones({5, 12}));
    x = input(float32, {128, 200}, "x");
    found["dense_network"] =
        nan_through_network(device, x, relu(dot(x, large) + shifts), large, zeros_and_ones({128, 200}));
    x = input(float32, {16, 16, 20, 20}, "x");
    found["convolutional_network"] = nan_through_network(
        device, x, relu(conv2d(x, filters) + channel(biases)), filters, zeros_and_ones({16, 16, 20, 20}));
    std::string lost;
    for (const char* name : {"generated_network", "dense_network", "convolutional_network"})
        if (!found[name]["survives"].get<bool>()) lost += (lost.empty() ? "" : ", ") + std::string(name);
    // A fused relu that loses NaN is known, and taken under assume_finite only.
    for (const auto& [name, said] : found.items())
        if (name.find("relu") == std::string::npos && said.contains("found") && !said["survives"].get<bool>())
            lost += (lost.empty() ? "" : ", ") + name;
    if (!lost.empty()) throw Wrong("a NaN is lost in: " + lost, found);
    return found;
}

}  // namespace bench
