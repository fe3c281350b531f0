// Sums, maxima and their places over any axes, products, scans, and rows in order.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "shapes/shapes.h"

namespace bench {

using namespace bitale;

namespace {

Expr reduced(const Expr& x, const std::string& how, const Axes& axes) {
    if (how == "sum") return sum(x, axes);
    if (how == "max") return max(x, axes);
    if (how == "argmax") return argmax(x, axes);
    if (how == "argmin") return argmin(x, axes);
    if (how == "mean_scaled") return mean(cast(x, float32) / 255, axes);
    if (how == "mean_shifted") return mean((cast(x, float32) - 33.3F) / 128, axes);
    throw std::runtime_error("unknown reduction " + how);
}

// Each row, or column, minus its mean, and by its standard deviation.
Expr standardised(const Expr& x, const Axes& axes) {
    const Expr centred = x - mean(x, axes, {.keepdims = true});
    return centred / sqrt(mean(sqr(centred), axes, {.keepdims = true}) + 1e-5F);
}

// `as`: the shape, and `turned`: the order of axes, in which the program looks at the same memory.
// `unknown`: lengths are those of the call.
Updates reduction(const Json& row, Given& given) {
    Dims shape = dims_of(row.at("shape"));
    const bool of_bytes = row.value("dtype", std::string("float32")) == "uint8";
    const Array value = of_bytes ? bytes(shape, 1) : floats(shape, 1);
    Expr x = row.value("unknown", false) ? given.unknown(value, "x") : given(value, "x");
    if (row.contains("as")) {
        shape = dims_of(row["as"]);
        x = reshape(x, std::vector<Expr>(shape.begin(), shape.end()));
    }
    if (row.contains("turned")) {
        const auto order = row["turned"].get<std::vector<int>>();
        Dims turned;
        for (const int axis : order) turned.push_back(shape[static_cast<std::size_t>(axis)]);
        shape = turned;
        x = transpose(x, order);
    }
    const auto axes = row.at("axes").get<Axes>();
    if (row.at("how") == "standardised") return {result(shape, standardised(x, axes))};
    if (row.at("how") == "masked") {
        const Expr mask = given(floats(shape, 2) > 0.0, "mask");
        return {result({shape[0]}, sum(where(mask, exp(x), 0), axes))};
    }
    if (row.at("how") == "softmax") return {result(shape, softmax(x))};
    Dims left;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
        if (std::find(axes.begin(), axes.end(), axis) == axes.end())
            left.push_back(shape[static_cast<std::size_t>(axis)]);
    return {result(left, reduced(x, row.at("how"), axes))};
}

Updates gradient_of_prod(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    const Expr x = given(floats(shape, 1, 0.95, 1.05), "x"),
               gradient = given(floats({shape[0]}, 2), "gradient");
    return {result(shape, grad(sum(prod(x, {1}) * gradient), x))};
}

Updates scan(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    Expr x = given(floats(shape, 1), "x");
    if (row.contains("of")) x = exp(x);
    const int axis = row.at("axis").get<int>();
    const auto how = row.at("how").get<std::string>();
    return {result(shape, how == "cumsum"    ? cumsum(x, axis)
                          : how == "cumprod" ? cumprod(x, axis)
                                             : logcumsumexp(x, axis))};
}

Updates gradient_of_topk(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    const std::int64_t k = row.at("k");
    const Expr x = given(floats(shape, 1), "x"), gradient = given(floats({shape[0], k}, 2), "gradient");
    return {result(shape, grad(sum(topk(x, k, 1).values * gradient), x))};
}

// Elements in order and where they come from, as PyTorch gives both.
Updates order(const Json& row, Given& given) {
    Dims shape = dims_of(row.at("shape"));
    const Expr x = given(floats(shape, 1), "x");
    const int axis = row.at("axis").get<int>();
    const auto k = row.value("k", shape[static_cast<std::size_t>(axis)]);
    const TopK all = topk(x, k, axis, {.smallest = !row.contains("k")});
    shape[static_cast<std::size_t>(axis)] = k;
    return {result(shape, all.values, "values"), result(shape, all.positions, "positions")};
}

}  // namespace

Updates reductions(const Json& row, Given& given) {
    const auto op = row.at("op").get<std::string>();
    if (op == "reduce") return reduction(row, given);
    if (op == "prod_gradient") return gradient_of_prod(row, given);
    if (op == "scan") return scan(row, given);
    if (op == "topk_gradient") return gradient_of_topk(row, given);
    if (op == "order") return order(row, given);
    return {};
}

}  // namespace bench
