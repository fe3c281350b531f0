// A matrix product as cuBLASLt describes it, by plain loops.
#pragma once

#include <cstdint>

#include "runtime/cuda/emulator/libraries/rounding.h"

namespace bitale::emulated {

// d = alpha * op(a) . op(b) + beta * c, then the bias of each row, then relu; matrices by columns.
struct Product {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
    bool transpose_a = false, transpose_b = false, has_bias = false, relu = false;
    int mantissa_bits = all_mantissa_bits;  // to which factors are rounded
    float alpha = 1, beta = 0;
    const float *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
    float* d = nullptr;
    float* part = nullptr;  // m * n floats: the second part of each sum is formed there. Null: one sum
};
void multiply(const Product& product);

}  // namespace bitale::emulated
