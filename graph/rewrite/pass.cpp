#include "graph/rewrite/pass.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "graph/base/atomic_file.h"
#include "graph/base/log.h"
#include "graph/base/numbers.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "graph/walk/verify.h"

namespace bitale {

namespace {

std::string line_of(const Node& node, const std::unordered_map<const Node*, std::size_t>& numbers) {
    std::string s = "%" + std::to_string(numbers.at(&node)) + " = " + node.op->name + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        s += (i ? ", %" : "%") + std::to_string(numbers.at(node.inputs[i].get()));
    s += ")";
    std::string attributes;
    for (const auto& [name, value] : node.attributes.entries())
        attributes += (attributes.empty() ? "" : ", ") + name + ": " + text_of(value);
    if (!attributes.empty()) s += " {" + attributes + "}";
    s += " : " + text_of(node.type);
    if (!node.name.empty()) s += " " + in_quotes(node.name);
    if (node.where.line) s += "  # " + node.where.text();
    for (const std::string& rule : node.rules) s += "; " + rule;
    return s;
}

void show(const Graph& graph, std::size_t number, const std::string& pass, std::string& before) {
    if (!logs(3) && graph.dump_folder.empty()) return;
    std::string now = listing(graph);
    if (now == before) return log(3, pass + ": unchanged");
    log(3, "graph of " + printable(graph.name) + " after " + pass + ":\n" + now);
    if (!graph.dump_folder.empty()) {
        dump_file(graph.dump_folder + "/pass_" + std::to_string(number) + "_" + pass + ".txt", now);
    }
    before = std::move(now);
}

std::vector<Type> root_types(const Graph& graph) {
    std::vector<Type> types;
    for (const NodePtr& root : graph.outputs) types.push_back(root->type);
    for (const SharedUpdate& update : graph.updates) types.push_back(update.value->type);
    return types;
}

bool are_kept(const std::vector<Type>& before, const std::vector<Type>& after, bool lengths_too) {
    return std::equal(
        before.begin(), before.end(), after.begin(), after.end(), [&](const Type& a, const Type& b) {
            return a.dtype == b.dtype && a.rank() == b.rank() && (!lengths_too || a.shape == b.shape);
        });
}

}  // namespace

std::string listing(const Graph& graph) {
    std::unordered_map<const Node*, std::size_t> numbers;
    std::string s;
    for (const NodePtr& node : topological(graph.roots())) {
        numbers.emplace(node.get(), numbers.size());
        s += line_of(*node, numbers) + "\n";
    }
    const auto root = [&](const std::string& what, const NodePtr& node) {
        s += what + " %" + std::to_string(numbers.at(node.get())) + "\n";
    };
    for (const NodePtr& output : graph.outputs) root("output", output);
    for (const SharedUpdate& update : graph.updates)
        root("update " + in_quotes(update.target->name) + " =", update.value);
    for (const Check& check : graph.checks)
        root("check " + title_of(check) + " in [" + check.low.text() + ", " + check.high.text() + "):",
             check.value);
    return s;
}

void run_passes(Graph& graph, const std::vector<Pass>& passes) {
    using Clock = std::chrono::steady_clock;
    std::string before;
    if (options().verifies()) verify(graph);
    show(graph, 0, "start", before);
    for (std::size_t i = 0; i < passes.size(); ++i) {
        const Pass& pass = passes[i];
        if (!options().enabled(pass.name)) {
            log(3, pass.name + ": disabled");
            continue;
        }
        const std::vector<Type> types = root_types(graph);
        const Clock::time_point start = Clock::now();
        pass.run(graph);
        if (logs(3)) {
            const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
            log(3, pass.name + ": " + number_text(ms) + " ms, " +
                       std::to_string(topological(graph.roots()).size()) + " nodes");
        }
        show(graph, i + 1, pass.name, before);
        BITALE_CHECK(are_kept(types, root_types(graph), !pass.renames_lengths),
                     "pass " + pass.name + " changes the type of a result");
        if (!options().verifies()) continue;
        verify(graph);
        if (pass.establishes) pass.establishes(graph);
    }
}

}  // namespace bitale
