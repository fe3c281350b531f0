// CUDA's functions throw nothing. Where the emulator finds no memory for itself, its caller is told so as
// CUDA would tell it.
#pragma once

#include <new>
#include <type_traits>

#include "bitale/error.h"
#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

// Around one function of a table.
template <auto member>
struct Entry;
template <class Table, class R, class... A, R (*Table::*member)(A...)>
struct Entry<member> {
    static inline R (*inner)(A...) = nullptr;
    static R call(A... arguments) {
        if (!begin_emulator()) return error_initialization;
        try {
            return inner(arguments...);
        } catch (const std::bad_alloc&) {
            return error_out_of_memory;
        } catch (const OutOfMemory&) {
            return error_out_of_memory;
        }
    }
    // Words need no memory.
    static void put(Table& table) {
        if constexpr (std::is_same_v<R, Status>) {
            inner = table.*member;
            table.*member = call;
        }
    }
};

}  // namespace bitale::cuda
