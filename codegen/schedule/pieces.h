// Maps that are something else on each part of an axis, as a concatenation is: tasks of a kind for each part,
// in which no element is asked where it lies.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

struct Piece {
    Nest nest;  // over the piece alone
    std::size_t axis = 0;
    Int start;  // where it lies along the axis
};

// Of a map whose guards cut one axis into parts, one after another; nothing where they do not.
std::vector<Piece> pieces_of(const Nest& nest);

}  // namespace bitale
