// Shared variables whose elements take fewer than 8 bits, or that stand for other numbers by a scale and an
// offset.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

// How an element is stored. uint8 and int8 convert to it, as in `.storage = uint8`; other dtypes throw
// TypeError.
class StorageType {
  public:
    constexpr StorageType(int bits, bool is_signed) : bits_(bits), is_signed_(is_signed) {}
    StorageType(DType dtype, Where where = Where::current());  // NOLINT
    constexpr int bits() const { return bits_; }
    constexpr bool is_signed() const { return is_signed_; }
    // The least and the greatest number that it holds.
    constexpr int least() const { return is_signed_ ? -(1 << (bits_ - 1)) : 0; }
    constexpr int most() const { return (1 << (is_signed_ ? bits_ - 1 : bits_)) - 1; }
    bool operator==(const StorageType&) const = default;

  private:
    int bits_;
    bool is_signed_;
};
inline constexpr StorageType uint1{1, false}, uint2{2, false}, uint4{4, false}, int4{4, true};
std::string name_of(StorageType type);  // "uint4"

struct StorageOptions {
    StorageType storage;
    // If either is given, an element k stands for the float32 number k * scale + offset; the other one is
    // then 1 or 0. A number, or an array that broadcasts to the variable's shape: [c, 1, 1] is one for each
    // channel of [n, c, h, w].
    std::optional<Array> scale{}, offset{};
    std::string name{};
};

// A shared variable that is stored in less memory than its values would take. In a graph it is an expression
// like any other: kernels unpack and scale the elements that they read, on every device, and rows that are
// gathered or sliced are rows of the bytes. No update can write it. Copies of the handle name the same
// storage. A handle that was made without a value, or moved from, is empty: every use of it throws
// GraphError.
//
// The bytes: if an axis of length d has f planes, it is ceil(d / f) bytes long, and its byte j holds the
// elements j, j + ceil(d / f), and so on, one of each plane. Planes of several axes are numbered in row-major
// order; plane 0 has the lowest bits. Axes are chosen so that the whole takes the fewest bytes, the leading
// one only if there is no other, so that its rows stay whole. Bits without an element are 0, and negative
// numbers are two's complements.
class PackedShared {
  public:
    PackedShared() = default;
    // The values: float32 with a scale or an offset, otherwise uint8 or int8. Waits as Shared::get_value
    // does.
    Array get_value() const;
    // Replaces the values, which are integers or booleans, with a scale or an offset also floats (TypeError).
    // Each becomes the nearest number k, ties to even. Throws IndexError for NaN and if a value is out of
    // range, naming the first such value, its position and a cure; ShapeError for another shape. If it
    // throws, the variable keeps its value.
    void set_value(const Array& value, Where where = Where::current()) const;
    const std::string& name() const;
    DType dtype() const;  // of the values
    Dims shape() const;
    StorageType storage() const;
    std::int64_t bytes() const;  // of the elements as they are stored
    Expr operator[](const Index& at) const;
    operator Expr() const;  // NOLINT: float32 with a scale or an offset, else uint8 or int8
    operator Arg() const;   // NOLINT

    // The variables that it consists of: the bytes, and float32 ones named "x.scale" and "x.offset" for a
    // variable "x", which are empty if there are none. Writing them changes what the elements stand for.
    const Shared& packed() const;
    const Shared& scale() const;
    const Shared& offset() const;
    // "uint4 [60000, 1, 28, 28] in planes [1, 1, 2, 1]": the last list is the number of planes along each
    // axis.
    std::string layout() const;

  private:
    struct State;
    friend PackedShared shared(const Array& value, const StorageOptions& options, Where where);
    const State& used() const;
    std::shared_ptr<const State> state_;
};

// A new packed variable: shared(pixels, {.storage = uint4, .scale = 17, .name = "images"}). Converts the
// value, and throws, as set_value does. Throws IndexError also if the scale is 0 or not finite, or the offset
// is not finite, and ShapeError if one of them does not broadcast to the value's shape.
PackedShared shared(const Array& value, const StorageOptions& options, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
