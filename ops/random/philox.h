// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random bits as a pure
// function of a 64-bit key and a 128-bit counter, so that any element of any draw can be computed anywhere,
// in any order.
#pragma once

#include <array>
#include <cstdint>

namespace bitale::philox {

using Words = std::array<std::uint32_t, 4>;
using KeyWords = std::array<std::uint32_t, 2>;

// The four output words of ten rounds.
Words block(Words counter, KeyWords key);

// Word 0 .. 3 of the block for element `index` of call number `counter`: the index fills the low half of
// Philox's counter, the call number the high half.
std::uint32_t word(std::uint64_t key, std::uint64_t counter, std::uint64_t index, int which = 0);

// The key of draw number `draw` of a stream: random bits, so that neighbouring seeds and draws share nothing.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t draw);

// 24 of the bits as a float in [0, 1), exact in float32.
inline double unit(std::uint32_t bits) { return (bits & 0xffffffu) * 0x1p-24; }
// The same in (0, 1], for logarithms.
inline double positive_unit(std::uint32_t bits) { return ((bits & 0xffffffu) + 1) * 0x1p-24; }
// A standard normal number from two words, by Box and Muller's transform, in double precision.
double normal(std::uint32_t first, std::uint32_t second);

}  // namespace bitale::philox
