// Memory of arrays that another library lends.
#pragma once

#include <functional>

#include "bitale/array.h"

namespace bitale {

// The deleter of borrowed memory, by which arrays know it: they read it, and write copies.
struct BorrowedMemory {
    std::function<void()> give_back;
    void operator()(void*) const { give_back(); }
};

// Whether somebody else may see the array's elements change.
struct ArrayMemory {
    static bool is_shared(const Array& a) { return a.is_shared(); }
};

}  // namespace bitale
