// Graphs as Graphviz text.
#include "graph/show/dot.h"

#include <unordered_map>

#include "graph/walk/traverse.h"

namespace bitale {

namespace {

std::string quoted(const std::string& s) {
    std::string r = "\"";
    for (const char c : s) {
        if (c == '"' || c == '\\') r += '\\';
        if (c == '\n')
            r += "\\n";
        else
            r += c;
    }
    return r + "\"";
}

std::string label_of(const Node& node) {
    std::string s = node.name.empty() ? node.op->name : node.name;
    if (!node.name.empty() && node.op->kind != OpKind::leaf) s += " = " + node.op->name;
    s += "\n" + text_of(node.type);
    if (node.where.line) s += "\n" + node.where.text();
    return s;
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
        text += "    " + name + " [" + style_of(*node) + ", label=" + quoted(label_of(*node)) + "];\n";
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
