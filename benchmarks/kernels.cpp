// Our side of the kernels (g): each is a function that updates a shared variable.
#include <bitale/bitale.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/serve.h"

using namespace bitale;
using bench::Json;

namespace {

Dims dims_of(const Json& lengths) { return lengths.get<Dims>(); }

Shared floats(const Dims& shape, const std::string& name) {
    return shared(uniform_values(shape, -1, 1, name.size()), name);
}

Shared bytes(const Dims& shape) {
    std::mt19937_64 engine(1);
    Array values(uint8, shape);
    auto* data = static_cast<std::uint8_t*>(values.mutable_data());
    for (std::int64_t k = 0; k < values.size(); ++k) data[k] = static_cast<std::uint8_t>(engine());
    return shared(values, "bytes");
}

// The kernel: target <- value.
Update result(const Dims& shape, const Expr& value, const std::string& name = "result") {
    return {shared(zeros(shape, value.dtype()), name), value};
}

Updates product(const Json& k) {
    const auto m = k.at("m").get<std::int64_t>(), n = k.at("n").get<std::int64_t>(),
               depth = k.at("k").get<std::int64_t>();
    const auto form = k.at("form").get<std::string>();
    const Shared a = floats(form[0] == 'N' ? Dims{m, depth} : Dims{depth, m}, "a"),
                 b = floats(form[1] == 'N' ? Dims{depth, n} : Dims{n, depth}, "b");
    return {result({m, n},
                   dot(form[0] == 'N' ? Expr(a) : transpose(a), form[1] == 'N' ? Expr(b) : transpose(b)))};
}

Updates convolution(const Json& k) {
    const Dims shape = dims_of(k.at("shape"));
    const auto filters = k.at("filters").get<std::int64_t>(), kernel = k.at("kernel").get<std::int64_t>();
    const bool padded = k.at("border") == "half";
    const std::int64_t lost = padded ? 0 : kernel - 1;
    const Dims filter_shape{filters, shape[1], kernel, kernel},
        out{shape[0], filters, shape[2] - lost, shape[3] - lost};
    const Shared x = floats(shape, "x"), w = floats(filter_shape, "w");
    const Expr y = conv2d(x, w, {.border_mode = padded ? half : valid});
    const auto pass = k.at("pass").get<std::string>();
    if (pass == "forward") return {result(out, y)};
    const Expr cost = sum(y * floats(out, "gradient"));
    if (pass == "weights") return {result(filter_shape, grad(cost, w))};
    return {result(shape, grad(cost, x))};
}

Updates pooling(const Json& k) {
    const Dims shape = dims_of(k.at("shape"));
    const int window = k.at("window").get<int>(), stride = k.at("stride").get<int>();
    const Dims out{shape[0], shape[1], (shape[2] - window) / stride + 1, (shape[3] - window) / stride + 1};
    const Shared x = floats(shape, "x");
    const Expr y = max_pool(x, window, {.stride = Size2(stride)});
    return {result(out, y, "maxima"), result(shape, grad(sum(y * floats(out, "gradient")), x))};
}

// Of parameters whose gradients are shared variables.
Updates all_parameters(const Json& k) {
    std::vector<Shared> params;
    Expr cost;
    for (const Json& lengths : k.at("shapes")) {
        const std::string number = std::to_string(params.size());
        params.push_back(floats(dims_of(lengths), "p" + number));
        const Expr part = sum(params.back() * floats(dims_of(lengths), "gradient" + number));
        cost = params.size() == 1 ? part : cost + part;
    }
    const auto optimizer = k.at("optimizer").get<std::string>();
    if (optimizer == "sgd") return sgd(cost, params, 1e-3);
    if (optimizer == "momentum") return momentum(cost, params, 1e-3);
    if (optimizer == "adam") return adam(cost, params, 1e-3);
    if (optimizer == "adadelta") return adadelta(cost, params);
    throw std::runtime_error("unknown optimizer " + optimizer);
}

Updates layer_norm(const Dims& shape) {
    const Shared x = floats(shape, "x"), scale = floats({shape[1]}, "scale"),
                 shift = floats({shape[1]}, "shift");
    const Expr centred = x - mean(x, {1}, {.keepdims = true});
    const Expr deviation = sqrt(mean(sqr(centred), {1}, {.keepdims = true}) + 1e-5);
    return {result(shape, centred / deviation * scale + shift)};
}

// i: the number of the step.
Updates kernel(const Json& k, const Expr& i) {
    const auto op = k.at("op").get<std::string>();
    if (op == "gemm") return product(k);
    if (op == "conv") return convolution(k);
    if (op == "pool") return pooling(k);
    if (op == "update") return all_parameters(k);
    const Dims shape = dims_of(k.at("shape"));
    if (op == "layer_norm") return layer_norm(shape);
    if (op == "normalise") {
        const Shared centre = shared(33.3F, "centre");
        return {result(shape, (cast(bytes(shape), float32) - centre) / 128)};
    }
    if (op == "mean") {
        // Of other rows each time: what does not depend on the step's number is computed once a loop.
        constexpr std::int64_t others = 8;
        return {result({}, mean(rows(bytes({shape[0] + others, shape[1]}), i % others, shape[0])))};
    }
    if (op == "softmax") return {result(shape, softmax(floats(shape, "x")))};
    if (op == "columns") return {result({shape[1]}, sum(floats(shape, "x"), {0}))};
    if (op == "transpose") {
        const auto axes = k.at("axes").get<std::vector<int>>();
        Dims to;
        for (const int axis : axes) to.push_back(shape[static_cast<std::size_t>(axis)]);
        return {result(to, transpose(floats(shape, "x"), axes))};
    }
    if (op == "gather") {
        const auto count = k.at("count").get<std::int64_t>();
        const Shared order = shared(permutation(shape[0], 1), "order");
        const Expr rows = order[Slice{0, count}];
        return {result({count, shape[1]}, bytes(shape)[rows])};
    }
    throw std::runtime_error("unknown kernel " + op);
}

Json read_description() {
    std::ifstream file(KERNELS);
    if (!file) throw std::runtime_error(std::string("no file ") + KERNELS);
    return Json::parse(file);
}

}  // namespace

int main() {
    const Json description = read_description();
    std::unique_ptr<Function> f;
    return bench::serve([&](const Json& request) -> Json {
        if (request.contains("setup")) {
            f.reset();
            const Expr i = lscalar("i");
            f = std::make_unique<Function>(function(
                {i}, {},
                {.updates = kernel(description.at("kernels").at(request["setup"].get<std::string>()), i),
                 .on_unused_input = OnUnused::ignore}));
            return {{"compile_s", f->compile_seconds()}, {"kernels", f->kernels().size()}};
        }
        if (!f) throw std::runtime_error("no setup yet");
        f->loop(0, request.value("warm", std::int64_t{1}));
        const auto steps = request.at("steps").get<std::int64_t>();
        const bench::Clock clock;
        f->loop(0, steps);
        return {{"ms", clock.seconds() * 1e3 / static_cast<double>(steps)}};
    });
}
