#include "ops/rules/rules.h"

#include "ops/registry.h"
#include "ops/rules/algebra.h"

namespace bitale {

namespace {

std::vector<Rule> join(std::initializer_list<std::vector<Rule>> topics) {
    std::vector<Rule> rules;
    for (const std::vector<Rule>& topic : topics) rules.insert(rules.end(), topic.begin(), topic.end());
    return rules;
}

std::vector<Rule> canonical() {
    return join({neutral_rules(), sign_rules(), factor_rules(), logic_rules(), cast_rules(), view_rules(),
                 part_rules(), place_rules(), whole_power_rules(), sorted_rules(), round_trip_rules(),
                 repeat_rules(), reduce_rules(), constant_rules()});
}

RuleSet make_set(const char* name, std::vector<Rule> rules) {
    register_all_ops();  // patterns find their ops by name
    return {name, std::move(rules), repeated_to};
}

Rule decomposition() {
    return {"decomposition", Pattern::of_kind(OpKind::composite, "composite"),
            [](const Match& m) { return m.root()->op->decompose(m.root()); }, Tag::defines};
}

}  // namespace

const RuleSet& forget_rules() {
    const Pattern x = algebra::any("x");
    static const RuleSet& set =
        *new RuleSet(make_set("forget", {{"forget-disconnected-grad", algebra::disconnected_grad(x), x}}));
    return set;
}

const RuleSet& canonicalize_rules() {
    static const RuleSet& set = *new RuleSet(make_set("canonicalize", canonical()));
    return set;
}

const RuleSet& stabilize_rules() {
    static const RuleSet& set = *new RuleSet(
        make_set("stabilize", join({stabilize_elementwise_rules(), stabilize_softmax_rules(),
                                    stabilize_root_rules(), stabilize_crossentropy_rules(),
                                    stabilize_logarithm_rules(), stabilize_overflow_rules(), canonical()})));
    return set;
}

const RuleSet& decompose_rules() {
    static const RuleSet& set = *new RuleSet(make_set("decompose", join({{decomposition()}, canonical()})));
    return set;
}

const RuleSet& specialize_rules() {
    static const RuleSet& set = *new RuleSet(
        make_set("specialize", join({idiom_rules(), power_rules(), pooling_rules(), filter_rules(),
                                     lookup_rules(), order_rules(), stack_rules(), canonical()})));
    return set;
}

const RuleSet& separate_rules() {
    static const RuleSet& set = *new RuleSet(make_set("separate", column_rules()));
    return set;
}

}  // namespace bitale
