// Idioms: the same value from a cheaper op. Only after gradients have been taken, which differ at ties.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

std::vector<Rule> idiom_rules() {
    const Pattern x = any("x");
    return {
        {"relu", maximum(x, 0), relu(x)},
        // Of 0 and -0 the first is the maximum.
        {"relu-first", maximum(0, x), relu(x), Tag::reassociates},
    };
}

}  // namespace bitale
