// Choices, negations and ops that change nothing the second time.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

Condition of_booleans(const Pattern& x) {
    return [x](const Match& m) { return m[x]->type.dtype == boolean; };
}

// f(f(x)) = f(x)
Rule idempotent(const char* op) {
    const Pattern x = any("x"), once = Pattern::apply(op, {x});
    return {std::string("twice-") + op, Pattern::apply(op, {once}), once};
}

// Rounding of integers.
Rule identity_on_integers(const char* op) {
    const Pattern x = any("x");
    return {std::string(op) + "-integer", Pattern::apply(op, {x}), x, Tag::exact, of_integers(x)};
}

}  // namespace

std::vector<Rule> logic_rules() {
    const Pattern x = any("x"), y = any("y"), c = any("c");
    std::vector<Rule> rules = {
        {"where-true", where(1, x, y), x},
        {"where-false", where(0, x, y), y},
        {"where-same", where(c, x, x), x},
        {"where-not", where(logical_not(c), x, y), where(c, y, x), Tag::exact, of_booleans(c)},
        {"not-not", logical_not(logical_not(x)), x, Tag::exact, of_booleans(x)},
        {"and-self", bitwise_and(x, x), x},
        {"or-self", bitwise_or(x, x), x},
        {"and-true", logical_and(x, 1), x, Tag::exact, of_booleans(x)},
        {"and-false", logical_and(x, 0), 0},
        {"or-false", logical_or(x, 0), x, Tag::exact, of_booleans(x)},
        {"or-true", logical_or(x, 1), 1},
    };
    for (const char* op : {"relu", "sign", "floor", "ceil", "trunc", "round"})
        rules.push_back(idempotent(op));
    for (const char* op : {"floor", "ceil", "trunc", "round"}) rules.push_back(identity_on_integers(op));
    return rules;
}

}  // namespace bitale
