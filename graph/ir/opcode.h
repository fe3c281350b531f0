// Opcode: the scalar functions whose meaning code generation knows. By them it recognises products,
// selections and comparisons, and writes expressions of its own; to it, every other scalar function is text.
#pragma once

#include <cstdint>

namespace bitale {

enum class Opcode : std::uint8_t {
    other,
    add,
    sub,
    mul,
    div,
    neg,
    sqr,
    maximum,
    minimum,
    clip,
    relu,
    lt,
    le,
    gt,
    ge,
    eq,
    neq,
    logical_not,
    bitwise_and,
    bitwise_or,
    shift_right,
    where,
    random_bits,         // the first word that a stream has for a counter and an element
    second_random_bits,  // the word behind it
    count
};

}  // namespace bitale
