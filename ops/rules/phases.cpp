#include "ops/rules/phases.h"

#include <set>
#include <string>
#include <vector>

#include "bitale/error.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/rewrite/driver.h"
#include "graph/rewrite/pass.h"
#include "graph/walk/equal_lengths.h"
#include "graph/walk/import.h"
#include "graph/walk/verify.h"
#include "ops/rules/dropout_masks.h"
#include "ops/rules/join_axes.h"
#include "ops/rules/rules.h"

namespace bitale {

namespace {

Pass rule_pass(const RuleSet& set, Interner& interner) {
    return {set.name,
            [&](Graph& graph) {
                graph.set_roots(rewrite(graph.roots(), set, {&interner, nullptr, &graph.held_back}));
            },
            [&](const Graph& graph) {
                verify_normal_form(graph.roots(), set, {&interner, nullptr});
            }};
}

std::vector<Pass> passes_of(Interner& interner) {
    return {
        {"equal-lengths", merge_equal_lengths, nullptr, true},
        {"import", [&](Graph& g) { import(g, interner); }, verify_merged},
        {"collect-checks", collect_checks},
        rule_pass(forget_rules(), interner),
        rule_pass(canonicalize_rules(), interner),
        rule_pass(stabilize_rules(), interner),
        rule_pass(decompose_rules(), interner),
        rule_pass(specialize_rules(), interner),
        {"mask-by-dropout", mask_by_dropout},
        {"join-axes", join_axes},
        rule_pass(separate_rules(), interner),  // what could not be joined
    };
}

// Without these a graph is not what code generation takes, or indices are not checked.
const std::set<std::string>& needed() {
    static const std::set<std::string>& names =
        *new std::set<std::string>{"import", "collect-checks", "decompose", "decomposition"};
    return names;
}

std::set<std::string> listed_names() {
    std::set<std::string> names{"onednn", "lapack", "cudnn", "one-hot-sums", "exact-products"};
    for (const Tag tag : {Tag::exact, Tag::stabilizes, Tag::reassociates, Tag::skips_zeros})
        names.insert(name_of(tag));
    const RuleSet winners = winner_rules();
    for (const RuleSet* set : {&forget_rules(), &canonicalize_rules(), &stabilize_rules(), &decompose_rules(),
                               &specialize_rules(), &separate_rules(), &winners})
        for (const Rule& rule : set->rules) names.insert(rule.name);
    Interner interner;
    for (const Pass& pass : passes_of(interner)) names.insert(pass.name);
    for (const std::string& name : needed()) names.erase(name);
    return names;
}

// What disable= may say.
const std::set<std::string>& names_to_disable() {
    static const std::set<std::string>& names = *new std::set<std::string>(listed_names());
    return names;
}

}  // namespace

void check_disabled() {
    if (options().disabled.empty()) return;
    const std::set<std::string>& known = names_to_disable();
    for (const std::string& name : options().disabled) {
        if (known.contains(name)) continue;
        const std::string said = "BITALE_FLAGS: disable=" + in_quotes(name);
        if (needed().contains(name))
            throw Error(said + " would leave out what no function can be compiled without");
        std::string like;
        for (const std::string& other : names_like(name, known))
            like += (like.empty() ? "; names like it are " : ", ") + in_quotes(other);
        throw Error(said + " is no rule, tag of rules, pass or library" + like +
                    "; BITALE_DEBUG=3 shows the passes and the rules that an expression meets");
    }
}

Nodes canonicalize_and_stabilize(const Nodes& roots, const std::unordered_set<const Node*>& barriers) {
    check_disabled();
    const RewriteOptions how{nullptr, &barriers};
    Nodes results = roots;
    for (const RuleSet* set : {&canonicalize_rules(), &stabilize_rules()})
        if (options().enabled(set->name)) results = rewrite(results, *set, how);
    return results;
}

void optimize(Graph& graph) {
    Interner interner;
    run_passes(graph, passes_of(interner));
    if (options().verifies()) verify_primitive(graph);
}

}  // namespace bitale
