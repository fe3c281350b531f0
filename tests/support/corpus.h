// Many small graphs over every op and dtype, packed into few functions: what generated kernels must be able
// to do.
#pragma once

#include <string>
#include <vector>

#include "bitale/bitale.h"

namespace bitale::test {

struct CorpusPart {
    std::string name;
    bool typical = true;  // false: like another part, but of another dtype
    std::vector<Expr> inputs;
    std::vector<Array> arguments;  // values for the inputs, small and awkward shapes
    std::vector<std::string> names;
    std::vector<Expr> outputs;  // as many as names

    Function build(const std::string& device) const;
};

// Elementwise ops and casts, views, reductions, convolutions and pooling with their gradients, softmax and
// losses, random numbers.
std::vector<CorpusPart> kernel_corpus();

}  // namespace bitale::test
