// The oracle: leaves, symbolic lengths, checks, composites without an evaluation of their own.
#include "ops/elementwise/elementwise.h"
#include "ops/registry.h"
#include "tests/support/gradient_check.h"

using namespace bitale;
using namespace bitale::test;

TEST_CASE("results have the declared dtypes and are computed in float64") {
    const Expr x = vector("x");
    const Array values(std::vector<float>{1, 2});
    const std::vector<Array> r = evaluated({x + 1, cast(x, int8), x > 1.5, x}, {x}, {values});
    CHECK(r[0].dtype() == float32);
    CHECK(r[1].dtype() == int8);
    CHECK(r[2].dtype() == boolean);
    CHECK(same(r[3], values));
    // In float32 the sum would lose the 1.
    CHECK(evaluated((x + 1e8) - 1e8, {x}, {values}).to_vector<float>() == std::vector<float>{1, 2});
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
        const std::string at = "evaluate_test.cpp:" + std::to_string(line) + ": ";
        CHECK_THROWS_WITH(
            evaluated(y, {x, i}, {values, Array(std::vector<int>{0, wrong})}),
            ContainsSubstring(at) && ContainsSubstring("is out of range: " + std::to_string(wrong) +
                                                       ", element 1, is not in [0, 3)"));
    }
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
    CHECK(evaluated(y + x, {x}, {Array(std::vector<float>{1, 2})}).to_vector<int>() ==
          std::vector<int>{9, 18});
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
                             "length",
                             "iota"})
        CHECK(find_op(name));
    CHECK(find_op("add") == add_op());
    CHECK(!find_op("no such op"));
}
