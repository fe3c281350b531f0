// Products with a batch axis, attention, and products with weights of int8.
#include <cmath>
#include <stdexcept>
#include <string>

#include "shapes/shapes.h"

namespace bench {

using namespace bitale;

namespace {

Expr one_of(const Expr& x, std::int64_t k) { return x[k]; }

// The product of a [h, m, k] and b, [h, n, k] in the form NT and [h, k, n] in NN.
Expr batched(const Expr& a, const Expr& b, bool turned, std::int64_t heads, const std::string& written) {
    if (written == "broadcast" && turned) return sum(expand_dims(a, 2) * expand_dims(b, 1), {3});
    if (written == "broadcast") return sum(expand_dims(a, 3) * expand_dims(b, 1), {2});
    if (written != "dots") throw std::runtime_error("unknown form " + written);
    std::vector<Expr> parts;
    for (std::int64_t h = 0; h < heads; ++h) {
        const Expr of_b = one_of(b, h);
        parts.push_back(expand_dims(dot(one_of(a, h), turned ? transpose(of_b) : of_b), 0));
    }
    return concatenate(parts);
}

Updates batched_product(const Json& row, Given& given) {
    const std::int64_t heads = row.at("heads"), m = row.at("m"), n = row.at("n"), k = row.at("k");
    const bool turned = row.at("form") == "NT";
    const auto written = row.at("written").get<std::string>();
    if (written == "one") {  // as many rows of one product
        const Expr a = given(floats({heads * m, k}, 1), "a"),
                   b = given(floats(turned ? Dims{n, k} : Dims{k, n}, 2), "b");
        return {result({heads * m, n}, dot(a, turned ? transpose(b) : b))};
    }
    const Expr a = given(floats({heads, m, k}, 1), "a"),
               b = given(floats(turned ? Dims{heads, n, k} : Dims{heads, k, n}, 2), "b");
    return {result({heads, m, n}, batched(a, b, turned, heads, written))};
}

Updates attention(const Json& row, Given& given) {
    const std::int64_t heads = row.at("heads"), length = row.at("length"), width = row.at("width");
    const auto written = row.at("written").get<std::string>();
    const std::int64_t shared = row.value("shared", std::int64_t{1});  // heads of queries for each of keys
    const Dims shape{heads, length, width}, of_keys{heads / shared, length, width};
    const Expr q = given(floats(shape, 1), "q"), k = given(floats(of_keys, 2), "k"),
               v = given(floats(of_keys, 3), "v");
    const auto each = [&](const Expr& x) { return shared == 1 ? x : repeat(x, shared, 0); };
    const Expr scores = batched(q, each(k), true, heads, written) / std::sqrt(static_cast<float>(width));
    const Expr y = batched(softmax(scores), each(v), false, heads, written);
    Updates updates{result(shape, y)};
    if (row.at("pass") == "forward") return updates;
    const auto gradients = grad(sum(y * given(floats(shape, 4), "gradient")), {q, k, v});
    for (std::size_t i = 0; i < gradients.size(); ++i)
        updates.push_back(result(i == 0 ? shape : of_keys, gradients[i], "gradient" + std::to_string(i)));
    return updates;
}

// Of as many rows and columns, or its sum.
Updates one_product(const Json& row, Given& given) {
    const std::int64_t m = row.at("m"), n = row.at("n"), k = row.at("k");
    const DType dtype = row.value("dtype", "float32") == "float64" ? float64 : float32;
    const auto numbers = [&](const Dims& shape, std::uint32_t salt) {
        return eval(cast(Expr(floats(shape, salt)), dtype));
    };
    const Array rows = numbers({m, k}, 1);
    const Expr a = row.value("unknown", false) ? given.rows(rows, "a") : given(rows, "a"),
               y = dot(a, given(numbers({k, n}, 2), "b"));
    if (row.contains("sum")) return {result({}, sum(y))};
    return {result({m, n}, y)};
}

// Each row of a softmax weighs the rows of v.
Updates weighted_mean(const Json& row, Given& given) {
    const std::int64_t heads = row.at("heads"), length = row.at("length"), width = row.at("width");
    const Expr scores = given(floats({heads, length, length}, 1), "scores"),
               v = given(floats({heads, length, width}, 2), "v");
    const auto written = row.at("written").get<std::string>();
    return {result({heads, length, width}, batched(softmax(scores), v, false, heads, written))};
}

// The scale of each column is either part of the weights or comes after the product.
Updates dequantized(const Json& row, Given& given) {
    const std::int64_t batch = row.at("batch");
    const Dims shape = dims_of(row.at("shape"));
    const Expr x = given(floats({batch, shape[0]}, 1), "x");
    const Shared w = shared(bytes(shape, 2, int8), "w"),
                 scale = shared(floats({shape[1]}, 3, 0.001, 0.01), "scale");
    const Expr wide = cast(w, float32);
    return {result({batch, shape[1]},
                   row.at("written") == "before" ? dot(x, wide * scale) : dot(x, wide) * scale)};
}

// Rows of a table, by a product with ones and zeros or by their numbers.
Updates one_hot_rows(const Json& row, Given& given) {
    const std::int64_t rows = row.at("rows"), n = row.at("n"), k = row.at("k");
    const Expr numbers = given(places(rows, 1, n), "numbers"), table = given(floats({n, k}, 2), "table");
    return {
        result({rows, k}, row.at("written") == "lookup" ? table[numbers] : dot(one_hot(numbers, n), table))};
}

// Of bytes, as integers or as floats.
Updates integer_product(const Json& row, Given& given) {
    const std::int64_t m = row.at("m"), n = row.at("n"), k = row.at("k");
    const Expr a = given(bytes({m, k}, 1, int8), "a"), b = given(bytes({k, n}, 2, int8), "b");
    if (row.at("written") == "floats") return {result({m, n}, dot(cast(a, float32), cast(b, float32)))};
    if (row.at("written") == "scaled") {
        const Expr scale = given(floats({n}, 3), "scale");
        return {result({m, n}, dot(cast(a, float32) / 127, cast(b, float32) * scale))};
    }
    const Expr sums = sum(expand_dims(cast(a, int32), 2) * expand_dims(cast(b, int32), 0), {1});
    return {result({m, n}, cast(sums, float32))};
}

// By their differences: nothing cancels.
Updates distances(const Json& row, Given& given) {
    const std::int64_t n = row.at("n"), m = row.at("m"), k = row.at("k");
    const Expr x = given(floats({n, k}, 1), "x"), y = given(floats({m, k}, 2), "y");
    return {result({n, m}, sum(sqr(expand_dims(x, 1) - expand_dims(y, 0)), {2}))};
}

}  // namespace

Updates products(const Json& row, Given& given) {
    const auto op = row.at("op").get<std::string>();
    if (op == "distances") return distances(row, given);
    if (op == "batched") return batched_product(row, given);
    if (op == "attention") return attention(row, given);
    if (op == "product") return one_product(row, given);
    if (op == "weighted_mean") return weighted_mean(row, given);
    if (op == "dequantized") return dequantized(row, given);
    if (op == "one_hot") return one_hot_rows(row, given);
    if (op == "integer_product") return integer_product(row, given);
    return {};
}

}  // namespace bench
