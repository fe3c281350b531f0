// Elementwise functions that cancel or overflow. What a rule needs for finite results it computes again where
// it has other users; 1 - sigmoid(x), which only loses digits, is left alone then.
#include <numbers>

#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

bool has_exponential(const NodePtr& x, int depth = 3) {
    return is_named(x, {"exp", "expm1"}) ||
           (depth > 0 && std::any_of(x->inputs.begin(), x->inputs.end(), [&](const NodePtr& input) {
                return has_exponential(input, depth - 1);
            }));
}

}  // namespace

std::vector<Rule> stabilize_elementwise_rules() {
    const Pattern x = any("x"), y = any("y");
    const auto t = Tag::stabilizes;
    const Condition masks = [x](const Match& m) {
        return m[x]->type.dtype == boolean && is_float(m.root()->type.dtype);
    };
    return {
        {"log1p", log((x + 1).again()), log1p(x), t},
        {"log1p-minus", log((1 - x).again()), log1p(-x), t},
        {"expm1", exp(x).again() - 1, expm1(x), t},
        {"expm1-minus", 1 - exp(x).again(), -expm1(x), t},
        {"exp-of-expm1", expm1(x).again() + 1, exp(x), t},
        {"softplus", log1p(exp(x).again()), softplus(x), t},
        {"log-exp", log(exp(x)), x, t},
        {"sqrt-sqr", sqrt(sqr(x).again()), abs(x), t},
        {"sigmoid", reciprocal((exp(-x) + 1).again()), sigmoid(x), t},
        {"sigmoid-minus", reciprocal((exp(x) + 1).again()), sigmoid(-x), t},
        {"one-minus-sigmoid", 1 - sigmoid(x), sigmoid(-x), t},
        // 0 * inf and 0 * nan are 0 then, as is wanted of masks and one-hot targets.
        {"mask", cast(x) * y, where(x, y, 0), t, masks},
        {"mask-quotient", cast(x) / y, where(x, 1 / y, 0), t, masks},
        // exp(y) / (exp(y) + 1) and others of their kind have rules of their own.
        {"quotient-by-logistic", x / (exp(y) + 1).again(), x * sigmoid(-y), t,
         [x](const Match& m) { return !has_exponential(m[x]); }},
        {"tanh-sigmoid", 2 * sigmoid(x) - 1, tanh(x * 0.5), t},
        {"tanh-one-minus-sigmoid", 1 - 2 * sigmoid(x), tanh(x * -0.5), t},
        {"tanh-ratio", sinh(x).again() / cosh(x).again(), tanh(x), t},
        {"tanh-inverse", cosh(x).again() / sinh(x).again(), 1 / tanh(x), t},
        {"log-sinh", log(sinh(x)), x + log1mexp(-2 * x) - std::numbers::ln2, t},
        {"log-cosh", log(cosh(x)), logcosh(x), t},
        {"log-one-minus-sqr-tanh", log1p(-sqr(tanh(x))), -2 * logcosh(x), t},
        {"log-one-minus-sigmoid", log1p((-sigmoid(x)).again()), -softplus(x), t},
        {"log-sigmoid", log(sigmoid(x).again()), -softplus(-x), t},
    };
}

}  // namespace bitale
