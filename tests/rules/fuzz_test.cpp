// Every rule against the oracle: both sides of random instances must agree as the rule's tag says.
#include <algorithm>
#include <cmath>
#include <set>

#include "ops/oracle/wide.h"
#include "ops/registry.h"
#include "ops/rules/rules.h"
#include "tests/rules/instantiate.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

std::vector<Rule> all_rules() {
    std::vector<Rule> rules;
    std::set<std::pair<std::string, std::string>> seen;
    for (const RuleSet* set : {&forget_rules(), &canonicalize_rules(), &stabilize_rules(), &decompose_rules(),
                               &specialize_rules()})
        for (const Rule& rule : set->rules)
            if (seen.insert({rule.name, rule.pattern.text()}).second) rules.push_back(rule);
    for (const Rule& rule : winner_rules().rules) rules.push_back(rule);
    return rules;
}

// `error`: how far computing in the dtypes may be off, which a sum that cancels has of its summands.
bool near(double a, double b, double error) {
    return std::abs(a - b) <= 1e-6 * (1 + std::max(std::abs(a), std::abs(b))) + 4 * error;
}

// Whether element `now` may stand for element `before` under the tag.
bool allowed(Tag tag, double before, double now, double error) {
    if (std::isnan(before) && std::isnan(now)) return true;
    if (before == now && (std::signbit(before) == std::signbit(now) || tag != Tag::exact)) return true;
    if (tag == Tag::exact) return false;
    if (tag == Tag::stabilizes) {
        if (std::isnan(before)) return true;
        if (std::isinf(before)) return !std::isnan(now);
    }
    if (tag == Tag::skips_zeros && std::isnan(before)) return true;
    return std::isfinite(before) && std::isfinite(now) && near(before, now, error);
}

// What the host computes in double is as far from the wide result as what a device computes.
bool is_folded(const Rule& rule, double before, double now, double error) {
    return rule.name == "constant-fold" && std::abs(before - now) <= 4 * error;
}

// Empty, or where and how the two differ.
std::string difference(const Rule& rule, const WideValue& before, const WideValue& now) {
    const Array a = before.rounded(), b = now.rounded();
    if (a.dtype() != b.dtype() || a.shape() != b.shape())
        return "types differ: " + a.text() + " and " + b.text();
    if (rule.tag == Tag::exact && !is_float(a.dtype()))
        return same(a, b) ? "" : a.text() + " became " + b.text();
    for (std::int64_t i = 0; i < a.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto error = static_cast<double>(before.error(at) + now.error(at));
        if (!allowed(rule.tag, a.at(i), b.at(i), error) && !is_folded(rule, a.at(i), b.at(i), error))
            return "element " + std::to_string(i) + ": " + text_of(Attribute(a.at(i))) + " became " +
                   text_of(Attribute(b.at(i)));
    }
    return "";
}

// What these replace may be a number by way of infinity, which is not what it should be: exp(1) / exp(1000)
// for one; or of rounding, as log(1 - exp(1e-38)), which is -inf for NaN.
bool may_be_a_wrong_number(const Rule& rule) {
    static const std::set<std::string> names = {
        "softmax-quotient", "softmax-product",     "log-softmax-difference",
        "sigmoid-quotient", "sigmoid-product",     "tanh-quotient",
        "tanh-expm1",       "logarithm-of-rest",   "log1mexp",
        "log-expm1",        "binary-crossentropy", "logarithm"};
    return names.contains(rule.name);
}

enum class Outcome : std::uint8_t { no_instance, no_match, agrees };

Outcome try_rule(const Rule& rule, unsigned seed) {
    fuzz::Instantiator instantiator(seed);
    NodePtr node;
    try {
        node = instantiator.instance(rule.pattern);
    } catch (const std::exception&) {
        return Outcome::no_instance;
    }
    NodePtr made = rule.apply(node);
    if (made && made->type != node->type) made = repeated_to(made, node->type, {});
    if (!made) return Outcome::no_match;
    const bool every_value =
        rule.tag == Tag::exact || (rule.tag == Tag::stabilizes && !may_be_a_wrong_number(rule));
    const fuzz::Values values = every_value ? fuzz::Values::everything : fuzz::Values::no_infinities;
    const auto leaves = instantiator.leaf_values(values);
    std::vector<WidePtr> results;
    try {
        results = evaluate_wide({node, made}, leaves);
    } catch (const Error&) {
        return Outcome::no_instance;  // a label out of range, a maximum of nothing
    }
    INFO("rule " << rule.name << ", seed " << seed << ": " << describe(*node));
    for (const auto& [leaf, value] : leaves) UNSCOPED_INFO(leaf->name << " = " << value.text());
    REQUIRE(difference(rule, *results[0], *results[1]) == "");
    return Outcome::agrees;
}

void fuzz_all(int enough, unsigned most_tries, unsigned first_seed) {
    for (const Rule& rule : all_rules()) {
        DYNAMIC_SECTION(rule.name << ": " << rule.pattern.text()) {
            int agreed = 0;
            for (unsigned seed = first_seed; agreed < enough && seed < first_seed + most_tries; ++seed)
                agreed += try_rule(rule, seed) == Outcome::agrees;
            CHECK(agreed == enough);
        }
    }
}

}  // namespace

TEST_CASE("every rule agrees with the oracle") { fuzz_all(60, 20'000, 1); }

TEST_CASE("every rule agrees with the oracle, at length", "[slow]") { fuzz_all(2'000, 400'000, 1'000'000); }

TEST_CASE("rules have names of their own") {
    for (const RuleSet* set : {&canonicalize_rules(), &specialize_rules(), &stabilize_rules()}) {
        std::set<std::string> names;
        for (const Rule& rule : set->rules)
            if (rule.name != "constant-fold") CHECK(names.insert(rule.name).second);
    }
}
