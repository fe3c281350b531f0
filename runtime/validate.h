// From what the user passes to function() to a graph: every mistake that can be told before compiling is told
// here.
#pragma once

#include <optional>
#include <vector>

#include "bitale/function.h"
#include "graph/ir/graph.h"
#include "runtime/exec/signature.h"

namespace bitale {

struct Request {
    Graph graph;  // givens replaced, checks collected
    Signature signature;
    std::vector<std::optional<Array>> defaults;  // of the inputs
};

// Throws GraphError, TypeError, ShapeError with the lines of everything involved.
Request validate(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                 const FunctionOptions& options, Where where);

}  // namespace bitale
