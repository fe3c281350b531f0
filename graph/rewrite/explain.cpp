#include "graph/rewrite/explain.h"

#include "graph/walk/traverse.h"

namespace bitale {

std::string explain(const Rule& rule, const NodePtr& node, const MatchContext& context) {
    std::string why;
    const NodePtr made = rule.apply(node, context, nullptr, &why);
    std::string s = "rule " + rule.name + " (" + rule.pattern.text() + ") ";
    if (!made) return s + "misses " + describe(*node) + ": " + why;
    if (const char* why_not = rule.why_not())
        return s + "would apply to " + describe(*node) + ", but " + why_not;
    if (made->type.dtype != node->type.dtype)
        return s + "misses " + describe(*node) + ": its result would be " + text_of(made->type);
    return s + "applies to " + describe(*node);
}

std::string explain(const Rule& rule, const Nodes& roots) {
    std::string s;
    const PatternNode& top = *rule.pattern;
    for (const NodePtr& node : topological(roots))
        if ((top.kind != PatternNode::Kind::apply && top.kind != PatternNode::Kind::nested) ||
            top.op() == node->op)
            s += explain(rule, node) + "\n";
    return s;
}

}  // namespace bitale
