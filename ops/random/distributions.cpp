#include "ops/random/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "bitale/train.h"
#include "graph/base/numbers.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/random/philox.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

Type infer(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& counter = inputs[0]->type;
    if (counter.dtype != uint64 || counter.rank() != 0)
        throw TypeError(where, "a random stream counts in a uint64 scalar, not in " + describe(*inputs[0]));
    return {float32, attributes.get<std::vector<Int>>("shape")};
}

double number(const Node& node, const char* name) { return node.attributes.get<double>(name); }

// value(i) for every element of the result.
template <class F>
Array for_each_element(const Node& node, F&& value) {
    Array r(float64, static_dims(node.type.shape));
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::int64_t i = 0; i < r.size(); ++i) to[i] = value(static_cast<std::uint64_t>(i));
    return r;
}

// Rounding may carry low + u * (high - low) up to `high` itself; then the largest float32 below it, else
// nothing.
std::optional<float> ceiling(double low, double high) {
    const float top = (1 - 0x1p-24f) * static_cast<float>(high - low) + static_cast<float>(low);
    if (top < static_cast<float>(high)) return std::nullopt;
    return std::nextafter(static_cast<float>(high), -std::numeric_limits<float>::infinity());
}

Array evaluate_uniform(const Node& node, const std::vector<Array>& inputs) {
    const auto key = static_cast<std::uint64_t>(node.attributes.get<std::int64_t>("key"));
    const auto counter = inputs[0].item<std::uint64_t>();
    const double low = number(node, "low"), high = number(node, "high");
    const std::optional<float> top = ceiling(low, high);
    return for_each_element(node, [&](std::uint64_t i) {
        const double x = low + philox::unit(philox::word(key, counter, i)) * (high - low);
        return top ? std::min(x, static_cast<double>(*top)) : x;
    });
}

Array evaluate_normal(const Node& node, const std::vector<Array>& inputs) {
    const auto key = static_cast<std::uint64_t>(node.attributes.get<std::int64_t>("key"));
    const auto counter = inputs[0].item<std::uint64_t>();
    return for_each_element(node, [&](std::uint64_t i) {
        const double x = philox::normal(philox::word(key, counter, i, 0), philox::word(key, counter, i, 1));
        return x * number(node, "deviation") + number(node, "mean");
    });
}

// 24 bits of one of the two random words of each element, as an exact float32 whole number.
Term random_word(const Op* word, std::int64_t key, const NodePtr& counter, const Shape& shape, Where where) {
    const Expr indices =
        cast(Expr(make_reshape(make_iota(count_of(shape), where), shape, where)), uint64, where);
    const Expr key_bits(make_constant(Array(static_cast<std::uint64_t>(key)), where));
    const Expr bits = elementwise(word, {key_bits, Expr(counter), indices}, where);
    const Expr mask(make_constant(Array(std::uint32_t{0xffffff}), where));
    // By way of int32: processors convert signed integers faster.
    return {cast(cast(elementwise(bitwise_and_op(), {bits, mask}, where), int32, where), float32, where),
            where};
}

NodePtr decompose_uniform(const NodePtr& node) {
    const double low = number(*node, "low"), high = number(*node, "high");
    Term u(make_unit_uniform(node->attributes.get<std::int64_t>("key"), node->inputs[0], node->type.shape,
                             node->where),
           node->where);
    if (high - low != 1) u = u * (high - low);
    if (low != 0) u = u + low;
    if (const std::optional<float> top = ceiling(low, high))
        u = compose(minimum_op(), {u.x, Expr(*top, node->where)}, node->where);
    return u.node();
}

// Box and Muller: u in (0, 1] for the logarithm, v in [0, 1) for the angle.
NodePtr decompose_normal(const NodePtr& node) {
    const auto word = [&](const Op* op) {
        return random_word(op, node->attributes.get<std::int64_t>("key"), node->inputs[0], node->type.shape,
                           node->where);
    };
    const Term u = (word(philox_bits_op()) + 1) * 0x1p-24, v = word(philox_bits_second_op()) * 0x1p-24;
    Term x = sqrt(log(u) * -2) * map(cos_op(), v * (2 * std::numbers::pi));
    if (number(*node, "deviation") != 1) x = x * number(*node, "deviation");
    if (number(*node, "mean") != 0) x = x + number(*node, "mean");
    return x.node();
}

Nodes no_gradient(const NodePtr&, const NodePtr&) { return {nullptr}; }

std::vector<Int> lengths(const std::vector<Expr>& shape, const char* op, Where where) {
    std::vector<Int> r;
    for (const Expr& length : shape) r.push_back(length_from(length, op, where));
    return r;
}

}  // namespace

const Op* uniform_op() {
    static const Op* op = register_op({
        .name = "uniform",
        .kind = OpKind::composite,
        .arity = 1,
        .draws = true,
        .infer = infer,
        .gradient = no_gradient,
        .evaluate = evaluate_uniform,
        .decompose = decompose_uniform,
    });
    return op;
}

const Op* normal_op() {
    static const Op* op = register_op({
        .name = "normal",
        .kind = OpKind::composite,
        .arity = 1,
        .draws = true,
        .infer = infer,
        .gradient = no_gradient,
        .evaluate = evaluate_normal,
        .decompose = decompose_normal,
    });
    return op;
}

NodePtr make_unit_uniform(std::int64_t key, const NodePtr& counter, const Shape& shape, Where where) {
    return (random_word(philox_bits_op(), key, counter, shape, where) * 0x1p-24).node();
}

void register_random_ops() {
    uniform_op();
    normal_op();
}

RandomStream::RandomStream(std::uint64_t seed, Where where)
    : seed_(seed),
      counter_(expressing([&] { return shared(Array(std::uint64_t{0}), "random.counter", where); })) {}

Expr RandomStream::uniform(const std::vector<Expr>& shape, double low, double high, Where where) try {
    if (!(static_cast<float>(low) < static_cast<float>(high)))
        throw Error(where, "uniform: the interval from " + number_text(low) + " to " + number_text(high) +
                               " is empty in float32");
    if (!std::isfinite(static_cast<float>(high - low)))
        throw Error(where, "uniform: the interval from " + number_text(low) + " to " + number_text(high) +
                               " is longer than float32 can say; its length is at most 3.4e38");
    const auto key = static_cast<std::int64_t>(philox::key_of(seed_, next_draw()));
    return apply(uniform_op(), {Expr(counter_, where)},
                 {{"key", key}, {"shape", lengths(shape, "uniform", where)}, {"low", low}, {"high", high}},
                 where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr RandomStream::normal(const std::vector<Expr>& shape, double mean, double deviation, Where where) try {
    if (!(deviation >= 0))
        throw Error(where, "normal: the deviation must be at least 0, but is " + number_text(deviation));
    if (!std::isfinite(static_cast<float>(mean)) || !std::isfinite(static_cast<float>(deviation)))
        throw Error(where, "normal: mean and deviation must be finite in float32, but are " +
                               number_text(mean) + " and " + number_text(deviation));
    const auto key = static_cast<std::int64_t>(philox::key_of(seed_, next_draw()));
    return apply(
        normal_op(), {Expr(counter_, where)},
        {{"key", key}, {"shape", lengths(shape, "normal", where)}, {"mean", mean}, {"deviation", deviation}},
        where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates RandomStream::updates(Where where) const try {
    const Expr advanced = elementwise(add_op(), {Expr(counter_, where), Expr(1, where)}, where);
    return {{counter_, advanced, where}};
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
