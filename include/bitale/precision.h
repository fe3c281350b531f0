// Precision: how exactly a library on a GPU multiplies float32 numbers.
#pragma once

#include <cstdint>

#include "bitale/cplusplus.h"

#pragma GCC visibility push(default)

namespace bitale {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // Precision::float32 beside the dtype of that name
// How libraries on a GPU may round the factors of matrix products and convolutions. Storage and sums are
// float32 in each case. A device may always be more exact than this: generated kernels, and everything on
// cpu, compute in float32.
enum class Precision : std::uint8_t {
    float32,  // not at all
    tf32,     // to 10 bits of mantissa, on tensor cores
    bf16,     // to 7 bits of mantissa
};
#pragma GCC diagnostic pop

constexpr const char* name_of(Precision precision) {
    switch (precision) {
        case Precision::tf32: return "tf32";
        case Precision::bf16: return "bf16";
        default: return "float32";
    }
}

}  // namespace bitale

#pragma GCC visibility pop
