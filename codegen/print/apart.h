// What vectors of g++ need in a form of its own: reads by a pointer, steps and conditions of which it knows
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// An element `offset` of a place, which moves by `step` elements with each iteration of a loop.
struct ApartRead {
    int place = -1;
    Int offset;
    std::int64_t step = 1;
    std::vector<Guard> guards{};  // without which nothing is read
};

// The reads of a loop that are neighbours of each other in memory while an iteration steps over several
// elements: the pixels of a window of interleaved channels. g++ takes them for one group of vectors, which it
// has no instructions for unless the step is three or a power of two, and leaves the loop as it is. Behind
// pointers of which it knows nothing it loads the lanes one by one, and computes all of them at once.
// Beside them, reads with guards that are the same for all lanes: where these fail, the address has to be one
// of the array all the same. A masked load of no lane takes a hundred times as long from memory that is not
// there.
std::vector<ApartRead> reads_apart(const Stmt& loop, const std::vector<Place>& places);

// What stands for the read in the loop: a pointer to what its first lane reads, or the value that all lanes
// read. `first`: the index of its element in the first iteration; `condition`: the text of its guards.
struct Pointed {
    std::string type, value;
    bool is_value = false;
};
Pointed pointed(const ApartRead& read, const std::string& type, const std::string& first,
                const std::string& condition);

// Steps of what a loop in vector lanes reads or writes, as columns of a matrix have: powers of two as long as
// a register, and all that are longer than a group of neighbours can be. g++ takes each such access for a
// group with gaps, has no vectors for groups that large, and leaves the loop as it is; a step of which it
// knows nothing it loads lane by lane.
std::vector<std::int64_t> long_steps(const Stmt& loop, const std::vector<Place>& places);

// Of a loop in vector lanes, the guards of each choice that are the same for all lanes, where there are
// several. g++ takes their conjunction out of the loop, and then has no vectors for a choice by a scalar
// condition; by a number that may be zero it has.
std::vector<std::vector<Guard>> guards_of_all_lanes(const Stmt& loop);

}  // namespace bitale
