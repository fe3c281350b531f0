#include "bitale/array.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

#include "graph/base/border.h"
#include "graph/base/memory.h"
#include "graph/base/numbers.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/borrowed.h"
#include "graph/types/convert.h"

#if defined(__SANITIZE_THREAD__)
#define BITALE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define BITALE_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define BITALE_THREAD_SANITIZER 0
#endif

namespace bitale {

namespace {

const ApiBorder making("for an array");

// Zeros from byte `first` on.
std::shared_ptr<void> allocate(std::size_t bytes, std::size_t first = 0) try {
    const auto padded = static_cast<std::size_t>(block_of_array(static_cast<std::int64_t>(bytes)));
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
        if (d < 0)
            throw ShapeError("an array cannot have the shape " + text_of(shape) +
                             (d == -1 ? "; write the length: arrays have no -1" : ""));
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

Dims Array::shape_of_rows(std::size_t rows, std::size_t columns) {
    return making([&] { return Dims{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}; });
}

void Array::fill_row(std::size_t row, const void* values, std::size_t count) {
    if (static_cast<std::int64_t>(count) != shape_[1])
        throw ShapeError("row " + std::to_string(row) + " of an array in braces has " +
                         std::to_string(count) + " numbers, and row 0 has " + std::to_string(shape_[1]));
    const std::size_t row_bytes = count * static_cast<std::size_t>(bytes_of(dtype_));
    if (row_bytes) std::memcpy(static_cast<char*>(storage_.get()) + row * row_bytes, values, row_bytes);
}

Array Array::stacked(const std::vector<Array>& parts) {
    if (parts.empty()) return {DType::float32, Dims{0, 0, 0}};
    const Array& first = parts[0];
    Dims shape = making([&] {
        Dims with_parts{static_cast<std::int64_t>(parts.size())};
        with_parts.insert(with_parts.end(), first.shape().begin(), first.shape().end());
        return with_parts;
    });
    Array r(first.dtype(), std::move(shape));
    char* to = static_cast<char*>(r.storage_.get());
    for (const Array& part : parts) {
        if (part.shape() != first.shape())
            throw ShapeError("parts of an array have the shapes " + text_of(first.shape()) + " and " +
                             text_of(part.shape()));
        if (part.dtype() != first.dtype())
            throw TypeError("parts of an array are " + std::string(name_of(first.dtype())) + " and " +
                            std::string(name_of(part.dtype())) + "; use as() to convert");
        std::memcpy(to, part.data(), static_cast<std::size_t>(part.bytes()));
        to += part.bytes();
    }
    return r;
}

void Array::fill_from(const void* values, std::size_t count) {
    if (static_cast<std::int64_t>(count) != size_)
        throw ShapeError(std::to_string(count) + " values do not fill an array of shape " + text_of(shape_));
    if (count) std::memcpy(storage_.get(), values, static_cast<std::size_t>(bytes()));
}

bool Array::is_shared() const {
    return storage_.use_count() > 1 || std::get_deleter<BorrowedMemory>(storage_);
}

void* Array::mutable_data() {
    if (used().is_shared()) {
        const auto size = static_cast<std::size_t>(bytes());
        std::shared_ptr<void> own = allocate(size, size);
        std::memcpy(own.get(), storage_.get(), size);
        storage_ = std::move(own);
    } else {
        // Another thread may have read them, and dropped its copy, without any lock in between.
#if BITALE_THREAD_SANITIZER
        const std::shared_ptr<void> fence = storage_;  // fences are not known to ThreadSanitizer
#else
        std::atomic_thread_fence(std::memory_order_acquire);
#endif
    }
    return storage_.get();
}

void Array::convert_element(std::int64_t i, DType dtype, void* to) const {
    if (i < 0 || i >= size())
        throw IndexError("element " + std::to_string(i) + " is out of range: the array has " +
                         std::to_string(size_) + (size_ == 1 ? " element" : " elements"));
    dispatch(dtype_, [&](auto from) {
        dispatch(dtype, [&](auto wanted) {
            const auto x = convert<decltype(wanted)>(static_cast<const decltype(from)*>(data())[i]);
            std::memcpy(to, &x, sizeof x);
        });
    });
}

void Array::require_one() const {
    if (size() != 1)
        throw ShapeError("one number wanted from an array of shape " + text_of(shape_) +
                         ": use mean(...) in the function, or .at(k) or .to_vector<float>() of the array");
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
        throw IndexError("rows [" + std::to_string(first) + ", " + std::to_string(last) +
                         ") are out of range: " +
                         (rank() ? "the array has rows [0, " + std::to_string(shape_[0]) + ")"
                                 : std::string("a number has no rows")));
    Dims shape = making([&] { return shape_; });
    shape[0] = last - first;
    Array r(dtype_, std::move(shape));
    const std::int64_t row = shape_[0] ? bytes() / shape_[0] : 0;
    std::memcpy(r.mutable_data(), static_cast<const char*>(data()) + first * row,
                static_cast<std::size_t>((last - first) * row));
    return r;
}

Array Array::operator[](std::int64_t i) const {
    const std::int64_t length = rank() ? shape_[0] : 0, at = i < 0 ? i + length : i;
    if (at < 0 || at >= length)
        throw IndexError(rank() ? "index " + std::to_string(i) +
                                      " is out of range for axis 0 of an array of shape " + text_of(shape_)
                                : "index " + std::to_string(i) + " is out of range: a number has no axes");
    Array r = rows(at, at + 1);
    r.shape_.erase(r.shape_.begin());
    return r;
}

Array Array::slice(int axis, std::int64_t first, std::optional<std::int64_t> last, std::int64_t step) const {
    const int at = axis < 0 ? axis + rank() : axis;
    if (at < 0 || at >= rank())
        throw IndexError("slice: there is no axis " + std::to_string(axis) + " in an array of shape " +
                         text_of(shape_));
    if (step == 0) throw IndexError("slice: the step must not be 0");
    const std::int64_t length = shape_[static_cast<std::size_t>(at)];
    const auto clipped = [&](std::int64_t i) {  // NumPy's: backwards, -1 is in front of the first element
        if (i < 0) i = std::max<std::int64_t>(i, -length - 1) + length;
        return std::clamp<std::int64_t>(i, step < 0 ? -1 : 0, step < 0 ? length - 1 : length);
    };
    const std::int64_t begin = clipped(first), end = last ? clipped(*last) : step < 0 ? -1 : length;
    // By unsigned numbers, for the step may be the least there is.
    const std::uint64_t way = step < 0 ? (begin > end ? static_cast<std::uint64_t>(begin - end) : 0)
                                       : (end > begin ? static_cast<std::uint64_t>(end - begin) : 0),
                        pace = step < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(step)
                                        : static_cast<std::uint64_t>(step);
    const auto count = static_cast<std::int64_t>(way / pace + (way % pace != 0));
    Dims shape = making([&] { return shape_; });
    shape[static_cast<std::size_t>(at)] = count;
    Array r(dtype_, std::move(shape));
    std::int64_t before = 1, behind = bytes_of(dtype_);
    for (int k = 0; k < at; ++k) before *= shape_[static_cast<std::size_t>(k)];
    for (int k = at + 1; k < rank(); ++k) behind *= shape_[static_cast<std::size_t>(k)];
    const char* from = static_cast<const char*>(data());
    char* to = static_cast<char*>(r.storage_.get());
    for (std::int64_t b = 0; b < before && r.size_; ++b)
        for (std::int64_t i = 0; i < count; ++i, to += behind)
            std::memcpy(to, from + (b * length + begin + (i ? i * step : 0)) * behind,
                        static_cast<std::size_t>(behind));
    return r;
}

std::string Array::text() const try {
    std::string s = std::string(name_of(dtype())) + " " + text_of(shape_) + " {";
    for (std::int64_t i = 0; i < std::min<std::int64_t>(size_, 8); ++i)
        s += (i ? ", " : "") + number_text(at(i));
    return s + (size_ > 8 ? ", ...}" : "}");
} catch (const std::bad_alloc&) {
    making.fail();
}

bool same(const Array& a, const Array& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace bitale
