#include "ops/rules/phases.h"

#include "graph/base/options.h"
#include "graph/rewrite/driver.h"
#include "graph/rewrite/pass.h"
#include "graph/walk/import.h"
#include "graph/walk/verify.h"
#include "ops/rules/dropout_masks.h"
#include "ops/rules/rules.h"

namespace bitale {

namespace {

Pass rule_pass(const RuleSet& set, Interner& interner) {
    const RewriteOptions how{&interner, nullptr};
    return {set.name, [&set, how](Graph& graph) { graph.set_roots(rewrite(graph.roots(), set, how)); },
            [&set, how](const Graph& graph) { verify_normal_form(graph.roots(), set, how); }};
}

}  // namespace

Nodes canonicalize_and_stabilize(const Nodes& roots, const std::unordered_set<const Node*>& barriers) {
    const RewriteOptions how{nullptr, &barriers};
    Nodes results = roots;
    for (const RuleSet* set : {&canonicalize_rules(), &stabilize_rules()})
        if (options().enabled(set->name)) results = rewrite(results, *set, how);
    return results;
}

void optimize(Graph& graph) {
    Interner interner;
    run_passes(graph, {
                          {"import", [&](Graph& g) { import(g, interner); }, verify_merged},
                          {"collect-checks", collect_checks},
                          rule_pass(forget_rules(), interner),
                          rule_pass(canonicalize_rules(), interner),
                          rule_pass(stabilize_rules(), interner),
                          rule_pass(decompose_rules(), interner),
                          rule_pass(specialize_rules(), interner),
                          {"mask-by-dropout", mask_by_dropout},
                      });
    if (options().verifies()) verify_primitive(graph);
}

}  // namespace bitale
