// Array: a dense, row-major array in host memory, which compiled functions and shared variables take and
// return.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bitale/dtype.h"
#include "bitale/error.h"

#pragma GCC visibility push(default)

namespace bitale {

using Dims = std::vector<std::int64_t>;

std::int64_t count_of(const Dims& shape);  // the product of the lengths; 1 for rank 0
std::string text_of(const Dims& shape);    // "[2, 3]"

// A dense, row-major host array. Copies share their bytes until one of them is written (mutable_data). An
// array that was moved from is empty: every use of it throws GraphError until a value is assigned to it.
// Whatever needs new memory throws OutOfMemory if there is none.
class Array {
  public:
    Array() : Array(DType::float32, one_axis(0)) {}
    Array(const Array& other);
    Array(Array&& other) noexcept = default;
    Array& operator=(const Array& other);
    Array& operator=(Array&& other) noexcept;
    ~Array() = default;
    // Zero-filled. Throws ShapeError for a negative length.
    Array(DType dtype, Dims shape);
    // A rank-0 array of the number's own dtype.
    template <Number T>
    // NOLINTNEXTLINE(*-explicit-*)
    Array(T scalar) : Array(dtype_of<T>(), Dims{}) {
        *static_cast<Stored<T>*>(mutable_data()) = static_cast<Stored<T>>(scalar);
    }
    // [n], of T's dtype.
    template <Element T>
    requires(!std::is_same_v<T, bool>) Array(const std::vector<T>& values)  // NOLINT
        : Array(std::span<const T>(values), one_axis(values.size())) {}
    Array(const std::vector<bool>& values);  // NOLINT
    // Throws ShapeError unless the shape has as many elements as the span.
    template <Element T>
    Array(std::span<const T> values, Dims shape) : Array(dtype_of<T>(), std::move(shape)) {
        fill_from(values.data(), values.size());
    }
    template <Element T>
    requires(!std::is_same_v<T, bool>) Array(const std::vector<T>& values, Dims shape)
        : Array(std::span<const T>(values), std::move(shape)) {}
    // Array v = {1, 2, 3} is int32 [3], Array m = {{1.F, 2.F}, {3.F, 4.F}} is float32 [2, 2], and so on for
    // three axes. All numbers must have one C++ type, which gives the dtype. Throws ShapeError unless all
    // rows are equally long.
    template <Element T>
    Array(std::initializer_list<T> values)  // NOLINT
        : Array(std::span<const T>(values.begin(), values.size()), one_axis(values.size())) {}
    template <Element T>
    Array(std::initializer_list<std::initializer_list<T>> rows)  // NOLINT
        : Array(dtype_of<T>(), shape_of_rows(rows.size(), rows.size() ? rows.begin()->size() : 0)) {
        std::size_t i = 0;
        for (const std::initializer_list<T>& row : rows) fill_row(i++, row.begin(), row.size());
    }
    template <Element T>
    Array(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes)  // NOLINT
        try
        : Array(stacked(std::vector<Array>(planes.begin(), planes.end()))) {
    } catch (const std::bad_alloc&) {
        no_memory();
    }

    // An array over memory that exists already, without a copy. The memory must begin at a multiple of 64
    // bytes, and the 64 bytes behind the last element must be readable. While the array, a copy of it, or a
    // variable that was given it is there, only they may write it: copies share it until then. The deleter
    // runs when the last copy of the array is destroyed, which may happen in any thread that sets a variable
    // or calls a function. That thread holds no locks of Bitale then, so the deleter may wait for locks of
    // the program, and may use variables and functions. It must not throw. Throws Error for a null pointer,
    // unless the shape has no elements.
    static Array adopt(DType dtype, Dims shape, std::shared_ptr<void> storage);

    DType dtype() const { return used().dtype_; }
    const Dims& shape() const { return used().shape_; }
    int rank() const { return static_cast<int>(shape().size()); }
    std::int64_t size() const { return used().size_; }  // elements
    std::int64_t bytes() const { return size() * bytes_of(dtype_); }

    // The elements. They begin at a multiple of 64 bytes, and the 64 bytes behind the last one may be read.
    // mutable_data() first copies elements that other arrays share.
    const void* data() const { return used().storage_.get(); }
    void* mutable_data();

    // Element i in row-major order, converted to T as cast does. 64-bit integers keep every digit as
    // std::int64_t and std::uint64_t, and are rounded as double. Throws IndexError unless 0 <= i < size().
    template <Number T>
    T at(std::int64_t i) const {
        Stored<T> x;
        convert_element(i, dtype_of<T>(), &x);
        return x;
    }
    double at(std::int64_t i) const { return at<double>(i); }
    // The only element, converted in the same way. Throws ShapeError unless there is exactly one.
    template <Number T>
    T item() const {
        require_one();
        return at<T>(0);
    }
    operator double() const { return item<double>(); }  // NOLINT: `total += step(i)`
    // All elements in row-major order, converted to T as cast does.
    template <Element T>
    std::vector<T> to_vector() const {
        const Array same = as(dtype_of<T>());
        const T* first = static_cast<const T*>(same.data());
        try {
            return std::vector<T>(first, first + size_);
        } catch (const std::bad_alloc&) {
            no_memory();
        }
    }
    // The elements where they are, without a copy. Throws TypeError unless T is the C++ type of the dtype.
    template <Element T>
    std::span<const T> view() const {
        require(dtype_of<T>());
        return {static_cast<const T*>(data()), static_cast<std::size_t>(size_)};
    }

    // The same elements in another dtype, converted as bitale::cast does: a float that becomes an integer is
    // truncated and saturates, NaN gives 0, integers wrap, and a boolean is x != 0.
    Array as(DType dtype) const;
    // The same elements in row-major order, in another shape. Throws ShapeError unless the numbers of
    // elements agree.
    Array reshaped(Dims shape) const;
    // Rows first to last - 1 along axis 0, a copy. Throws IndexError unless 0 <= first <= last <= the length
    // of axis 0.
    Array rows(std::int64_t first, std::int64_t last) const;
    // Part i along axis 0, without that axis, a copy: row i of a matrix. A negative i counts from the end.
    // Throws IndexError if there is no such part.
    Array operator[](std::int64_t i) const;
    // NumPy's first:last:step along an axis, a copy. Negative bounds count from the end, and bounds are
    // clipped to the axis. Without `last` the slice goes to the end of the axis, or to its beginning if the
    // step is negative. Throws IndexError if there is no such axis, and for step 0.
    Array slice(int axis, std::int64_t first, std::optional<std::int64_t> last = {},
                std::int64_t step = 1) const;
    std::string text() const;  // dtype, shape and first elements

  private:
    friend struct SharedState;
    friend struct ArrayMemory;  // of graph/ir/borrowed.h
    Array(DType dtype, Dims shape, std::shared_ptr<void> storage);
    bool is_shared() const;  // with other arrays, or lent by another library
    static Dims one_axis(std::size_t length);
    static Dims shape_of_rows(std::size_t rows, std::size_t columns);
    static Array stacked(const std::vector<Array>& parts);
    void fill_row(std::size_t row, const void* values, std::size_t count);
    const Array& used() const {
        if (!storage_) moved_from();
        return *this;
    }
    [[noreturn]] static void moved_from();
    [[noreturn]] static void no_memory();
    void require_one() const;
    void convert_element(std::int64_t i, DType dtype, void* to) const;
    void require(DType dtype) const;
    void fill_from(const void* values, std::size_t count);

    DType dtype_;
    Dims shape_;
    std::int64_t size_ = 0;
    std::shared_ptr<void> storage_;  // null: moved from
};

// Whether dtype, shape and all bytes are equal. So NaN equals itself, and 0 differs from -0.
bool same(const Array& a, const Array& b);

struct PrintOptions {
    int digits = 8;           // after the point, at most
    std::int64_t all = 1000;  // a larger array is abridged to `edge` elements at each end of an axis
    std::int64_t edge = 3;
    int width = 75;  // of a line
};
// The elements as NumPy prints them: [[1.  2.5] [3.  4. ]], one row on a line.
std::string to_text(const Array& value, PrintOptions options = {});
// Writes to_text(value).
std::ostream& print(std::ostream& out, const Array& value);
// For arrays only: std::cout << step(0) prints the number that the result converts to.
template <std::same_as<Array> A>
std::ostream& operator<<(std::ostream& out, const A& value) {
    return print(out, value);
}

}  // namespace bitale

#pragma GCC visibility pop
