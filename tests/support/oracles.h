// What the oracles compute from graphs: the wide one, whose results say how far rounding may move them, and
// the typed one.
#pragma once

#include <vector>

#include "bitale/array.h"
#include "bitale/expr.h"
#include "ops/oracle/typed.h"
#include "ops/oracle/wide.h"

namespace bitale::test {

// The values of roots over inputs, by the wide oracle.
inline std::vector<WidePtr> evaluated_wide(const std::vector<Expr>& roots, const std::vector<Expr>& inputs,
                                           const std::vector<Array>& values) {
    Nodes nodes;
    for (const Expr& x : roots) nodes.push_back(x.node());
    LeafValues leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) leaves.emplace(inputs[i].node().get(), values[i]);
    return evaluate_wide(nodes, leaves);
}

inline std::vector<Array> evaluated(const std::vector<Expr>& roots, const std::vector<Expr>& inputs,
                                    const std::vector<Array>& values) {
    std::vector<Array> rounded;
    for (const WidePtr& x : evaluated_wide(roots, inputs, values)) rounded.push_back(x->rounded());
    return rounded;
}

inline Array evaluated(const Expr& root, const std::vector<Expr>& inputs = {},
                       const std::vector<Array>& values = {}) {
    return evaluated(std::vector<Expr>{root}, inputs, values)[0];
}

// By the typed oracle.
inline Array evaluated_typed(const Expr& root, const std::vector<Expr>& inputs,
                             const std::vector<Array>& values) {
    LeafValues leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) leaves.emplace(inputs[i].node().get(), values[i]);
    return evaluate({root.node()}, leaves)[0];
}

}  // namespace bitale::test
