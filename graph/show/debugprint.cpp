// Graphs as indented text.
#include "graph/show/debugprint.h"

#include <algorithm>
#include <unordered_map>

#include "graph/base/lines.h"
#include "graph/base/text.h"
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

}  // namespace

std::string debugprint(const Nodes& roots) {
    std::string text;
    std::unordered_map<const Node*, std::size_t> numbers;
    struct Item {
        const Node* node;
        std::size_t depth;
    };
    std::vector<Item> stack;
    for (auto root = roots.rbegin(); root != roots.rend(); ++root) stack.push_back({root->get(), 0});
    while (!stack.empty()) {
        const auto [node, depth] = stack.back();
        stack.pop_back();
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

}  // namespace bitale
