// Graphs as Graphviz text.
#include "graph/show/dot.h"

#include <initializer_list>
#include <string>
#include <unordered_map>

#include "graph/base/lines.h"
#include "graph/base/text.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

// A label of Graphviz: lines are separated by \n, and a backslash or a quote of the text is shown as such.
std::string label(std::initializer_list<std::string> lines) {
    std::string text;
    for (const std::string& line : lines) {
        if (line.empty()) continue;
        if (!text.empty()) text += "\\n";
        for (const char c : printable(line)) {
            if (c == '"' || c == '\\') text += '\\';
            text += c;
        }
    }
    return "\"" + text + "\"";
}

std::string label_of(const Node& node) {
    std::string s = node.name.empty() ? title_of(node) : node.name;
    if (!node.name.empty() && node.op->kind != OpKind::leaf) s += " = " + title_of(node);
    return label(
        {s, text_of(node.type), node.where.line && !is_of_library(node.where) ? node.where.text() : ""});
}

const char* style_of(const Node& node) {
    if (node.op->kind == OpKind::leaf) return node.op == constant_op() ? "shape=plaintext" : "style=rounded";
    return node.op->kind == OpKind::reduce ? "style=bold"
           : node.op->kind == OpKind::view ? "style=dashed"
                                           : "style=solid";
}

}  // namespace

std::string graphviz(const Nodes& roots) { return graphviz(roots, {}); }

std::string graphviz(const Nodes& roots, const Clusters& clusters) {
    std::string text = "digraph bitale {\n    node [shape=box, fontname=\"monospace\"];\n", edges;
    std::unordered_map<const Node*, std::string> names;
    std::vector<std::string> inside(clusters.titles.size());
    for (const NodePtr& node : topological(roots)) {
        const std::string name = "n" + std::to_string(names.size());
        names.emplace(node.get(), name);
        const auto at = clusters.of.find(node.get());
        std::string& boxes = at == clusters.of.end() ? text : inside[static_cast<std::size_t>(at->second)];
        boxes += "    " + name + " [" + style_of(*node) + ", label=" + label_of(*node) + "];\n";
        const bool ordered = node->inputs.size() > 1 && !(node->op->map && node->op->map->commutative);
        for (std::size_t i = 0; i < node->inputs.size(); ++i) {
            edges += "    " + names.at(node->inputs[i].get()) + " -> " + name;
            edges += ordered ? " [label=" + std::to_string(i) + "];\n" : ";\n";
        }
    }
    for (std::size_t c = 0; c < inside.size(); ++c)
        if (!inside[c].empty())
            text += "    subgraph cluster_" + std::to_string(c + 1) +
                    " {\n    style=\"filled,rounded\"; fillcolor=\"#eef2f7\"; color=\"#8899aa\"; "
                    "fontname=\"monospace\"; label=" +
                    label({clusters.titles[c]}) + ";\n" + inside[c] + "    }\n";
    text += edges;
    for (std::size_t i = 0; i < roots.size(); ++i) {
        const std::string number = std::to_string(i),
                          name = i < clusters.roots.size() ? clusters.roots[i] : "output " + number;
        text += "    out" + number + " [shape=plaintext, label=" + label({name}) + "];\n    " +
                names.at(roots[i].get()) + " -> out" + number + ";\n";
    }
    return text + "}\n";
}

}  // namespace bitale
