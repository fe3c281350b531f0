#include "bitale/array.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "graph/base/border.h"
#include "graph/base/memory.h"
#include "graph/ir/array_bytes.h"
#include "graph/types/convert.h"

namespace bitale {

namespace {

constexpr std::size_t alignment = 64;

const ApiBorder making("for an array");

// Zeros from byte `first` on.
std::shared_ptr<void> allocate(std::size_t bytes, std::size_t first = 0) try {
    const std::size_t padded = (bytes + 2 * alignment - 1) / alignment * alignment;
    void* p = allocate_memory(padded);
    if (!p) throw OutOfMemory("no host memory for an array of " + std::to_string(bytes) + " bytes");
    std::memset(static_cast<char*>(p) + first, 0, padded - first);
    return {p, [padded](void* q) { free_memory(q, padded); }};
} catch (const std::bad_alloc&) {
    making.fail();
}

}  // namespace

std::int64_t count_of(const Dims& shape) {
    // Strides of an array without elements are products of its lengths too.
    std::int64_t n = 1;
    bool empty = false;
    for (const std::int64_t d : shape) {
        if (d < 0) throw ShapeError("an array cannot have the shape " + text_of(shape));
        if (__builtin_mul_overflow(n, std::max<std::int64_t>(d, 1), &n))
            throw ShapeError("the shape " + text_of(shape) + " has too many elements");
        empty |= d == 0;
    }
    return empty ? 0 : n;
}

std::int64_t bytes_of(DType dtype, const Dims& shape) {
    const std::int64_t count = count_of(shape);
    if (count > most_bytes / bytes_of(dtype))
        throw ShapeError("an array of " + std::string(name_of(dtype)) + " " + text_of(shape) +
                         " has more bytes than can be counted");
    return count * bytes_of(dtype);
}

std::string text_of(const Dims& shape) {
    std::string s = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + "]";
}

void Array::no_memory() { making.fail(); }

Dims Array::one_axis(std::size_t length) {
    return making([&] { return Dims{static_cast<std::int64_t>(length)}; });
}

void Array::moved_from() {
    throw GraphError(
        "an Array that was moved from is used; assign a value to it first, or copy instead of moving");
}

Array::Array(const Array& other)
    : dtype_(other.dtype()),
      shape_(making([&] { return other.shape_; })),
      size_(other.size_),
      storage_(other.storage_) {}

Array& Array::operator=(const Array& other) {
    Array copy = other;
    return *this = std::move(copy);
}

// By way of a third one, so that an array may be moved to itself.
Array& Array::operator=(Array&& other) noexcept {
    Array taken(std::move(other));
    std::swap(dtype_, taken.dtype_);
    std::swap(shape_, taken.shape_);
    std::swap(size_, taken.size_);
    std::swap(storage_, taken.storage_);
    return *this;
}

Array::Array(DType dtype, Dims shape) : dtype_(dtype), shape_(std::move(shape)), size_(count_of(shape_)) {
    storage_ = allocate(static_cast<std::size_t>(bytes_of(dtype, shape_)));
}

Array::Array(DType dtype, Dims shape, std::shared_ptr<void> storage)
    : dtype_(dtype), shape_(std::move(shape)), size_(count_of(shape_)), storage_(std::move(storage)) {}

Array Array::adopt(DType dtype, Dims shape, std::shared_ptr<void> storage) {
    const std::int64_t bytes = bytes_of(dtype, shape);
    if (!storage && bytes > 0)
        throw Error("Array::adopt: " + std::string(name_of(dtype)) + " " + text_of(shape) + " takes " +
                    std::to_string(bytes) + " bytes, and the pointer to them is null");
    if (!storage) storage = allocate(0);
    return {dtype, std::move(shape), std::move(storage)};
}

Array::Array(const std::vector<bool>& values) : Array(DType::boolean, one_axis(values.size())) {
    std::copy(values.begin(), values.end(), static_cast<bool*>(mutable_data()));
}

void Array::fill_from(const void* values, std::size_t count) {
    if (static_cast<std::int64_t>(count) != size_)
        throw ShapeError(std::to_string(count) + " values do not fill an array of shape " + text_of(shape_));
    if (count) std::memcpy(storage_.get(), values, static_cast<std::size_t>(bytes()));
}

void* Array::mutable_data() {
    if (used().storage_.use_count() > 1) {
        const auto size = static_cast<std::size_t>(bytes());
        std::shared_ptr<void> own = allocate(size, size);
        std::memcpy(own.get(), storage_.get(), size);
        storage_ = std::move(own);
    } else {
        // Another thread may have read them, and dropped its copy, without any lock in between.
#if defined(__SANITIZE_THREAD__)
        const std::shared_ptr<void> fence = storage_;  // fences are not known to ThreadSanitizer
#else
        std::atomic_thread_fence(std::memory_order_acquire);
#endif
    }
    return storage_.get();
}

void Array::convert_element(std::int64_t i, DType dtype, void* to) const {
    if (i < 0 || i >= size())
        throw IndexError("element " + std::to_string(i) + " of an array with " + std::to_string(size_) +
                         " elements");
    dispatch(dtype_, [&](auto from) {
        dispatch(dtype, [&](auto wanted) {
            const auto x = convert<decltype(wanted)>(static_cast<const decltype(from)*>(data())[i]);
            std::memcpy(to, &x, sizeof x);
        });
    });
}

void Array::require_one() const {
    if (size() != 1) throw ShapeError("one number wanted from an array of shape " + text_of(shape_));
}

void Array::require(DType dtype) const {
    if (dtype != this->dtype())
        throw TypeError("the array holds " + std::string(name_of(dtype_)) + ", not " +
                        std::string(name_of(dtype)) + "; use to_vector or as to convert");
}

Array Array::as(DType dtype) const {
    if (dtype == this->dtype()) return *this;
    Array r(dtype, making([&] { return shape_; }));
    dispatch(dtype_, [&](auto from) {
        dispatch(dtype, [&](auto to) {
            const auto* source = static_cast<const decltype(from)*>(data());
            auto* target = static_cast<decltype(to)*>(r.mutable_data());
            for (std::int64_t i = 0; i < size_; ++i) target[i] = convert<decltype(to)>(source[i]);
        });
    });
    return r;
}

Array Array::reshaped(Dims shape) const {
    if (count_of(shape) != size())
        throw ShapeError("an array of shape " + text_of(shape_) + " cannot become " + text_of(shape));
    Array r = *this;
    r.shape_ = std::move(shape);
    return r;
}

Array Array::rows(std::int64_t first, std::int64_t last) const {
    if (rank() == 0 || first < 0 || last < first || last > shape_[0])
        throw IndexError("rows " + std::to_string(first) + " to " + std::to_string(last) +
                         " of an array of shape " + text_of(shape_));
    Dims shape = making([&] { return shape_; });
    shape[0] = last - first;
    Array r(dtype_, std::move(shape));
    const std::int64_t row = shape_[0] ? bytes() / shape_[0] : 0;
    std::memcpy(r.mutable_data(), static_cast<const char*>(data()) + first * row,
                static_cast<std::size_t>((last - first) * row));
    return r;
}

std::string Array::text() const try {
    std::string s = std::string(name_of(dtype())) + " " + text_of(shape_) + " {";
    for (std::int64_t i = 0; i < std::min<std::int64_t>(size_, 8); ++i) {
        char number[40];
        std::snprintf(number, sizeof number, "%s%.6g", i ? ", " : "", at(i));
        s += number;
    }
    return s + (size_ > 8 ? ", ...}" : "}");
} catch (const std::bad_alloc&) {
    making.fail();
}

bool same(const Array& a, const Array& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace bitale
