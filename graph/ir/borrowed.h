// Memory of arrays that another library lends, and arrays that have none.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "bitale/array.h"

namespace bitale {

// The deleter of borrowed memory, by which arrays know it: they read it, and write copies.
struct BorrowedMemory {
    std::function<void()> give_back;
    void operator()(void*) const { give_back(); }
};

// The deleter of what stands for elements that are not there.
struct NoElements {
    void operator()(void*) const {}
};

struct ArrayMemory {
    // Whether somebody else may see the array's elements change.
    static bool is_shared(const Array& a) { return a.is_shared(); }
    static bool is_borrowed(const Array& a) {
        return std::get_deleter<BorrowedMemory>(a.storage_) != nullptr;
    }
    // An array of that type without elements in memory, for planning: they must be neither read nor written.
    static Array without_elements(DType dtype, Dims shape) {
        static char nowhere = 0;
        return {dtype, std::move(shape), std::shared_ptr<void>(&nowhere, NoElements())};
    }
    // In memory of the caller's, 64 bytes longer than the elements.
    static Array in(std::shared_ptr<void> memory, DType dtype, Dims shape) {
        return {dtype, std::move(shape), std::move(memory)};
    }
    static bool has_elements(const Array& a) { return std::get_deleter<NoElements>(a.storage_) == nullptr; }
    // The array, or a copy of what another library lends and may change. Throws OutOfMemory.
    static Array own(const Array& a) {
        Array r = a;
        if (is_borrowed(a)) r.mutable_data();
        return r;
    }
};

}  // namespace bitale
