// Sums of bytes in memory: exact in any order, so whole runs of them are added as vectors of bytes.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// What the last of the reduced loops add up: `length` elements of a place that follow each other.
struct ByteRun {
    int place = -1;
    std::vector<Int> at;  // of the first one
    Int length;
    std::vector<Loop> outer;  // the loops that are left
    Int shift;                // bits of each: those of `mask` from here on
    int mask = 255;
};

// What an integer sum adds up, inside of casts that change no number. The sum wraps as its own cast does.
const ScalarNode& summand(const Nest& nest);

// Of an integer sum over 8-bit elements, `nest` with its reads placed, along the `reduced` loops. Nothing
// where the runs are short.
std::optional<ByteRun> byte_run(const Nest& nest, const std::vector<Loop>& reduced,
                                const std::vector<Place>& places);

}  // namespace bitale
