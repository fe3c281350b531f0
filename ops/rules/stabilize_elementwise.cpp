// Elementwise functions that cancel or overflow.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

std::vector<Rule> stabilize_elementwise_rules() {
    const Pattern x = any("x");
    const auto t = Tag::stabilizes;
    return {
        {"log1p", log(x + 1), log1p(x), t},
        {"log1p-minus", log(1 - x), log1p(-x), t},
        {"expm1", exp(x) - 1, expm1(x), t},
        {"softplus", log1p(exp(x)), softplus(x), t},
        {"log-exp", log(exp(x)), x, t},
        {"sqrt-sqr", sqrt(sqr(x)), abs(x), t},
        {"sigmoid", reciprocal(exp(-x) + 1), sigmoid(x), t},
        {"sigmoid-minus", reciprocal(exp(x) + 1), sigmoid(-x), t},
        {"one-minus-sigmoid", 1 - sigmoid(x), sigmoid(-x), t},
        {"log-sigmoid", log(sigmoid(x)), -softplus(-x), t},
    };
}

}  // namespace bitale
