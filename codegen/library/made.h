// Operands of a library's product that are nowhere in memory as a whole: a kernel makes the piece of them
// that a slice needs next, in the cache of the core that multiplies it.
#pragma once

#include <cstddef>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/walk.h"

namespace bitale {

// A cast of bytes to int32, as the factors of integer products are: calls take what is cast.
bool is_widened_byte(const Value& value);

// Once storage is decided.
bool is_made(const Value& operand);

// The values in memory that the call which computes a value reads: operands, or what their pieces are made
// of.
std::vector<int> read_by_call(const Values& values, int value);

// f(operand) for each value that the kernel, or the call, reads which computes a stored value.
template <class F>
void for_each_value_read(const Values& values, int value, F&& f) {
    if (values.list[static_cast<std::size_t>(value)].by_library)
        for (const int operand : read_by_call(values, value)) f(operand);
    else
        for_each_read(fully_composed_nest(values, value), [&](const ScalarNode& s) { f(s.operand.value()); });
}

// Factor `side` of the product that a call computes, over its own axes: [m, k] or [k, n].
Nest made_operand(const Values& values, int value, int side);

}  // namespace bitale
