// Memory of arrays that another library lends.
#pragma once

#include <functional>
#include <memory>

#include "bitale/array.h"

namespace bitale {

// The deleter of borrowed memory, by which arrays know it: they read it, and write copies.
struct BorrowedMemory {
    std::function<void()> give_back;
    void operator()(void*) const { give_back(); }
};

struct ArrayMemory {
    // Whether somebody else may see the array's elements change.
    static bool is_shared(const Array& a) { return a.is_shared(); }
    static bool is_borrowed(const Array& a) {
        return std::get_deleter<BorrowedMemory>(a.storage_) != nullptr;
    }
    // The array, or a copy of what another library lends and may change. Throws OutOfMemory.
    static Array own(const Array& a) {
        Array r = a;
        if (is_borrowed(a)) r.mutable_data();
        return r;
    }
};

}  // namespace bitale
