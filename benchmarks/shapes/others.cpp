// Lookups, windows, concatenation, a loss, random numbers.
#include <string>

#include "shapes/shapes.h"

namespace bench {

using namespace bitale;

namespace {

// The gradient of a lookup is `gradient` itself.
Updates lookup(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("table"));
    const std::int64_t count = row.at("count");
    const Shared table = shared(floats(shape, 1), "table");
    const Expr at = given(places(count, 2, shape[0]), "at");
    const Expr found = gather(table, at);
    if (row.at("pass") == "forward") return {result({count, shape[1]}, found)};
    return sgd(sum(found * given(floats({count, shape[1]}, 3), "gradient")), {table}, 0.001);
}

// Each window of a series, one every `hop` elements, times weights: by places that ranges give, or as a stack
// of slices.
Updates windows(const Json& row, Given& given) {
    const std::int64_t n = row.at("n"), length = row.at("length"), hop = row.at("hop");
    const Array series = floats({n}, 1);
    const Expr x = row.value("unknown", false) ? given.unknown(series, "x") : given(series, "x"),
               w = given(floats({length}, 2), "w");
    const Expr count = floordiv(x.length(0) - length, hop) + 1;
    Expr frames;
    if (row.at("written") == "stack") {
        std::vector<Expr> lags;
        for (std::int64_t k = 0; k < length; ++k) lags.push_back(x[Slice{k, count + k}]);  // of a hop of 1
        frames = stack(lags, 1);
    } else {
        frames = gather(x, expand_dims(range(0, count), 1) * hop + range(0, length));
    }
    const Expr y = sum(frames * w, {1});
    if (row.at("pass") == "forward") return {result({(n - length) / hop + 1}, y)};
    return {result({n}, grad(sum(sqr(y)), x))};
}

Updates concatenation(const Json& row, Given& given) {
    Dims shape = dims_of(row.at("shape"));
    const std::int64_t count = row.at("parts");
    const int axis = row.at("axis");
    std::vector<Expr> parts;
    for (std::int64_t k = 0; k < count; ++k)
        parts.push_back(given(floats(shape, static_cast<std::uint32_t>(k)), "part" + std::to_string(k)));
    shape[static_cast<std::size_t>(axis)] *= count;
    if (row.value("written", "") == "one_by_one") {
        Expr all = parts[0];
        for (std::size_t k = 1; k < parts.size(); ++k) all = concatenate({all, parts[k]}, axis);
        return {result(shape, all)};
    }
    return {result(shape, concatenate(parts, axis))};
}

// What a copy takes, with the least that a program can compute.
Updates doubled(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    return {result(shape, given(floats(shape, 1), "x") * 2)};
}

// Each column by itself, as a recurrence over the steps of many paths reads them.
Updates columns_in_turn(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    const Expr x = given(floats(shape, 1), "x");
    Expr y = zeros({shape[0]});
    for (std::int64_t k = 0; k < shape[1]; ++k) y = 0.9F * y + sqrt(abs(x[{colon, k}] * y + 1));
    return {result({shape[0]}, y)};
}

Updates crossentropy(const Json& row, Given& given) {
    const Dims shape = dims_of(row.at("shape"));
    const Expr logits = given(floats(shape, 1), "logits"),
               labels = given(places(shape[0], 2, shape[1]), "labels");
    if (row.at("written") == "one_hot")
        return {result({}, -sum(one_hot(labels, shape[1]) * log_softmax(logits)) / shape[0])};
    return {result({}, mean(softmax_crossentropy(logits, labels)))};
}

Updates random(const Json& row) {
    const std::int64_t count = row.at("count");
    RandomStream stream(1);
    return {result({count}, row.at("how") == "normal" ? stream.normal({count}) : stream.uniform({count}))};
}

}  // namespace

Updates others(const Json& row, Given& given) {
    const auto op = row.at("op").get<std::string>();
    if (op == "lookup") return lookup(row, given);
    if (op == "windows") return windows(row, given);
    if (op == "concatenate") return concatenation(row, given);
    if (op == "double") return doubled(row, given);
    if (op == "columns_in_turn") return columns_in_turn(row, given);
    if (op == "crossentropy") return crossentropy(row, given);
    if (op == "random") return random(row);
    return {};
}

}  // namespace bench
