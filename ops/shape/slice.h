// Views of a part: slice (bounds that the host knows) and rows (a first row that only the device knows), and
// their transposes place_slice and place_rows, which put a part back among zeros. set_slice and set_rows put
// a part back among the elements of another array.
#pragma once

#include <cstddef>
#include <optional>

#include "graph/ir/node.h"

namespace bitale {

// Pairs (a, b), where a <= b says that the slice begins among the b elements of its axis; attribute "places"
// of slice and rows, absent where nothing has to be checked.
using Places = std::vector<Int>;

const Op* slice_op();  // x; "start", "count" (vector<Int>), "step" (vector<int64>) per axis; "places"
const Op*
place_slice_op();     // g; "start" (vector<Int>), "step" (vector<int64>), "shape" (vector<Int>) of the result
const Op* rows_op();  // x, start (rank-0 integer); "count" (Int); "clipped" (bool, may be absent): start is
                      // in range already
const Op* place_rows_op();  // g, start; "extent" (Int), "clipped" (bool)
const Op* set_slice_op();   // x, part; "start", "step", "places" as those of the slice
const Op* set_rows_op();    // x, part, start; "clipped" (bool), "places"

// Elements start, start + step, ... of one axis; the other axes whole. Returns x itself where nothing would
// change.
NodePtr make_slice(const NodePtr& x, int axis, const Int& start, const Int& count, std::int64_t step,
                   Where where, const Places& places = {});
// Where the part of a slice or of a place_slice lies, if it is of neighbours along one axis, and whole along
// all others; nothing where it is not, or is the whole.
struct Cut {
    std::size_t axis = 0;
    Int start, count;
};
std::optional<Cut> cut_of(const Node& node);
// Whether the part of a slice or of a place_slice is the whole, in order.
bool takes_all(const Node& node);
// Those of a slice of a slice.
Places joined_places(const Attributes& inner, const Attributes& outer);

}  // namespace bitale
