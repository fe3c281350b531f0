// Rewrites that would compute again what stays in use are refused.
#include "tests/rules/text.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

std::size_t count(const std::vector<Expr>& outputs, const std::string& op) {
    std::size_t n = 0;
    for (const NodePtr& node : topological(optimized_graph(outputs).outputs)) n += node->op->name == op;
    return n;
}

}  // namespace

TEST_CASE("a sigmoid that is used as it is is not computed again for what is left to 1") {
    const Expr x = vector("x"), y = vector("y");
    const Expr s = sigmoid(x);
    CHECK(optimized(s * (1 - s)) == "mul(sigmoid(x), sub(1, sigmoid(x)))");
    CHECK(optimized(1 - s) == "sigmoid(neg(x))");
    // A gated recurrent unit's step, and the derivative that autodiff writes.
    CHECK(count({(1 - s) * y + s * x}, "sigmoid") == 1);
    CHECK(count({s, grad(sum(s * y), x)}, "sigmoid") == 1);
    CHECK(count({s, 1 - s}, "sigmoid") == 1);
    // Where the result would be infinite, it is.
    CHECK(optimized(s * log(1 - s)) == "neg(mul(sigmoid(x), softplus(x)))");
    CHECK(optimized(s * log1p(-s)) == "neg(mul(sigmoid(x), softplus(x)))");
}

TEST_CASE("a reciprocal or a negative that is used as it is serves all") {
    const Expr x = vector("x"), y = vector("y");
    const Expr r = 1 / y;
    CHECK(count({r, x * r}, "div") == 0);
    CHECK(count({x * r}, "div") == 1);
    const Expr n = -y;
    CHECK(optimized_graph({n, x * n}).outputs[1]->op->name == "mul");
    CHECK(optimized_graph({x * n}).outputs[0]->op->name == "neg");
}

TEST_CASE("a sum of rows that is a result is not added up twice") {
    const Expr z = matrix("z"), rows = sum(z, {1});
    CHECK(optimized(sum(rows)) == "sum(z)");
    CHECK(text_of(optimized_graph({rows, sum(rows)}).outputs[1]) == "sum(sum(z))");
}
