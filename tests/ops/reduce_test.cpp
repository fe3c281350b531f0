// Reductions: results by hand, index maps against the oracle, gradients, messages.
#include "ops/reduce/reduce.h"

#include <limits>

#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const double quiet = std::numeric_limits<double>::quiet_NaN();

using Reduce = Expr (*)(const Expr&, const Axes&, ReduceOptions, Where);
const std::vector<Reduce> all_reductions = {sum, prod, max, min, any, all, argmax, argmin};

Array reduced(const Expr& y, const Expr& x, const Array& value) { return evaluated(y, {x}, {value}); }

}  // namespace

TEST_CASE("index maps of all reductions, over all axes and dtypes") {
    for (const Reduce reduce : all_reductions) {
        for (const Axes& axes : std::vector<Axes>{{}, {0}, {1}, {-1}, {0, 2}, {1, 2}, {2, 0}}) {
            const Expr x = tensor3("x");
            require_nest_matches(reduce(x, axes, {}, {}).node(), {sample(float32, {3, 1, 5})});
            require_nest_matches(reduce(x, axes, {}, {}).node(), {sample(float32, {1, 1, 1})});
        }
        for (const DType dtype :
             {boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float64}) {
            const Expr x = input(dtype, Dims{3, 2}, "x");
            require_nest_matches(reduce(x, {0}, {}, {}).node(), {sample(dtype, {3, 2})});
        }
        require_nest_matches(reduce(scalar("s"), {}, {}, {}).node(), {sample(float32, {})});
        // Nothing to reduce for any of no results.
        require_nest_matches(reduce(matrix("x"), {1}, {}, {}).node(), {sample(float32, {0, 3})});
    }
    for (const Reduce reduce : {Reduce(sum), Reduce(prod), Reduce(any), Reduce(all)})
        require_nest_matches(reduce(matrix("x"), {1}, {}, {}).node(), {sample(float32, {2, 0})});
}

TEST_CASE("dtypes of reductions") {
    const auto x = [](DType t) { return input(t, Dims{2}, "x"); };
    for (const DType t : {boolean, int8, int16, int32, int64}) CHECK(sum(x(t)).dtype() == int64);
    for (const DType t : {uint8, uint16, uint32, uint64}) CHECK(prod(x(t)).dtype() == uint64);
    for (const DType t : {float16, bfloat16, float32, float64}) {
        CHECK(sum(x(t)).dtype() == t);
        CHECK(mean(x(t)).dtype() == t);
    }
    for (const DType t : {boolean, int8, uint64}) {
        CHECK(mean(x(t)).dtype() == float32);
        CHECK(max(x(t)).dtype() == t);
        CHECK(any(x(t)).dtype() == boolean);
        CHECK(argmin(x(t)).dtype() == int64);
    }
}

TEST_CASE("values of reductions") {
    const Expr x = matrix("x"), b = matrix("b", int8);
    const Array v = floats({1, -2, 3, 0, 5, 5}, {2, 3});
    CHECK(reduced(sum(x), x, v).item<double>() == 12);
    CHECK(numbers(reduced(sum(x, {0}), x, v)) == std::vector<double>{1, 3, 8});
    CHECK(numbers(reduced(prod(x, {1}), x, v)) == std::vector<double>{-6, 0});
    CHECK(numbers(reduced(max(x, {1}), x, v)) == std::vector<double>{3, 5});
    CHECK(numbers(reduced(min(x, {-2}), x, v)) == std::vector<double>{0, -2, 3});
    CHECK(numbers(reduced(argmax(x, {1}), x, v)) == std::vector<double>{2, 1});
    CHECK(reduced(argmax(x), x, v).item<double>() == 4);
    CHECK(numbers(reduced(any(x, {0}), x, v)) == std::vector<double>{1, 1, 1});
    CHECK(numbers(reduced(all(x, {0}), x, v)) == std::vector<double>{0, 1, 1});
    CHECK(reduced(mean(x), x, v).item<double>() == 2);
    CHECK(numbers(reduced(mean(x, {1}), x, v))[1] == Approx(10.0 / 3));
    CHECK(sum(x, {0}, {.keepdims = true}).shape_text() == "[1, x.1]");
    CHECK(sum(x, {}, {.keepdims = true}).shape_text() == "[1, 1]");
    CHECK(numbers(reduced(sum(x, {1}, {.keepdims = true}), x, v)) == std::vector<double>{2, 10});
    // Wide enough for bytes.
    CHECK(reduced(sum(b), b, Array(std::vector<std::int8_t>(600, 127), {2, 300})).item<double>() == 76200);
    CHECK(reduced(sum(x), x, Array(float32, {0, 3})).item<double>() == 0);
    CHECK(reduced(prod(x), x, Array(float32, {0, 3})).item<double>() == 1);
    CHECK(std::isnan(reduced(mean(x), x, Array(float32, {0, 3})).item<double>()));
}

TEST_CASE("argmax over several axes counts in row-major order of these axes") {
    Array v = sample(float32, {2, 3, 4});
    static_cast<float*>(v.mutable_data())[(1 * 3 + 1) * 4 + 2] = 100;
    const Expr x = tensor3("x");
    CHECK(reduced(argmax(x, {0, 2}), x, v).at(1) == 1 * 4 + 2);
    CHECK(reduced(argmax(x), x, v).item<double>() == 18);
}

TEST_CASE("NaN wins, the first one") {
    const Array v = floats({1, static_cast<float>(quiet), 9, static_cast<float>(quiet)}, {4});
    const Expr x = vector("x");
    for (const Reduce reduce : {Reduce(max), Reduce(min)})
        CHECK(std::isnan(reduced(reduce(x, {}, {}, {}), x, v).item<double>()));
    for (const Reduce reduce : {Reduce(argmax), Reduce(argmin)}) {
        CHECK(reduced(reduce(x, {}, {}, {}), x, v).item<double>() == 1);
        require_nest_matches(reduce(x, {}, {}, {}).node(), {v});
    }
    CHECK(reduced(argmax(x), x, floats({2, 7, 7}, {3})).item<double>() == 1);
}

TEST_CASE("mean is a sum of floats divided by a count, whatever the storage") {
    for (const DType dtype : {int8, uint8, float16, float32, float64, boolean}) {
        const Expr x = input(dtype, 2, "x");
        const Expr m = mean(x, {1});
        const Expr simple = wrap(m.node()->op->decompose(m.node()));
        CHECK(simple.dtype() == m.dtype());
        CHECK(simple.shape_text() == m.shape_text());
        const Array v = sample(dtype, {3, 4});
        require_same(reduced(m, x, v), reduced(simple, x, v));
    }
    const auto text = [](DType dtype) {
        const Expr x = input(dtype, Dims{4}, "x");
        const NodePtr quotient = mean(x).node()->op->decompose(mean(x).node());
        const NodePtr total = quotient->inputs[0];
        return quotient->op->name + " " + total->op->name + " " + text_of(total->type);
    };
    CHECK(text(uint8) == "div sum float32 []");
    CHECK(text(uint8) == text(float32));
}

TEST_CASE("gradients of reductions") {
    const Array x = Array(std::vector<double>{0.5, -1, 2, 3, 0.25, -0.75, 1.5, 2.5, -2, 4, 1, -3}, {2, 3, 2});
    for (const bool symbolic : {false, true})
        for (const Axes& axes : std::vector<Axes>{{}, {1}, {0, 2}, {-1}})
            for (const Reduce reduce : {Reduce(sum), Reduce(prod), Reduce(mean), Reduce(max), Reduce(min)}) {
                require_gradient([&](const auto& v) { return reduce(v[0], axes, {}, {}); }, {x}, symbolic);
                require_gradient([&](const auto& v) { return reduce(v[0], axes, {.keepdims = true}, {}); },
                                 {x}, symbolic);
            }
}

TEST_CASE("the gradient of prod is right where factors are zero") {
    require_gradient([](const auto& v) { return prod(v[0], {1}); },
                     {Array(std::vector<double>{2, 0, 3, 0, 0, 5, 1, 2, 4}, {3, 3})});
    const Expr x = vector("x");
    CHECK(numbers(reduced(grad(prod(x), x), x, floats({2, 0, 3}, {3}))) == std::vector<double>{0, 6, 0});
    CHECK(numbers(reduced(grad(prod(x), x), x, floats({0, 0, 3}, {3}))) == std::vector<double>{0, 0, 0});
}

TEST_CASE("the gradient of max goes to the first maximum only") {
    const Expr x = matrix("x");
    const Array v = floats({1, 4, 4, 2, 2, 2}, {2, 3});
    CHECK(numbers(reduced(grad(sum(max(x, {1})), x), x, v)) == std::vector<double>{0, 1, 0, 1, 0, 0});
    CHECK(numbers(reduced(grad(max(x), x), x, v)) == std::vector<double>{0, 1, 0, 0, 0, 0});
    CHECK(numbers(reduced(grad(sum(min(x, {0})), x), x, v)) == std::vector<double>{1, 0, 0, 0, 1, 1});
}

TEST_CASE("messages of reductions") {
    const Expr x = input(float32, Dims{2, 0}, "x"), y = matrix("y");
    CHECK_THAT(message_of<ShapeError>([&] { max(x, {1}); }), ContainsSubstring("axis 1 is empty"));
    CHECK_THAT(message_of<ShapeError>([&] { argmin(x); }), ContainsSubstring("axis 1 is empty"));
    CHECK(max(x, {0}).shape_text() == "[0]");
    CHECK_THAT(message_of<IndexError>([&] { sum(x, {2}); }),
               ContainsSubstring("sum of \"") && ContainsSubstring("there is no axis 2; axes are 0 and 1"));
    CHECK_THAT(message_of<IndexError>([&] { sum(x, {1, -1}); }), ContainsSubstring("named twice"));
    const NodePtr top = max(y, {1}).node();
    REQUIRE(top->op->equalities(*top).size() == 1);
    CHECK(sum(y).node()->op->equalities == nullptr);
}
