#include "codegen/library/accumulate.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "graph/ir/op.h"

namespace bitale {

namespace {

using Kind = ScalarNode::Kind;

struct Term {
    double factor = 1;
    int operand = -1;
};

std::optional<Term> term_of(const ScalarNode& s, const std::vector<Int>& own, DType dtype) {
    if (s.dtype != dtype) return {};
    if (s.kind == Kind::read && s.guards.empty() && s.at == own) return Term{1, s.operand.value()};
    if (!applies(s, Opcode::mul)) return {};
    for (const std::size_t side : {0, 1}) {
        const ScalarNode &factor = *s.arguments[side], &read = *s.arguments[1 - side];
        if (factor.kind != Kind::constant || factor.dtype != dtype) continue;
        if (read.kind == Kind::read && read.dtype == dtype && read.guards.empty() && read.at == own)
            return Term{factor.number, read.operand.value()};
    }
    return {};
}

}  // namespace

std::optional<ScaledSum> accumulation_of(const Nest& map, int product) {
    const ScalarNode& body = *map.body;
    if (map.dtype != DType::float32 && map.dtype != DType::float64) return {};
    const bool minus = applies(body, Opcode::sub);
    if (!minus && !applies(body, Opcode::add)) return {};
    std::vector<Int> own;
    for (const Loop& l : map.parallel) own.push_back(l.variable);
    std::optional<Term> first = term_of(*body.arguments[0], own, map.dtype),
                        second = term_of(*body.arguments[1], own, map.dtype);
    if (!first || !second || first->operand == second->operand) return {};
    if (minus) second->factor = -second->factor;
    if (first->operand == product) std::swap(first, second);
    if (second->operand != product) return {};
    return ScaledSum{second->factor, first->factor, first->operand};
}

}  // namespace bitale
