#include "codegen/print/turned.h"

#include "graph/base/check.h"

namespace bitale {

TurnedTile turned_tile(const Stmt& rows, const std::vector<Place>& places) {
    const Stmt& columns = rows.body.at(0);
    TurnedTile tile;
    tile.set = &columns.body.at(0);
    tile.from = tile.set->value.get();
    tile.columns = columns.end;
    BITALE_CHECK(tile.set->kind == Stmt::Kind::set && tile.from->kind == ScalarNode::Kind::read &&
                     tile.from->guards.empty(),
                 "a tile that is not read from memory");
    const auto at_row = [&](std::vector<Int> at, int row) {
        for (Int& x : at)
            x = substitute(x, {{rows.variable.symbol_id(), row}, {columns.variable.symbol_id(), 0}});
        return at;
    };
    const Place& from = places[static_cast<std::size_t>(tile.from->operand.place())];
    tile.first = at_row(tile.from->at, 0);
    tile.there = at_row(tile.set->at, 0);
    tile.stride = offset_of(from, at_row(tile.from->at, 1)) - offset_of(from, tile.first);
    const Place& to = places[static_cast<std::size_t>(tile.set->place)];
    if (to.scope != Place::Scope::private_) tile.step = step_of(to, tile.set->at, columns.variable);
    return tile;
}

}  // namespace bitale
