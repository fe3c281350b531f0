// What is rewritten for the sake of numbers, before and after.
#include <cmath>

#include "ops/oracle/wide.h"
#include "tests/rules/text.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

const Expr z = matrix("z"), t = matrix("t");

double wide_value(const Expr& e, const Expr& leaf, const Array& at) {
    const Nodes roots = canonicalize_and_stabilize({e.node()}, {});
    return evaluate_wide(roots, {{leaf.node().get(), at}}).at(0)->rounded().at(0);
}

}  // namespace

TEST_CASE("logarithms and exponentials that cancel or overflow") {
    const Expr x = vector("x");
    CHECK(stabilized(log(1 + x)) == "log1p(x)");
    CHECK(stabilized(log(x + 1)) == "log1p(x)");
    CHECK(stabilized(log(1 - x)) == "log1p(neg(x))");
    CHECK(stabilized(exp(x) - 1) == "expm1(x)");
    CHECK(stabilized(log(1 + exp(x))) == "softplus(x)");
    CHECK(stabilized(log(sigmoid(x))) == "neg(softplus(neg(x)))");
    CHECK(stabilized(log(1 - sigmoid(x))) == "neg(softplus(x))");
    CHECK(stabilized(1 / (1 + exp(-x))) == "sigmoid(x)");
    CHECK(stabilized(log(exp(x))) == "x");
    CHECK(stabilized(sqrt(sqr(x))) == "abs(x)");
}

TEST_CASE("logarithms go through casts that round no more than the result") {
    const Expr x = vector("x");
    CHECK(stabilized(log(cast(exp(x), float64))) == "cast(x)");
    CHECK(stabilized(log(cast(exp(cast(x, float64)), float32))) == "x");
    for (const DType half : {bfloat16, float16}) {
        CHECK(stabilized(log(cast(cast(exp(x), half), float32))) == "log(cast(cast(exp(x))))");
        CHECK(stabilized(log(cast(cast(softmax(z), half), float32))) == "log(cast(cast(softmax(z))))");
    }
    const Expr wide = exp(cast(x, float64));
    CHECK(stabilized(log(cast(cast(wide, float32), float64))) == "log(cast(cast(exp(cast(x)))))");
}

TEST_CASE("logarithms of softmax") {
    CHECK(stabilized(log(softmax(z))) == "log_softmax(z)");
    CHECK(stabilized(-sum(t * log(softmax(z)))) == "neg(sum(mul(t, log_softmax(z))))");
    CHECK(stabilized(log(transpose(softmax(z)))) == "permute(log_softmax(z))");
    CHECK(stabilized(log(flatten(softmax(z), 1))) == "reshape(log_softmax(z))");
    CHECK(stabilized(log(softmax(z)[Slice{0, 2}])) == "slice(log_softmax(z))");
    CHECK(stabilized(exp(log_softmax(z))) == "softmax(z)");
}

TEST_CASE("crossentropies of softmax and sigmoid take the logits") {
    const Expr y = vector("y", int32);
    CHECK(stabilized(categorical_crossentropy(softmax(z), y)) == "softmax_crossentropy_labels(z, y)");
    CHECK(stabilized(categorical_crossentropy(softmax(z), t)) == "softmax_crossentropy_dense(z, t)");
    CHECK(stabilized(categorical_crossentropy(softmax(z, 0), y)) == "neg(pick(log_softmax(z), y))");
    const std::string binary = stabilized(binary_crossentropy(sigmoid(z), t));
    CHECK_THAT(binary, ContainsSubstring("softplus(neg(z))") && ContainsSubstring("softplus(z)"));
    CHECK_THAT(binary, !ContainsSubstring("log("));
}

TEST_CASE("a sum of exponentials does not overflow, and is shifted once") {
    const Expr v = input(float32, Dims{3}, "v");
    const Expr e = log(sum(exp(v)));
    CHECK(wide_value(e, v, Array(std::vector<float>{1000, 1000, 1000})) == Approx(1000 + std::log(3.0)));
    CHECK(std::isinf(wide_value(e, v, Array(std::vector<float>{-INFINITY, -INFINITY, -INFINITY}))));
    CHECK(wide_value(e, v, Array(std::vector<float>{0, 1, INFINITY})) == INFINITY);
    const Nodes once = canonicalize_and_stabilize({e.node()}, {});
    CHECK(canonicalize_and_stabilize(once, {})[0] == once[0]);
    // With the gradient's stop gone, too.
    CHECK_NOTHROW(optimized(e));
    const Expr own = log(sum(exp(v - max(v)))) + max(v);
    CHECK(stabilized(own) == "add(logsumexp(sub(v, max(v))), max(v))");
}

TEST_CASE("barriers keep the graph in which gradients are asked for") {
    const Expr p = softmax(z), e = log(p);
    const std::unordered_set<const Node*> barriers = {p.node().get()};
    CHECK(canonicalize_and_stabilize({e.node()}, barriers)[0] == e.node());
    const Expr w = z * 1, f = exp(w) - 1;
    const Nodes kept = canonicalize_and_stabilize({f.node()}, {w.node().get()});
    CHECK(kept[0]->inputs[0] == w.node());
    CHECK(text_of(kept[0]) == "expm1(mul(z, 1))");
}

TEST_CASE("rules are switched off by name") {
    Options off = options();
    off.disabled = {"log-softmax", "logarithm"};
    const ScopedOptions scope(off);
    CHECK(stabilized(log(softmax(z))) == "log(softmax(z))");
}
