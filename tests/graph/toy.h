// A few ops for tests of the graph machinery, which knows none.
#pragma once

#include "graph/ir/graph.h"
#include "graph/rewrite/pattern.h"

namespace bitale::toy {

inline const Op* op(const std::string& name, int arity, bool commutative = false, OpKind kind = OpKind::map,
                    int cost = 1) {
    if (const Op* known = find_op(name)) return known;
    auto info = std::make_shared<MapInfo>();
    info->commutative = commutative;
    info->cost = cost;
    Op record;
    record.name = name;
    record.kind = kind;
    record.arity = arity;
    record.infer = [](const Nodes& inputs, const Attributes&, Where) { return inputs.at(0)->type; };
    record.map = info;
    return register_op(std::move(record));
}

inline const Op* add() { return op("toy_add", 2, true); }
inline const Op* sub() { return op("toy_sub", 2); }
inline const Op* exp() { return op("toy_exp", 1); }
inline const Op* log() { return op("toy_log", 1); }
inline const Op* neg() { return op("toy_neg", 1); }
inline const Op* dear() { return op("toy_dear", 1, false, OpKind::map, 20); }
inline const Op* many() { return op("toy_many", -1, false, OpKind::view); }
inline const Op* soft() { return op("toy_soft", 1, false, OpKind::composite); }
inline const Op* log_soft() { return op("toy_log_soft", 1, false, OpKind::composite); }

inline NodePtr leaf(const std::string& name, DType dtype = float32, Dims shape = {3}) {
    return make_input({dtype, shape_of(shape)}, name, Where{"user.cpp", 1});
}
inline NodePtr node(const Op* op, Nodes inputs, Attributes attributes = {}, unsigned line = 2) {
    return make_node(op, std::move(inputs), std::move(attributes), Where{"user.cpp", line});
}
inline Pattern of(const Op* op, std::vector<Pattern> operands) {
    return Pattern::apply(op->name, std::move(operands));
}

// Patterns of them.
inline const Pattern x = Pattern::any("x"), y = Pattern::any("y");
inline Pattern add(const Pattern& a, const Pattern& b) { return of(add(), {a, b}); }
inline Pattern sub(const Pattern& a, const Pattern& b) { return of(sub(), {a, b}); }
inline Pattern exp(const Pattern& a) { return of(exp(), {a}); }
inline Pattern log(const Pattern& a) { return of(log(), {a}); }
inline Pattern neg(const Pattern& a) { return of(neg(), {a}); }
inline Pattern soft(const Pattern& a) { return of(soft(), {a}); }
inline Pattern log_soft(const Pattern& a) { return of(log_soft(), {a}); }

// "toy_add(x, toy_exp(y))"
inline std::string text(const NodePtr& node) {
    if (node->op->kind == OpKind::leaf) return is_constant(node) ? constant_value(node).text() : node->name;
    std::string s = node->op->name + "(";
    for (std::size_t i = 0; i < node->inputs.size(); ++i) s += (i ? ", " : "") + text(node->inputs[i]);
    return s + ")";
}

}  // namespace bitale::toy
