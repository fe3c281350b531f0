// Maps that are something else on each part of an axis, as a concatenation is: tasks of a kind for each part,
// in which no element is asked where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/schedule/member.h"
#include "graph/ir/nest.h"

namespace bitale {

struct Piece {
    Nest nest;  // over the piece alone
    std::size_t axis = 0;
    Int start;              // where it lies along the axis
    std::int64_t step = 1;  // from one of its numbers to the next
};

// Of a map whose guards cut one axis into parts, one after another; nothing where they do not.
std::vector<Piece> pieces_of(const Nest& nest);
// The axis of which each task of a part has some rows: the first one that is long enough for many cores, or
// the longest one.
std::size_t axis_of_tasks(const Nest& part);
Nest with_axis_first(const Nest& part, std::size_t axis);
// Indices over the loops of such a nest as those of the whole, in its order.
std::vector<Int> put_back(const std::vector<Int>& at, std::size_t axis, const std::vector<Int>& starts);
// Whether they are many parts of few elements along the last axis, as columns side by side are: lanes run
// along another axis then, and one task writes all of a row, part after part.
bool are_narrow(const std::vector<Piece>& pieces, const Nest& nest);
// Those for which loops of their own pay: not narrow ones, and not short ones of a function that is computed
// once, of elements that are chosen.
std::vector<Piece> separate_pieces_of(const Nest& nest);
//     for k below 32: for rows: y[row, k] = x_k[row]
//
// A map inside a task as one member for each of such parts; nothing where it is none, or reads what it
// writes.
std::vector<Member> narrow_parts_of(const Member& member);
// Likewise of parts that take turns along an axis: patches whose channels are outside of their places.
std::vector<Piece> pieces_by_remainder(const Nest& nest);

}  // namespace bitale
