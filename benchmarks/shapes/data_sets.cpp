// Whole data sets of bytes in one call: their covariance, a step of k-means, training on all of it.
#include <string>

#include "shapes/shapes.h"

namespace bench {

using namespace bitale;

namespace {

Updates covariance(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    const Expr x = cast(given(bytes(shape, 1), "images"), float32) / 255;
    return {result({shape[1], shape[1]}, dot(transpose(x), x) / static_cast<float>(shape[0]))};
}

Updates k_means(const Json& row) {
    const Dims shape = dims_of(row.at("shape"));
    const std::int64_t count = row.at("centres");
    const Expr x = cast(shared(bytes(shape, 1), "images"), float32) / 255;
    const Shared centres = shared(floats({count, shape[1]}, 2, 0, 1), "centres");
    const Expr nearest = argmin(sum(sqr(centres), {1}) - 2 * dot(x, transpose(centres)), {1});
    const Expr members = one_hot(nearest, count);
    const Expr sizes = maximum(sum(members, {0}), 1);
    return {{centres, dot(transpose(members), x) / expand_dims(sizes, 1)}};
}

Updates logistic(const Json& row) {
    const Dims shape = dims_of(row.at("shape"));
    const std::int64_t classes = row.at("classes");
    const Expr x = (cast(shared(bytes(shape, 1), "images"), float32) - 33.3F) / 128;
    const Shared labels = shared(places(shape[0], 2, classes), "labels"),
                 w = shared(floats({shape[1], classes}, 3, -0.1, 0.1), "w"),
                 b = shared(zeros({classes}), "b");
    return sgd(mean(softmax_crossentropy(dot(x, w) + b, labels)), {w, b}, 0.1);
}

}  // namespace

Updates data_sets(const Json& row, Given& given) {
    const auto op = row.at("op").get<std::string>();
    if (op == "covariance") return covariance(row, given);
    if (op == "k_means") return k_means(row);
    if (op == "logistic") return logistic(row);
    return {};
}

}  // namespace bench
