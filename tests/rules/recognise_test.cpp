// What people write by hand becomes the op that computes it, whatever is known of the lengths.
#include <cmath>

#include "ops/oracle/typed.h"
#include "tests/rules/text.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

Expr total_of(const Expr& x, int axis = 1) { return sum(exp(x), {axis}, {.keepdims = true}); }

Array value(const Expr& e, const Expr& leaf, const Array& at) {
    const Nodes roots = canonicalize_and_stabilize({e.node()}, {});
    return evaluate(roots, {{leaf.node().get(), at}}).at(0);
}

const Array ones(std::vector<std::int32_t>{1, 1}, {2});

}  // namespace

TEST_CASE("softmax and its logarithm by hand") {
    const Expr z =
        GENERATE(input(float32, 2, "z"), input(float32, {-1, 3}, "z"), input(float32, {2, -1}, "z"),
                 input(float32, Dims{2, 3}, "z"), input(float64, 2, "z"));
    CHECK(stabilized(exp(z) / total_of(z)) == "softmax(z)");
    CHECK(stabilized(exp(z) / total_of(z, 0)) == "softmax(z)");
    CHECK(stabilized(exp(z) / sum(exp(z), {0})) == "softmax(z)");
    CHECK(stabilized(exp(z) / expand_dims(sum(exp(z), {1}), 1)) == "softmax(z)");
    CHECK(stabilized(exp(z) * (1 / total_of(z))) == "softmax(z)");
    const Expr shifted = z - max(z, {1}, {.keepdims = true});
    CHECK(stabilized(exp(shifted) / total_of(shifted)) == "softmax(z)");
    CHECK(stabilized(log(exp(z) / total_of(z))) == "log_softmax(z)");
    CHECK(stabilized(z - log(total_of(z))) == "log_softmax(z)");
    CHECK(stabilized(exp(z - log(total_of(z)))) == "softmax(z)");
    CHECK(stabilized(shifted - log(total_of(shifted))) == "log_softmax(z)");
    // Over all elements they are one axis.
    CHECK(stabilized(exp(z) / sum(exp(z))) == "reshape(softmax(reshape(z)))");
    // Written twice.
    CHECK(stabilized(exp(z * 2) / sum(exp(z * 2), {1}, {.keepdims = true})) == "softmax(mul(z, 2))");
    // Neither of these is one: other terms, or another axis than that which is added up.
    const Expr square = input(float32, Dims{3, 3}, "s");
    CHECK(stabilized(exp(square) / sum(exp(square), {1})) == "div(exp(s), expand(sum(exp(s))))");
    CHECK(stabilized(exp(z) / (total_of(z) + 1)) != "softmax(z)");
}

TEST_CASE("logarithms of sums of exponentials") {
    const Expr z = GENERATE(input(float32, 2, "z"), input(float32, {-1, 3}, "z"),
                            input(float32, {2, -1}, "z"), input(float32, Dims{2, 3}, "z"));
    CHECK(stabilized(log(sum(exp(z), {1}))) == "logsumexp(z)");
    CHECK(stabilized(log(sum(exp(z)))) == "logsumexp(z)");
    CHECK(stabilized(log(total_of(z))) == "reshape(logsumexp(z))");
    CHECK(stabilized(log(exp(z) + exp(-z))) == "logaddexp(z, neg(z))");
    CHECK(stabilized(log(1 + sum(exp(z)))) == "softplus(logsumexp(z))");
    CHECK(stabilized(log(exp(z) + exp(-z) + 1)) == "softplus(logaddexp(z, neg(z)))");
    CHECK(stabilized(log(sqrt(exp(z)))) == "mul(z, 0.5)");
    CHECK(stabilized(log(prod(exp(z), {1}))) == "sum(z)");
    CHECK(stabilized(log(softmax(z) * sigmoid(z))) == "sub(log_softmax(z), softplus(neg(z)))");
    CHECK(stabilized(log(where(z > 0, exp(z), 2))).substr(0, 16) == "where(gt(z, 0), ");
    // Nothing to gain, or of unknown sign.
    CHECK(stabilized(log(softmax(z) + 1e-8)) == "log(add(softmax(z), 9.9999999392252903e-09))");
    CHECK(stabilized(log(z * exp(z))) == "log(mul(z, exp(z)))");
    CHECK(stabilized(log(sum(z))) == "log(sum(z))");
    CHECK(stabilized(log(exp(z) - 2)) == "log(sub(exp(z), 2))");
}

TEST_CASE("a shift along another axis is none") {
    const Expr z =
        GENERATE(input(float32, 2, "z"), input(float32, Dims{2, 2}, "z"), input(float32, {-1, 2}, "z"));
    const Array at(std::vector<float>{-1000, -1000, 0, 0}, {2, 2});
    for (const bool keeps : {true, false}) {
        const Expr wrong = z - max(z, {0}, {.keepdims = keeps}), all = z - max(z);
        CHECK(value(log(sum(exp(wrong), {1})), z, at).at(0) == Approx(-1000 + std::log(2.0)));
        CHECK(value(log(sum(exp(all), {1})), z, at).at(0) == Approx(-1000 + std::log(2.0)));
    }
    // The right one is not shifted again.
    const Expr right = z - max(z, {1}, {.keepdims = true});
    const std::string all = optimized(log(sum(exp(right), {1})));
    CHECK(all == "log(sum(exp(sub(z, expand(reshape(max(z)))))))");
    CHECK(value(log(sum(exp(right), {1})), z, at).at(0) == Approx(std::log(2.0)));
}

TEST_CASE("sigmoid, softplus and tanh by hand") {
    const Expr x = vector("x"), y = vector("y"), s = scalar("s");
    CHECK(stabilized(exp(x) / (1 + exp(x))) == "sigmoid(x)");
    CHECK(stabilized(exp(-x) / (1 + exp(-x))) == "sigmoid(neg(x))");
    CHECK(stabilized(exp(x) * (1 / (1 + exp(x)))) == "sigmoid(x)");
    CHECK(stabilized(1 - 1 / (1 + exp(-x))) == "sigmoid(neg(x))");
    CHECK(stabilized(exp(x) / (exp(x) + exp(y))) == "sigmoid(sub(x, y))");
    CHECK(stabilized(exp(x) / (exp(y) + exp(x))) == "sigmoid(sub(x, y))");
    CHECK(stabilized(exp(x) / (exp(y) + exp(y))) == "exp(sub(x, logaddexp(y, y)))");
    const std::string three = stabilized(exp(x) / (exp(x) + exp(y) + 2));
    CHECK_THAT(three, ContainsSubstring("exp(sub(x, disconnected_grad(maximum("));
    CHECK_NOTHROW(optimized(exp(x) / (exp(x) + exp(y) + 2)));
    CHECK(stabilized(log(1 + exp(s))) == "softplus(s)");
    CHECK(stabilized(log(exp(x) + 1)) == "softplus(x)");
    CHECK(stabilized(logaddexp(x, 0)) == "softplus(x)");
    CHECK(stabilized((exp(x) - exp(-x)) / (exp(x) + exp(-x))) == "tanh(x)");
    CHECK(stabilized((exp(2 * x) - 1) / (exp(2 * x) + 1)) == "tanh(x)");
    CHECK(stabilized(log(1 - exp(x))) == "log1mexp(x)");
    CHECK(stabilized(log1p(-exp(x))) == "log1mexp(x)");
    CHECK(stabilized(log(exp(x) - 1)) == "add(x, log1mexp(neg(x)))");
    CHECK(stabilized(1 - exp(x)) == "neg(expm1(x))");
    CHECK(stabilized(y / (1 + exp(-x))) == "mul(y, sigmoid(x))");
    CHECK(stabilized(x / (exp(x) + 1)) == "mul(x, sigmoid(neg(x)))");
    CHECK(stabilized(2 / (1 + exp(-2 * x)) - 1) == "tanh(x)");
    CHECK(stabilized(1 - 2 / (exp(2 * x) + 1)) == "tanh(x)");
    CHECK(stabilized(log(cosh(x))) == "logcosh(x)");
    for (const Expr& density : {log(1 - sqr(tanh(x))), log(1 - tanh(x) * tanh(x)), log1p(-sqr(tanh(x)))})
        CHECK(stabilized(density) == "mul(-2, logcosh(x))");
    CHECK(stabilized(sinh(x) / cosh(x)) == "tanh(x)");
    CHECK(stabilized(expm1(x) + 1) == "exp(x)");
}

TEST_CASE("quotients and products of exponentials that overflow have one exponential") {
    const Expr x = vector("x"), y = vector("y"), s = scalar("s"), m = matrix("m");
    CHECK(stabilized(exp(x) / exp(y)) == "exp(sub(x, y))");
    CHECK(stabilized(exp(x) * exp(-x)) == "exp(sub(x, x))");
    CHECK(stabilized(1 / exp(x)) == "exp(neg(x))");
    CHECK(stabilized(1 / sqr(1 + exp(-x))) == "exp(mul(softplus(neg(x)), -2))");
    CHECK(stabilized(pow(1 + exp(x), -0.5)) == "exp(mul(softplus(x), -0.5))");
    CHECK_THAT(stabilized(exp(x) * y * exp(-exp(x))), ContainsSubstring("mul(y, exp(sub(x, exp(x))))"));
    // A divisor that is repeated has one exponential for each of its own elements.
    CHECK(stabilized(m / exp(x)) == "mul(mul(m, expand(exp(mul(x, -0.5)))), expand(exp(mul(x, -0.5))))");
    // These cannot overflow, or their sign is not known, or what is divided overflows also.
    CHECK(stabilized(y / (exp(x) * 3)) ==
          "mul(mul(y, exp(mul(add(x, 1.0986123085021973), -0.5))), "
          "exp(mul(add(x, 1.0986123085021973), -0.5)))");
    for (const Expr& other :
         {exp(-sqr(x)) * exp(-abs(y)), exp(x) * exp(y), x / (1 + exp(-sqr(y))), exp(x) * y, 1 / expm1(x),
          exp(x) * s / exp(y + s), y / (exp(x) + 2), y / (exp(x) * sqr(y) + 1), y / sqrt(exp(x) + 1e-5F),
          sum(exp(x) * y) / sum(exp(x))})
        CHECK_THAT(stabilized(other), !ContainsSubstring("exp(sub"));
    const Expr shifted = m - max(m, {1}, {.keepdims = true});
    CHECK_THAT(stabilized(s / (sum(exp(shifted), {1}) + 1)), ContainsSubstring("div("));
}

TEST_CASE("a root whose gradient is chosen at 0 is not below 0 for other rules") {
    const Expr x = vector("x"), y = vector("y");
    const Expr root = sqrt(sqr(x) + sqr(y)), fourth = pow(sqr(x) + sqr(y), 0.25);
    CHECK_THAT(stabilized(root), ContainsSubstring("root("));
    CHECK_THAT(stabilized(sqrt(root)), ContainsSubstring("root(root("));
    // The logarithm of a product that overflows.
    for (const Expr& factor : {root, fourth}) {
        const std::string sum = stabilized(log(exp(x) * factor));
        CHECK(sum.substr(0, 4) == "add(");
        CHECK_THAT(sum, !ContainsSubstring("exp("));
    }
    CHECK(stabilized(log(sqrt(sqr(exp(x)) + sqr(exp(y))))) == "mul(logaddexp(mul(x, 2), mul(y, 2)), 0.5)");
    // Derivatives at 0 are infinite here, or there is no 0.
    for (const Expr& other : {sqrt(x), sqrt(sqrt(x)), sqrt(sqr(x) + 1), sqrt(exp(x)), sqrt(x * y)})
        CHECK_THAT(stabilized(other), !ContainsSubstring("root("));
}

TEST_CASE("a softmax over what a mask leaves, and masked quotients") {
    const Expr x = GENERATE(matrix("x"), input(float32, Dims{2, 3}, "x"), input(float32, {-1, 3}, "x"));
    const Array at(std::vector<float>{1000, 999, 2000, -3000, -3001, 5}, {2, 3});
    const Expr left = logical_and(neq(x, 2000), neq(x, 5));
    const auto shares = [&](const Expr& e) { return e / sum(e, {1}, {.keepdims = true}); };
    const double half = 1 / (1 + std::exp(-1.0));
    for (const Expr& y : {shares(where(left, exp(x), 0)), shares(exp(x) * cast(left, float32))})
        for (const Array& got : {value(y, x, at)}) {
            for (const std::int64_t row : {0, 3}) {
                CHECK(got.at(row) == Approx(half));
                CHECK(got.at(row + 1) == Approx(1 - half));
                CHECK(got.at(row + 2) == 0);
            }
        }
    const Array zeros(float32, {2, 3});
    CHECK(value(cast(x > 0, float32) * (1 / x), x, zeros).at(0) == 0);
    CHECK(value(grad(sum(cast(x > 0, float32) / x), x), x, zeros).at(0) == 0);
}

TEST_CASE("the logarithm of a product is the sum of logarithms, whatever the signs") {
    const Expr x = GENERATE(matrix("x"), input(float32, Dims{3, 4}, "x"), input(float32, {-1, 4}, "x"));
    const Array at(std::vector<float>{1e-30F, 1e-30F, 1e-30F, 2,  //
                                      -1e30F, 1e30F, -1e30F, 1,   //
                                      -1, 1, 1, 1},
                   {3, 4});
    const Array got = value(log(prod(x, {1})), x, at);
    CHECK(got.at(0) == Approx(3 * std::log(1e-30) + std::log(2.0)));
    CHECK(got.at(1) == Approx(3 * std::log(1e30)));
    CHECK(std::isnan(got.at(2)));
    const Array zeros(float32, {3, 4});
    CHECK(value(log(prod(x, {1})), x, zeros).at(0) == -INFINITY);
}

TEST_CASE("crossentropies of what was a softmax or a sigmoid") {
    const Expr z = GENERATE(matrix("z"), input(float32, Dims{2, 3}, "z"), input(float32, {-1, 3}, "z"));
    const Expr y = vector("y", int32), t = matrix("t"), i = vector("i", int32);
    CHECK(stabilized(categorical_crossentropy(exp(z) / total_of(z), y)) ==
          "softmax_crossentropy_labels(z, y)");
    CHECK(stabilized(categorical_crossentropy(exp(z) / total_of(z), t)) ==
          "softmax_crossentropy_dense(z, t)");
    CHECK(stabilized(categorical_crossentropy(gather(softmax(z), i), y)) ==
          "neg(pick(gather(log_softmax(z), i), y))");
    CHECK(stabilized(categorical_crossentropy(softmax(z)[Slice{0, 1}], y)) ==
          "neg(pick(slice(log_softmax(z)), y))");
    CHECK(stabilized(categorical_crossentropy((softmax(z) + softmax(-z)) / 2, y)).substr(0, 14) ==
          "neg(pick(add(l");
    const Expr stacked = input(float32, 3, "q");
    CHECK(stabilized(categorical_crossentropy(mean(softmax(stacked), {0}), y)).substr(0, 34) ==
          "neg(pick(sub(logsumexp(log_softmax");
    const std::string dense = stabilized(categorical_crossentropy(reshape(softmax(z), {3, 2}), t));
    CHECK(dense == "neg(sum(where(eq(t, 0), 0, mul(t, reshape(log_softmax(z))))))");
    const std::string binary = stabilized(binary_crossentropy(flip(sigmoid(z), 0), t));
    CHECK_THAT(binary, ContainsSubstring("softplus(neg(z))") && ContainsSubstring("softplus(z)"));
    CHECK_THAT(binary, !ContainsSubstring("log"));
    // Of what is no probability of these, nothing changes.
    CHECK(stabilized(categorical_crossentropy(z, y)) == "crossentropy_labels(z, y)");
}

TEST_CASE("masks do not multiply infinities") {
    const Expr x = vector("x", float64);
    CHECK(stabilized((x > 0) * x) == "where(gt(x, 0), x, 0)");
    const Array at(std::vector<double>{0, 2}, {2});
    const Array got = value((x > 0) * log(x), x, at);
    CHECK(got.at(0) == 0);
    CHECK(got.at(1) == std::log(2.0));
    const Expr g = grad(sum((x > 0) * log(x)), x);
    CHECK(value(g, x, at).to_vector<double>() == std::vector<double>{0, 0.5});
}

TEST_CASE("the gradient of a norm is 0 at 0") {
    const Expr w =
        GENERATE(input(float64, 2, "w"), input(float64, Dims{2, 2}, "w"), input(float64, {-1, 2}, "w"));
    const Array at(std::vector<double>{0, 0, 3, 4}, {2, 2}), none(std::vector<double>{0, 0, 0, 0}, {2, 2});
    const auto gradient = [&](const Expr& y, const Array& x) {
        return value(grad(sum(y), w), w, x).to_vector<double>();
    };
    using Numbers = std::vector<double>;
    CHECK(gradient(sqrt(sum(sqr(w))), none) == Numbers{0, 0, 0, 0});
    CHECK(gradient(sqrt(sum(w * w)), none) == Numbers{0, 0, 0, 0});
    for (const bool keeps : {false, true}) {
        const Numbers g = gradient(sqrt(sum(sqr(w), {1}, {.keepdims = keeps})), at);
        CHECK(g[0] == 0);
        CHECK(g[2] == Approx(0.6));
        CHECK(g[3] == Approx(0.8));
    }
    const Numbers root = gradient(sqrt(mean(sqr(w), {1})), at);
    CHECK(root[0] == 0);
    CHECK(root[3] == Approx(0.8 / std::sqrt(2.0)));
    CHECK(optimized(sqrt(sum(sqr(w)))) == "sqrt(sum(sqr(w)))");
}
