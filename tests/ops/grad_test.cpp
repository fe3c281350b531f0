// grad: what it differentiates, what it refuses, and whose lines its nodes carry.
#include <cmath>

#include "graph/walk/traverse.h"
#include "ops/autodiff/grad.h"
#include "ops/autodiff/modifiers.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"

using namespace bitale;
using namespace bitale::test;

TEST_CASE("gradients of compositions") {
    const Array x = doubles({0.3, -1.2, 2.1, 0.7, -0.4, 1.6}, {2, 3}), w = doubles({0.2, -0.7, 0.9}, {3});
    require_gradient([](const std::vector<Expr>& in) { return tanh(in[0] * in[1]) / (1 + exp(-in[0])); },
                     {x, w});
    require_gradient([](const std::vector<Expr>& in) { return in[0] * in[0] - in[0] * sum(in[0]); }, {x});
    require_gradient([](const std::vector<Expr>& in) { return dot(in[0], in[1]) * mean(sqr(in[0])); },
                     {x, w});
    require_gradient([](const std::vector<Expr>& in) { return where(in[0] > 0.5, in[0] * 2, sin(in[0])); },
                     {x});
    require_gradient([](const std::vector<Expr>& in) { return log(softmax(in[0])); }, {x});
    require_gradient([](const std::vector<Expr>& in) { return in[0] + mean(in[0], {0}) * max(in[0]); }, {x},
                     true);
}

TEST_CASE("the gradient of a gradient") {
    const Expr x = vector("x", float64);
    const Expr first = grad(sum(x * x * x), x), second = grad(sum(first), x);
    CHECK(evaluated(second, {x}, {doubles({1, -2}, {2})}).to_vector<double>() == std::vector<double>{6, -12});
}

TEST_CASE("an operand may occur often, and a wrt may lie below another one") {
    const Expr x = vector("x", float64);
    const Expr h = exp(x), cost = sum(h * h + x + h);
    const std::vector<Array> g = evaluated(grad(cost, {x, h, cost}), {x}, {doubles({0.5}, {1})});
    const double e = std::exp(0.5);
    CHECK(g[0].at(0) == Approx(2 * e * e + 1 + e));
    CHECK(g[1].at(0) == Approx(2 * e + 1));
    CHECK(g[2].at(0) == 1);
    CHECK(g[2].rank() == 0);
}

TEST_CASE("shared variables are one variable, however often they are mentioned") {
    const Shared w = shared(Array(3.0F), "w");
    const Expr x = scalar("x");
    const Expr cost = w * x + sqr(w);
    const Expr g = grad(cost, w);
    CHECK(g.dtype() == float32);
    CHECK(evaluated(g, {x}, {Array(5.0F)}).at(0) == 11);
    const Shared other = shared(Array(3.0F), "w");
    CHECK_THAT(message_of<GraphError>([&] { grad(cost, other); }),
               ContainsSubstring("does not depend on \"w\""));
}

TEST_CASE("the forms that are differentiated are the stable ones") {
    const Expr x = matrix("x", float64);
    const Array far = doubles({1000, -1000, 0}, {1, 3});
    // log(softmax(x)) alone has an infinite derivative here.
    const Array g =
        evaluated(grad(-sum(log(softmax(x)) * constant(doubles({0, 1, 0}, {1, 3}))), x), {x}, {far});
    CHECK(g.to_vector<double>() == std::vector<double>{1, -1, 0});
}

TEST_CASE("half types add up in float32 and keep their dtype") {
    const Expr h = vector("h", float16);
    const Expr x = cast(h, float32), y = cast(h, float32) * 2;
    const Expr g = grad(sum(x * 3) + sum(y), h);
    CHECK(g.dtype() == float16);
    CHECK(evaluated(g, {h}, {Array(std::vector<float>{1, 2}).as(float16)}).to_vector<float>() ==
          std::vector<float>{5, 5});
}

TEST_CASE("gradients carry the lines of the forward nodes") {
    const Expr x = matrix("x", float64);
    const Expr h = tanh(x);
    const unsigned line = __LINE__ - 1;
    const Expr cost = sum(h * 2);
    const Expr g = grad(cost, x);
    for (const NodePtr& node : topological({g.node()})) {
        INFO(describe(*node));
        CHECK(node->where.line >= line - 1);
        CHECK(node->where.line <= line + 2);
        CHECK(std::string(node->where.file).find("grad_test.cpp") != std::string::npos);
    }
    CHECK(g.where().line == line);
    // The forward nodes keep theirs.
    CHECK(cost.where().line == line + 2);
}

TEST_CASE("zero is a gradient where a function is flat") {
    const Expr x = vector("x", float64);
    const Array at = doubles({0.3, 1.7}, {2});
    CHECK(evaluated(grad(sum(floor(x)), x), {x}, {at}).to_vector<double>() == std::vector<double>{0, 0});
    CHECK(evaluated(grad(sum(floor(x) + x), x), {x}, {at}).to_vector<double>() == std::vector<double>{1, 1});
}

TEST_CASE("what cannot be differentiated is refused with both lines and the cure") {
    const Expr x = matrix("x"), y = vector("unused");
    const Expr cost = mean(x);
    CHECK_THAT(
        message_of<GraphError>([&] { grad(x, x); }),
        ContainsSubstring("the cost must be a scalar, not \"x\" (float32 [x.0, x.1]) at grad_test.cpp") &&
            ContainsSubstring("take its mean or sum"));
    CHECK_THAT(message_of<TypeError>([&] { grad(sum(ivector("i")), x); }),
               ContainsSubstring("the cost must be a float") && ContainsSubstring("cast it to float32"));
    CHECK_THAT(message_of<TypeError>([&] { grad(cost, ivector("i")); }),
               ContainsSubstring("no gradient with respect to \"i\" (int32 [i.0])"));
    CHECK_THAT(message_of<GraphError>([&] {
                   grad(cost, {x, y});
               }),
               ContainsSubstring("does not depend on \"unused\" (float32 [unused.0]) at grad_test.cpp:"));
    CHECK_THAT(message_of<GraphError>([&] { grad(Expr(1.0), x); }), ContainsSubstring("does not depend on"));
    CHECK_THAT(message_of<GraphError>([&] { grad(cost, Expr()); }), ContainsSubstring("empty expression"));
    CHECK_THAT(message_of<GraphError>([&] { grad(Expr(), x); }),
               ContainsSubstring("the cost is an empty expression"));
    const Expr choice = cast(argmax(x), float32);
    CHECK_THAT(
        message_of<GraphError>([&] { grad(choice, x); }),
        ContainsSubstring("only through operations without a gradient: argmax (int64 []) at grad_test.cpp"));
    const Expr held = sum(disconnected_grad(x) * 2);
    CHECK_THAT(message_of<GraphError>([&] { grad(held, x); }),
               ContainsSubstring("only through operations without a gradient: disconnected_grad"));
}

TEST_CASE("no gradient passes disconnected_grad") {
    const Expr x = vector("x", float64);
    const Array at = doubles({2, 3}, {2});
    const Expr y = disconnected_grad(x) * x;
    CHECK(evaluated(y, {x}, {at}).to_vector<double>() == std::vector<double>{4, 9});
    CHECK(evaluated(grad(sum(y), x), {x}, {at}).to_vector<double>() == std::vector<double>{2, 3});
    CHECK(disconnected_grad_op()->decompose(disconnected_grad(x).node()) == x.node());
}
