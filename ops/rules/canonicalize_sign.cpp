// Signs: minus signs move to the outside and meet there.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

std::vector<Rule> sign_rules() {
    const Pattern x = any("x"), y = any("y"), c = constant("c");
    return {
        {"neg-neg", -(-x), x},
        {"add-neg", x + -y, x - y},
        {"sub-neg", x - -y, x + y},
        {"mul-minus-one", x * -1, -x},
        {"mul-neg", x * -y, -(x * y)},
        {"div-neg-numerator", -x / y, -(x / y)},
        {"div-neg-denominator", x / -y, -(x / y)},
        {"neg-mul-constant", -(x * c), x * -c},
        {"abs-neg", abs(-x), abs(x), Tag::exact,
         [x](const Match& m) { return !is_unsigned_integer(m[x]->type.dtype); }},
        {"sqr-neg", sqr(-x), sqr(x)},
        {"abs-abs", abs(abs(x)), abs(x)},
        {"sqr-abs", sqr(abs(x)), sqr(x)},
    };
}

}  // namespace bitale
