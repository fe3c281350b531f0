// Convolutions with strides, dilation and groups, overlapping pooling, and one behind the other.
#include <string>

#include "shapes/shapes.h"

namespace bench {

using namespace bitale;

namespace {

std::int64_t places_of(std::int64_t length, int kernel, int stride, int dilation, int pad) {
    return (length + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
}

struct Convolution {
    explicit Convolution(const Json& row)
        : shape(dims_of(row.at("shape"))),
          filters(row.at("filters")),
          groups(row.value("groups", std::int64_t{1})),
          kernel(row.at("kernel")),
          stride(row.value("stride", 1)),
          dilation(row.value("dilation", 1)),
          pad(row.value("pad", 0)) {
        filter_shape = {filters, shape[1] / groups, kernel, kernel};
        out = {shape[0], filters, places_of(shape[2], kernel, stride, dilation, pad),
               places_of(shape[3], kernel, stride, dilation, pad)};
    }
    Expr of(const Expr& x, const Expr& w) const { return conv2d(x, w, options(static_cast<int>(groups))); }
    // Each group a convolution of its own.
    Expr by_slices(const Expr& x, const Expr& w) const {
        std::vector<Expr> parts;
        const std::int64_t inputs = shape[1] / groups, outputs = filters / groups;
        for (std::int64_t g = 0; g < groups; ++g)
            parts.push_back(conv2d(x[{colon, Slice{g * inputs, (g + 1) * inputs}}],
                                   w[Slice{g * outputs, (g + 1) * outputs}], options(1)));
        return concatenate(parts, 1);
    }
    // A sum over the filter's places of the image moved there, for as many groups as channels and filters.
    Expr by_places(const Expr& x, const Expr& w) const {
        const Expr padded = bitale::pad(x, {{0, 0}, {0, 0}, {pad, pad}, {pad, pad}});
        Expr y;
        for (int v = 0; v < kernel; ++v)
            for (int u = 0; u < kernel; ++u) {
                const Expr moved = padded[{colon, colon, Slice{v, v + out[2]}, Slice{u, u + out[3]}}] *
                                   channel(w[{colon, 0, v, u}]);
                y = y.is_null() ? moved : y + moved;
            }
        return y;
    }
    ConvOptions options(int number_of_groups) const {
        return {.border_mode = pad,
                .subsample = stride,
                .dilation = dilation,
                .filter_flip = false,
                .groups = number_of_groups};
    }
    Dims shape, filter_shape, out;
    std::int64_t filters, groups;
    int kernel, stride, dilation, pad;
};

Updates convolution(const Json& row, Given& given) {
    const Convolution c(row);
    const Expr x = given(floats(c.shape, 1), "x");
    const Shared w = shared(floats(c.filter_shape, 2), "w");
    const auto written = row.value("written", std::string("conv2d"));
    const Expr y = written == "slices"   ? c.by_slices(x, w)
                   : written == "places" ? c.by_places(x, w)
                                         : c.of(x, w);
    const auto pass = row.at("pass").get<std::string>();
    if (pass == "forward") return {result(c.out, y)};
    const Expr cost = sum(y * given(floats(c.out, 3), "gradient"));
    if (pass == "weights") return {result(c.filter_shape, grad(cost, w))};
    return {result(c.shape, grad(cost, x))};
}

Expr pooled(const Expr& x, const Json& row, const Dims& out) {
    const int window = row.at("window"), stride = row.at("stride");
    const auto written = row.value("written", std::string("max_pool"));
    if (written == "max_pool") return max_pool(x, window, {.stride = Size2(stride)});
    if (written == "reshape")  // of windows side by side
        return max(reshape(x, {out[0], out[1], out[2], window, out[3], window}), {3, 5});
    Expr y;
    for (int v = 0; v < window; ++v)
        for (int u = 0; u < window; ++u) {
            const Expr part = x[{colon, colon, Slice{v, v + (out[2] - 1) * stride + 1, stride},
                                 Slice{u, u + (out[3] - 1) * stride + 1, stride}}];
            y = y.is_null() ? part : maximum(y, part);
        }
    return y;
}

Dims pooled_shape(const Json& row, const Dims& shape) {
    const int window = row.at("window"), stride = row.at("stride");
    return {shape[0], shape[1], places_of(shape[2], window, stride, 1, 0),
            places_of(shape[3], window, stride, 1, 0)};
}

Updates pooling(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape")), out = pooled_shape(row, shape);
    const bool of_bytes = row.value("dtype", std::string("float32")) == "uint8";
    const Expr x = given(of_bytes ? bytes(shape, 1) : floats(shape, 1), "x");
    const Expr y = pooled(x, row, out);
    if (row.at("pass") == "forward") return {result(out, y)};
    return {result(shape, grad(sum(y * given(floats(out, 2), "gradient")), x))};
}

Updates pooling_behind(const Json& row, Given& given) {
    Json plain = row;
    plain.erase("stride");  // that of the pooling
    const Convolution c(plain);
    const Dims out = pooled_shape(row, c.out);
    const Expr x = given(floats(c.shape, 1), "x");
    const Shared w = shared(floats(c.filter_shape, 2), "w");
    return {result(out, pooled(c.of(x, w), row, out))};
}

}  // namespace

Updates convolutions(const Json& row, Given& given) {
    const auto op = row.at("op").get<std::string>();
    if (op == "conv") return convolution(row, given);
    if (op == "pool") return pooling(row, given);
    if (op == "conv_pool") return pooling_behind(row, given);
    return {};
}

}  // namespace bench
