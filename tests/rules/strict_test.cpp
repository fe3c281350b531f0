// math=strict: which rules are held back, and that this is known; and what is said of names in disable= that
// nothing has.
#include <set>

#include "ops/registry.h"
#include "tests/rules/instantiate.h"
#include "tests/rules/text.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

Options strict() {
    Options o = options();
    o.strict_math = true;
    return o;
}

Options without(const std::string& name) {
    Options o = options();
    o.disabled = {name};
    return o;
}

bool rounds_elsewhere(Tag tag) { return tag == Tag::reassociates || tag == Tag::skips_zeros; }

const std::vector<const RuleSet*>& all_sets() {
    static const RuleSet winners = winner_rules();
    static const std::vector<const RuleSet*> sets = {&forget_rules(),
                                                     &canonicalize_rules(),
                                                     &stabilize_rules(),
                                                     &decompose_rules(),
                                                     &specialize_rules(),
                                                     &separate_rules(),
                                                     &winners};
    return sets;
}

// The rules that round elsewhere, among those that a graph met.
std::set<std::string> met(const Nodes& roots) {
    std::set<std::string> held;
    for (const RuleSet* set : all_sets())
        for (const Rule& rule : set->rules)
            if (rounds_elsewhere(rule.tag)) held.insert(rule.name);
    std::set<std::string> names;
    for (const NodePtr& node : topological(roots))
        for (const std::string& rule : node->rules)
            if (held.contains(rule)) names.insert(rule);
    return names;
}

// An instance of the rule's pattern, if the draw has one.
NodePtr instance_of(const Rule& rule, unsigned seed) {
    fuzz::Instantiator instantiator(seed);
    if (rule.name == "sum-columns-first")  // short rows are left as they are
        return fuzz::sum_of_columns(instantiator, [](Shape shape) {
            return make_input({float32, std::move(shape)}, "x", {});
        });
    if (rule.name.ends_with("-of-stack"))
        return fuzz::reduced_stack(rule.name, instantiator, [](Shape shape) {
            return make_input({float32, std::move(shape)}, "x", {});
        });
    try {
        return instantiator.instance(rule.pattern);
    } catch (const std::exception&) {
        return nullptr;
    }
}

// Holds the rule back from the node, alone and among the others of its set; whether there was something to
// hold back.
bool held_back(const RuleSet& set, const Rule& rule, const NodePtr& node) {
    const ScopedOptions scope(strict());
    std::set<std::string> names;
    RewriteOptions how;
    how.held_back = &names;
    REQUIRE(rewrite({node}, {set.name, {rule}, set.adapt}, how)[0] == node);
    REQUIRE(met(rewrite({node}, set)).empty());
    return names == std::set<std::string>{rule.name};
}

std::string message_of(const std::string& disabled) {
    const ScopedOptions scope(without(disabled));
    try {
        check_disabled();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("every rule that rounds elsewhere is applied to its instances, and held back under math=strict") {
    for (const RuleSet* set : all_sets())
        for (const Rule& rule : set->rules) {
            if (!rounds_elsewhere(rule.tag)) continue;
            INFO(set->name << ", rule " << rule.name);
            int applied = 0;
            for (unsigned seed = 1; seed < 3000 && applied < 5; ++seed) {
                const NodePtr node = instance_of(rule, seed);
                if (!node) continue;
                const NodePtr made = rule.apply(node);
                const bool applies = made && (made->type == node->type || repeated_to(made, node->type, {}));
                const bool held = held_back(*set, rule, node);
                REQUIRE((held || !applies));
                applied += applies;
            }
            CHECK(applied == 5);
        }
}

TEST_CASE("under math=strict an expression keeps its roundings, and zeros their signs") {
    const Expr x = vector("x"), image = input(float32, Dims{-1, 4, 8, 8}, "image");
    CHECK(optimized(x * 3 * 5) == "mul(x, 15)");
    CHECK(optimized(x + 0.0) == "x");
    CHECK(optimized(pow(x, 2)) == "sqr(x)");
    const ScopedOptions scope(strict());
    CHECK(optimized(x * 3 * 5) == "mul(mul(x, 3), 5)");
    CHECK(optimized(x + 0.0) == "add(x, 0)");
    CHECK(optimized(pow(x, 2)) == "pow(x, 2)");
    CHECK(optimized(max_pool(relu(image), {2, 2})) == "max_pool(relu(image))");
    // What changes no bit, and what makes numbers of infinities, is done.
    CHECK(optimized(x * 1 - -x) == "add(x, x)");
    CHECK(optimized(log(1 + exp(x))) == "softplus(x)");
}

TEST_CASE("the graph of a network and its gradients tells what was held back from it") {
    const Expr x = vector("x"), w = input(float32, Dims{6, 4, 3, 3}, "w"),
               image = input(float32, Dims{-1, 4, 8, 8}, "image"), six = input(float32, Dims{6}, "six");
    const Expr cost = mean(sqr(max_pool(relu(conv2d(image, w) + channel(six)), {2, 2})) * 3 * 0.1);
    const Expr gradient = grad(cost, w);
    const Graph usual = optimized_graph({cost, gradient});
    CHECK_FALSE(met(usual.roots()).empty());
    CHECK(usual.held_back.empty());
    const ScopedOptions scope(strict());
    const Graph graph = optimized_graph({cost, grad(cost, w)});
    CHECK(met(graph.roots()).empty());
    CHECK(graph.held_back.contains("max-pool-relu"));
    CHECK(graph.held_back.contains("mul-constants"));
    CHECK(optimized_graph({x + x}).held_back.empty());
}

TEST_CASE("rules are switched off by tag") {
    const Expr x = vector("x");
    {
        const ScopedOptions scope(without("reassociates"));
        CHECK(optimized(x * 3 * 5) == "mul(mul(x, 3), 5)");
        CHECK(optimized(x * 1) == "x");
        CHECK(optimized_graph({x * 3 * 5}).held_back.empty());  // whoever disables a rule knows it
    }
    const ScopedOptions scope(without("stabilizes"));
    CHECK(optimized(log(1 + exp(x))) == "log(add(1, exp(x)))");
    CHECK(optimized(x * 3 * 5) == "mul(x, 15)");
}

TEST_CASE("names in disable= that nothing has are errors with names like them") {
    for (const char* name : {"log-softmax", "conv-grad-w-unpool", "constant-fold", "stabilizes",
                             "skips_zeros", "exact", "mask-by-dropout", "specialize", "onednn", "cudnn"})
        CHECK(message_of(name) == "");
    CHECK_THAT(
        message_of("log-sofmax"),
        ContainsSubstring("BITALE_FLAGS: disable=\"log-sofmax\" is no rule, tag of rules, pass or library; "
                          "names like it are \"log-softmax\"") &&
            ContainsSubstring("BITALE_DEBUG=3"));
    CHECK_THAT(message_of("stabilises"), ContainsSubstring("like it are \"stabilizes\""));
    CHECK_THAT(message_of("crossentropy"), ContainsSubstring("\"crossentropy-dense\""));
    const std::string far = message_of("wednesday\n");
    CHECK_THAT(far,
               ContainsSubstring("disable=\"wednesday\\n\" is no rule") && !ContainsSubstring("names like"));
    for (const char* name : {"import", "decompose", "decomposition", "collect-checks"})
        CHECK_THAT(message_of(name), ContainsSubstring("no function can be compiled without"));
    const Expr x = vector("x");
    const ScopedOptions scope(without("fuse"));
    CHECK_THROWS_AS(grad(sum(x), x), Error);
}
