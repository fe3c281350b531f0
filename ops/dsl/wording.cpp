#include "ops/dsl/wording.h"

#include <cstdio>

#include "graph/base/text.h"
#include "graph/ir/node.h"

namespace bitale {

std::string axes_text(int rank) {
    if (rank == 0) return "a scalar has no axes";
    if (rank == 1) return "its axis is 0, or -1";
    const std::string between = rank == 2 ? " and " : " to ";
    return "axes are 0" + between + std::to_string(rank - 1) + ", or -1" + between + "-" +
           std::to_string(rank);
}

int checked_axis(int axis, const Expr& x, const char* op, Where where) {
    const int rank = x.rank();
    if (axis < -rank || axis >= rank)
        throw IndexError(where, std::string(op) + " of " + describe(*x.node()) + ": there is no axis " +
                                    std::to_string(axis) + "; " + axes_text(rank));
    return axis < 0 ? axis + rank : axis;
}

std::string word_for(const Expr& operand, const char* place) {
    const std::string& name = operand.node()->name;
    return name.empty() ? place : printable(name);
}

std::string number_text(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", x);
    return text;
}

}  // namespace bitale
