// Both oracles: leaves, symbolic lengths, checks, composites without an evaluation of their own, and how the
// one rounds to dtypes and the other does not.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/elementwise/elementwise.h"
#include "ops/oracle/typed.h"
#include "ops/registry.h"
#include "tests/support/gradient_check.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::vector<Array> typed(const std::vector<Expr>& roots, const std::vector<Expr>& inputs,
                         const std::vector<Array>& values) {
    Nodes nodes;
    for (const Expr& x : roots) nodes.push_back(x.node());
    LeafValues leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) leaves.emplace(inputs[i].node().get(), values[i]);
    return evaluate(nodes, leaves);
}

}  // namespace

TEST_CASE("results have the declared dtypes; the wide oracle does not round on the way, the typed one does") {
    const Expr x = vector("x");
    const Array values(std::vector<float>{1, 2});
    const std::vector<Expr> roots{x + 1, cast(x, int8), x > 1.5, x, (x + 1e8) - 1e8};
    for (const bool wide : {true, false}) {
        const std::vector<Array> r = wide ? evaluated(roots, {x}, {values}) : typed(roots, {x}, {values});
        CHECK(r[0].dtype() == float32);
        CHECK(r[1].dtype() == int8);
        CHECK(r[2].dtype() == boolean);
        CHECK(same(r[3], values));
        // In float32 the sum loses the 1, and goes to the even neighbour.
        CHECK(r[4].to_vector<float>() == (wide ? std::vector<float>{1, 2} : std::vector<float>{0, 0}));
    }
}

TEST_CASE("the typed oracle rounds casts, once, and integers that become floats") {
    const Expr x = vector("x", float64), u = input(uint32, 1, "u"), i = input(int64, 1, "i");
    const std::vector<Array> values = {
        Array(std::vector<double>{0.1, 16777217, 1e308}), Array(std::vector<std::uint32_t>{4294967295U}),
        // Between two floats, and closer to the upper by what float64 does not hold.
        Array(std::vector<std::int64_t>{(std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1})};
    const std::vector<Expr> inputs{x, u, i};
    const Expr back = cast(cast(x, float32), float64);
    const std::vector<Array> r =
        typed({back, eq(back, x), cos(u), cast(i, float32), cast(cast(x, float16), float64)}, inputs, values);
    CHECK(r[0].to_vector<double>() ==
          std::vector<double>{static_cast<double>(0.1F), 16777216, std::numeric_limits<double>::infinity()});
    CHECK(r[1].to_vector<bool>() == std::vector<bool>{false, false, false});
    CHECK(r[2].at(0) == static_cast<double>(static_cast<float>(std::cos(4294967296.0))));
    CHECK(r[3].at(0) == std::ldexp(1, 60) + std::ldexp(1, 37));
    CHECK(r[4].at(0) == 0.0999755859375);
}

TEST_CASE("crossentropies of a softmax and of a sigmoid are finite by the typed oracle") {
    const Expr z = matrix("z"), labels = input(int64, 1, "labels"), t = matrix("t");
    const std::vector<Expr> inputs{z, labels, t};
    const std::vector<Array> values{Array(std::vector<float>{1000, 0, -3, 2}, {2, 2}),
                                    Array(std::vector<std::int64_t>{1, 0}),
                                    Array(std::vector<float>{0, 1, 1, 0}, {2, 2})};
    const std::vector<Array> r =
        typed({categorical_crossentropy(softmax(z), labels), categorical_crossentropy(softmax(z), t),
               binary_crossentropy(sigmoid(z), t), log_softmax(z), softplus(-z), log(softmax(z))},
              inputs, values);
    const auto close = [](const Array& x, const std::vector<double>& expected) {
        for (std::size_t k = 0; k < expected.size(); ++k)
            CHECK(x.at(static_cast<std::int64_t>(k)) == Approx(expected[k]).epsilon(1e-6));
    };
    const double small = std::log1p(std::exp(-5.0));
    close(r[0], {1000, 5 + small});
    close(r[1], {1000, 5 + small});
    close(r[2], {1000, std::log(2.0), std::log1p(std::exp(3.0)), std::log1p(std::exp(2.0))});
    close(r[3], {0, -1000, -5 - small, -small});
    close(r[4], {0, std::log(2.0), std::log1p(std::exp(3.0)), std::log1p(std::exp(-2.0))});
    // Nothing promises that of a logarithm beside: the oracle applies no rule.
    CHECK(r[5].at(1) == -std::numeric_limits<double>::infinity());
    // The wide one has the range.
    CHECK(evaluated(log(softmax(z)), inputs, values).at(1) == -1000);
    CHECK(evaluated(categorical_crossentropy(softmax(z), labels), inputs, values).at(0) == 1000);
    CHECK(evaluated(log(sum(exp(z), {1})), inputs, values).at(0) == 1000);
}

TEST_CASE("wide results say how far a device may be from them") {
    const Expr x = vector("x");
    const Array values(std::vector<float>{3.25F, -3.25F, 1e-3F, 2});
    const auto error_of = [&](const Expr& y, std::size_t i = 0) {
        return static_cast<double>(evaluated_wide({y}, {x}, {values})[0]->error(i));
    };
    const double unit = 0x1p-24;
    CHECK(error_of(x) == 0);
    CHECK(error_of(maximum(-x, 2)) == 0);
    CHECK(error_of(x * x) == Approx(unit * 3.25 * 3.25));
    CHECK(error_of(cast(x, float64) * 3) == Approx(0x1p-53 * 9.75));
    // What is lost in a sum that cancels is that of its summands.
    CHECK(error_of(sum(x * 1000)) > unit * 8000);
    CHECK(error_of(sum(x * 1000)) < 100 * unit * 8000);
    CHECK(error_of((x + 1e6) - 1e6, 2) > unit * 1e6);
    // Decisions that rounding can turn.
    const double infinite = std::numeric_limits<double>::infinity();
    CHECK(error_of(cast(gt(x / 3, 1.0833333333333333), float32)) == 1);
    CHECK(error_of(cast(gt(x / 3, 1.083), float32)) == 0);
    CHECK(error_of(cast(argmax(abs(x / 3)), float32)) == infinite);
    CHECK(error_of(cast(argmax(x / 3), float32)) == 0);
    CHECK(error_of(where(gt(x, 2), x, 1 / (x - x))) == 0);
    CHECK(error_of(exp(x * 40)) == infinite);  // beyond float32
}

TEST_CASE("a sum of terms that are alike may be as far off as a plain loop is") {
    const Expr x = input(float32, {4032}, "x");
    const auto sum_of = [&](const std::vector<float>& terms) {
        return evaluate_wide({sum(x).node()}, {{x.node().get(), Array(terms)}}).at(0);
    };
    long double furthest = 0;
    for (int k = 1; k <= 60; ++k) {
        const std::vector<float> terms(4032, 0.1F + 0.9F / 61 * static_cast<float>(k));
        const WidePtr exact = sum_of(terms);
        const float plain = std::accumulate(terms.begin(), terms.end(), 0.0F);
        INFO(terms[0] << " gives " << plain << ", off by at most " << static_cast<double>(exact->error(0)));
        CHECK(std::fabs(static_cast<long double>(plain) - exact->values[0]) <= exact->error(0));
        furthest = std::max(furthest, exact->error(0) / exact->values[0]);
    }
    CHECK(furthest > 4 * (4 + 2 * std::sqrt(4032.0L)) * 0x1p-24L);
    // Roundings of others cancel.
    std::vector<float> others;
    for (int k = 0; k < 4032; ++k) others.push_back(0.1F + 0.9F * static_cast<float>(k * 977 % 4032) / 4032);
    const WidePtr exact = sum_of(others);
    CHECK(exact->error(0) / exact->values[0] < (6 + 2 * std::sqrt(4032.0L)) * 0x1p-24L);
}

TEST_CASE("lengths become numbers") {
    const Expr x = matrix("x"), n = lscalar("n");
    const Array values(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
    CHECK(evaluated(rows(x, n, 2), {x, n}, {values, Array(std::int64_t{1})}).to_vector<int>() ==
          std::vector<int>{3, 4, 5, 6});
    CHECK(evaluated(range(0, n), {n}, {Array(std::int64_t{3})}).to_vector<int>() ==
          std::vector<int>{0, 1, 2});
    CHECK(evaluated(reshape(x, {x.length(1), -1}), {x}, {values}).shape() == Dims{2, 3});
    // A length without the values it belongs to.
    CHECK(evaluated(x.length(0) * 10, {x}, {values}).item<int>() == 30);
    CHECK(evaluated(zeros_like(x), {x}, {values}).shape() == Dims{3, 2});
}

TEST_CASE("leaves that are missing or do not fit are refused") {
    const Expr x = input(float32, Dims{-1, 2}, "x");
    CHECK_THROWS_WITH(evaluated(x + 1), ContainsSubstring("no value is given for \"x\" (float32 [x.0, 2])"));
    CHECK_THROWS_WITH(evaluated(x + 1, {x}, {Array(float64, {1, 2})}),
                      ContainsSubstring("cannot take float64"));
    CHECK_THROWS_WITH(evaluated(x + 1, {x}, {Array(float32, {1, 3})}),
                      ContainsSubstring("a value of shape [1, 3]"));
    CHECK_THROWS_AS(evaluated(x + 1, {x}, {Array(float32, {2})}), ShapeError);
}

TEST_CASE("a check that fails is an IndexError with value, position and line") {
    const Expr x = matrix("x"), i = ivector("i");
    const unsigned line = __LINE__ + 1;
    const Expr y = gather(x, i);
    const Array values(float32, {3, 2});
    CHECK(evaluated(y, {x, i}, {values, Array(std::vector<int>{2, 0})}).shape() == Dims{2, 2});
    for (const int wrong : {3, -1}) {
        const std::string at = "oracle_test.cpp:" + std::to_string(line) + ": ";
        CHECK_THROWS_WITH(
            evaluated(y, {x, i}, {values, Array(std::vector<int>{0, wrong})}),
            ContainsSubstring(at) &&
                ContainsSubstring("is out of range, 0 to 2: " + std::to_string(wrong) + " at element 1"));
    }
}

TEST_CASE("errors name inputs and variables, not the constants that stand for them") {
    const Expr n = lscalar("n"), x = vector("x"), unnamed = vector(""), w(shared(Array(float32, {4}), "w")),
               w_unnamed(shared(Array(float32, {4})));
    const auto words = [&](const Expr& of) {
        return message_of<IndexError>([&] {
            evaluated(of[range(n, n + 3)], {of, n}, {Array(float32, {4}), Array(std::int64_t{3})});
        });
    };
    CHECK_THAT(words(x), ContainsSubstring("\"x\" (float32 [4]) at oracle_test.cpp:"));
    CHECK_THAT(words(unnamed), ContainsSubstring("input (float32 [4]) at oracle_test.cpp:"));
    CHECK_THAT(words(w), ContainsSubstring("\"w\" (float32 [4]) at oracle_test.cpp:"));
    CHECK_THAT(words(w_unnamed), ContainsSubstring("shared (float32 [4]) at oracle_test.cpp:"));
}

TEST_CASE("an op without an evaluation is decomposed") {
    static const Op* twice = register_op({
        .name = "twice_for_test",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& inputs, const Attributes&, Where) { return inputs[0]->type; },
        .decompose = [](const NodePtr& node) { return (wrap(node->inputs[0]) * 2).node(); },
    });
    const Expr x = vector("x");
    Expr y = x;
    for (int i = 0; i < 3; ++i) y = apply(twice, {y});
    const Array one_two(std::vector<float>{1, 2});
    CHECK(evaluated(y + x, {x}, {one_two}).to_vector<int>() == std::vector<int>{9, 18});
    CHECK(typed({y + x}, {x}, {one_two})[0].to_vector<int>() == std::vector<int>{9, 18});
}

TEST_CASE("every family is in the registry") {
    register_all_ops();
    for (const char* name : {"add",
                             "cast",
                             "where",
                             "reshape",
                             "expand",
                             "rows",
                             "gather",
                             "sum",
                             "argmax",
                             "mean",
                             "dot",
                             "conv",
                             "conv_grad_w",
                             "max_pool",
                             "unpool",
                             "softmax",
                             "crossentropy_labels",
                             "dropout",
                             "uniform",
                             "normal",
                             "disconnected_grad",
                             "checkpoint",
                             "again",
                             "step_count",
                             "length",
                             "iota"})
        CHECK(find_op(name));
    CHECK(find_op("add") == add_op());
    CHECK(!find_op("no such op"));
}
