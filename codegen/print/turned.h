// What a tile of 16 x 16 elements that is turned in registers is read from and goes to.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

struct TurnedTile {
    const ScalarNode* from = nullptr;
    const Stmt* set = nullptr;
    Int columns;
    std::vector<Int> first, there;  // where its corner is, in memory and at its destination
    Int stride, step;               // from row to row of the former, from column to column of the latter
};

// Of a loop that is Binding::turned, around one loop around one set.
TurnedTile turned_tile(const Stmt& rows, const std::vector<Place>& places);

}  // namespace bitale
