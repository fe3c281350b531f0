// A value that a library computes, and from what.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/program.h"

namespace bitale {

struct LibraryCall {
    std::variant<GemmCall, ConvCall, RoutineCall> call;
    std::vector<int> operands;  // value numbers, in the order of buffers_of(step); the bias last
    std::vector<int> absorbed;  // values that exist only inside of the call: a product before its bias
    std::string why;            // for the report
    Int flops{}, bytes{};       // of a routine, about; those of the others follow from their sizes
};

}  // namespace bitale
