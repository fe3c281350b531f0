// Sums of products in the vector registers of a CPU: a tile of results, rows times vectors of lanes, stays in
// registers over the whole sum. Each iteration loads the vectors of one factor once for all rows, and one
// element of the other factor for each row. Convolutions, their gradients, matrix products.
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

struct LanePlan {
    int axis = -1;  // the loop over results that runs in lanes; the second factor steps through memory by it
    std::int64_t width = 0, vectors = 1;  // lanes of a register, registers side by side
    std::vector<int> common, outer;       // loops over results outside of the tile
    int tiled = -1;                       // the loop of which a tile has `height` iterations, -1: none
    std::int64_t height = 1;
    std::vector<int> whole;  // loops that lie in a tile as a whole
    bool swapped = false;    // the vectors are of the product's first argument
    bool is_window = false;  // the vectors vary with the tiled loop too: one filter over windows of an image
    bool reads_exactly = false;  // each register by itself, in the lanes that it stores
};

enum class TileUse : std::uint8_t {
    fresh,      // sum up, then store
    added,      // sum up, then add to what is stored
    continued,  // go on from what is stored
};

// What a factor reads along the variable where vectors of it can be computed from one vector of that: casts
// of bytes, sums and products with what does not vary in the nest. Null where they cannot.
const ScalarNode* read_in_lanes(const Nest& nest, const Scalar& factor, const Int& variable);

// Nothing where no such tile can be had: no loop over neighbours of one factor alone, or a factor that has
// to be computed where it is read, unless the vectors may be `computed` each time that a tile reads them.
std::optional<LanePlan> plan_lanes(const Member& member, const Target& target, const KernelBuilder& builder,
                                   TileUse use, bool computed = false);
// The results of the member's loops: to its destinations, which are one unless `fresh`.
Stmts schedule_lanes(const LanePlan& plan, const Member& member, KernelBuilder& builder, TileUse use);

}  // namespace bitale
