// Elementwise functions that cancel or overflow. What a rule needs for finite results it computes again where
// it has other users; 1 - sigmoid(x), which only loses digits, is left alone then.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

std::vector<Rule> stabilize_elementwise_rules() {
    const Pattern x = any("x"), y = any("y");
    const auto t = Tag::stabilizes;
    return {
        {"log1p", log((x + 1).again()), log1p(x), t},
        {"log1p-minus", log((1 - x).again()), log1p(-x), t},
        {"expm1", exp(x).again() - 1, expm1(x), t},
        {"expm1-minus", 1 - exp(x).again(), -expm1(x), t},
        {"softplus", log1p(exp(x).again()), softplus(x), t},
        {"log-exp", log(exp(x)), x, t},
        {"sqrt-sqr", sqrt(sqr(x).again()), abs(x), t},
        {"sigmoid", reciprocal((exp(-x) + 1).again()), sigmoid(x), t},
        {"sigmoid-minus", reciprocal((exp(x) + 1).again()), sigmoid(-x), t},
        {"one-minus-sigmoid", 1 - sigmoid(x), sigmoid(-x), t},
        // 0 * inf and 0 * nan are 0 then, as is wanted of masks and one-hot targets.
        {"mask", cast(x) * y, where(x, y, 0), t,
         [x](const Match& m) { return m[x]->type.dtype == boolean && is_float(m.root()->type.dtype); }},
        {"log-one-minus-sigmoid", log1p((-sigmoid(x)).again()), -softplus(x), t},
        {"log-sigmoid", log(sigmoid(x).again()), -softplus(-x), t},
    };
}

}  // namespace bitale
