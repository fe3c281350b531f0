// Operands that do nothing, and those that decide alone.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

std::vector<Rule> neutral_rules() {
    const Pattern x = any("x");
    return {
        {"add-zero-integer", x + 0, x, Tag::exact, of_integers(x)},
        {"add-negative-zero", x + -0.0, x},
        // -0 + 0 is 0: only the sign of a zero.
        {"add-zero", x + 0, x, Tag::reassociates, of_floats(x)},
        {"sub-zero", x - 0, x},
        {"sub-self-integer", x - x, 0, Tag::exact, of_integers(x)},
        {"mul-one", x * 1, x},
        {"mul-zero-integer", x * 0, 0, Tag::exact, of_integers(x)},
        {"div-one", x / 1, x},
        {"pow-one", pow(x, 1), x},
        {"maximum-self", maximum(x, x), x},
        {"minimum-self", minimum(x, x), x},
    };
}

}  // namespace bitale
