// Graphs as indented text.
#include "graph/show/debugprint.h"

#include <algorithm>
#include <unordered_map>

#include "graph/base/lines.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {

constexpr std::size_t deepest_indent = 40;

std::string attributes_of(const Node& node) {
    std::string s;
    for (const auto& [name, value] : node.attributes.entries()) {
        if (name == "symbol" || name == "shared") continue;
        s += (s.empty() ? "{" : ", ") + name + " = ";
        const auto* array = std::get_if<std::shared_ptr<const Array>>(&value);
        // The type stands beside it already.
        s += array ? (*array)->text().substr((*array)->text().find('{')) : text_of(value);
    }
    return s.empty() ? s : " " + s + "}";
}

std::string line_of(const Node& node) {
    std::string s = title_of(node) + " " + text_of(node.type);
    if (!node.name.empty()) s += " " + in_quotes(node.name);
    s += attributes_of(node);
    s += at_line(node.where);
    for (const std::string& rule : node.rules) s += " <- " + rule;
    return s;
}

// `labels`: a line before each root, or none.
std::string text_of(const Nodes& roots, const std::vector<std::string>& labels) {
    std::string text;
    std::unordered_map<const Node*, std::size_t> numbers;
    struct Item {
        const Node* node;
        std::size_t depth;
    };
    std::vector<Item> stack;
    for (auto root = roots.rbegin(); root != roots.rend(); ++root) stack.push_back({root->get(), 0});
    auto label = labels.begin();
    while (!stack.empty()) {
        const auto [node, depth] = stack.back();
        stack.pop_back();
        if (depth == 0 && label != labels.end()) text += *label++ + "\n";
        text += std::string(2 * std::min(depth, deepest_indent), ' ');
        if (depth > deepest_indent) text += "(depth " + std::to_string(depth) + ") ";
        const auto [at, first] = numbers.emplace(node, numbers.size() + 1);
        text += "#" + std::to_string(at->second) + " ";
        text += first ? line_of(*node) : "(" + title_of(*node) + " above)";
        text += "\n";
        if (!first) continue;
        for (auto input = node->inputs.rbegin(); input != node->inputs.rend(); ++input)
            stack.push_back({input->get(), depth + 1});
    }
    return text;
}

}  // namespace

std::string debugprint(const Nodes& roots) { return text_of(roots, {}); }

std::string debugprint(const Graph& graph) {
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < graph.outputs.size(); ++i)
        labels.push_back("output " + std::to_string(i) + ":");
    for (const SharedUpdate& update : graph.updates)
        labels.push_back("new value of " + in_quotes(update.target->name) + ":");
    for (const Check& check : graph.checks)
        labels.push_back(title_of(check) + " must be in [" + check.low.text() + ", " + check.high.text() +
                         "):");
    return text_of(graph.roots(), labels);
}

}  // namespace bitale
