#include "codegen/library/gemm.h"

#include <algorithm>

#include "codegen/group/values.h"

namespace bitale {

namespace {

// Below these sizes a fused generated product beats a call plus separate passes over its operands and result.
constexpr double least_columns = 24, least_work = 1 << 18;

bool reads(const ScalarNode& s, const Int& row, const Int& column) {
    return s.at.size() == 2 && s.guards.empty() && s.at[0] == row && s.at[1] == column;
}

}  // namespace

std::optional<GemmMatch> match_gemm(const Nest& nest, const Target& target) {
    if (!target.has_gemm || nest.combine != Combine::sum || nest.dtype != DType::float32) return {};
    if (nest.parallel.size() != 2 || nest.reduced.size() != 1 || !nest.guards.empty() || !nest.lets.empty()) return {};
    const ScalarNode& body = *nest.body;
    if (body.kind != ScalarNode::Kind::apply || body.op->name != "mul") return {};
    const ScalarNode &a = *body.arguments[0], &b = *body.arguments[1];
    if (a.kind != ScalarNode::Kind::read || b.kind != ScalarNode::Kind::read) return {};
    if (a.dtype != DType::float32 || b.dtype != DType::float32) return {};
    const Int &m = nest.parallel[0].variable, &n = nest.parallel[1].variable, &k = nest.reduced[0].variable;
    if (!reads(a, m, k) && !reads(a, k, m)) return {};
    if (!reads(b, k, n) && !reads(b, n, k)) return {};
    GemmMatch match;
    match.call = {nest.parallel[0].extent, nest.parallel[1].extent, nest.reduced[0].extent, !reads(a, m, k), !reads(b, k, n)};
    match.a = a.operand;
    match.b = b.operand;
    const double rows = typical(match.call.m), columns = typical(match.call.n), depth = typical(match.call.k);
    if (std::min(rows, columns) < least_columns || depth < least_columns || rows * columns * depth < least_work) return {};
    return match;
}

}  // namespace bitale
