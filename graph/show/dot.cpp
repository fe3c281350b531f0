// Graphs as Graphviz text.
#include "graph/show/dot.h"

#include <initializer_list>
#include <string>
#include <unordered_map>

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
    std::string s = node.name.empty() ? node.op->name : node.name;
    if (!node.name.empty() && node.op->kind != OpKind::leaf) s += " = " + node.op->name;
    return label({s, text_of(node.type), node.where.line ? node.where.text() : ""});
}

const char* style_of(const Node& node) {
    if (node.op->kind == OpKind::leaf) return node.op == constant_op() ? "shape=plaintext" : "style=rounded";
    return node.op->kind == OpKind::reduce ? "style=bold"
           : node.op->kind == OpKind::view ? "style=dashed"
                                           : "style=solid";
}

}  // namespace

std::string graphviz(const Nodes& roots) {
    std::string text = "digraph bitale {\n    node [shape=box, fontname=\"monospace\"];\n";
    std::unordered_map<const Node*, std::string> names;
    for (const NodePtr& node : topological(roots)) {
        const std::string name = "n" + std::to_string(names.size());
        names.emplace(node.get(), name);
        text += "    " + name + " [" + style_of(*node) + ", label=" + label_of(*node) + "];\n";
        const bool ordered = node->inputs.size() > 1 && !(node->op->map && node->op->map->commutative);
        for (std::size_t i = 0; i < node->inputs.size(); ++i) {
            text += "    " + names.at(node->inputs[i].get()) + " -> " + name;
            text += ordered ? " [label=" + std::to_string(i) + "];\n" : ";\n";
        }
    }
    for (std::size_t i = 0; i < roots.size(); ++i)
        text += "    out" + std::to_string(i) + " [shape=plaintext, label=\"output " + std::to_string(i) +
                "\"];\n    " + names.at(roots[i].get()) + " -> out" + std::to_string(i) + ";\n";
    return text + "}\n";
}

}  // namespace bitale
