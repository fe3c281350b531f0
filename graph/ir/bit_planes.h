// Elements of few bits, several of which share a byte: which ones, and how they come in and out.
#pragma once

#include <string>
#include <vector>

#include "bitale/packed.h"

namespace bitale {

// Bytes hold elements that are far apart along an axis, so that along every axis the elements of one plane
// follow each other as bytes do: loops over them read contiguous bytes and shift all by the same number.
struct BitPlanes {
    StorageType type = uint1;
    Dims shape;  // of the elements
    // Along each axis; their product is 8 / bits, or 1 for rank 0. The planes of all axes are numbered in
    // row-major order; an element of plane k is shifted by k * bits.
    Dims planes;
    Dims packed;               // the shape of the bytes
    std::string text() const;  // "uint4 [60000, 1, 28, 28] in planes [1, 1, 2, 1]"
};
// Of the ways to share 8 / bits planes among the axes but the leading one that with the fewest bytes, then
// with the fewest planes along the last axis, which inner loops walk, then in the fewest axes.
BitPlanes bit_planes(StorageType type, const Dims& shape);

// Codes are uint8, the element's bits each, of planes.shape; bytes are uint8 of planes.packed.
Array packed(const BitPlanes& planes, const Array& codes);
Array unpacked(const BitPlanes& planes, const Array& bytes);

}  // namespace bitale
