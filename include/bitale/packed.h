// Shared variables whose elements take fewer than 8 bits, or that stand for others by a scale and an offset.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

// How an element is kept. Eight bits are those of a dtype: `.storage = uint8` and int8, else TypeError.
class StorageType {
  public:
    constexpr StorageType(int bits, bool is_signed) : bits_(bits), is_signed_(is_signed) {}
    StorageType(DType dtype, Where where = Where::current());  // NOLINT
    constexpr int bits() const { return bits_; }
    constexpr bool is_signed() const { return is_signed_; }
    // The numbers that it holds, both included.
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
    // With one of them an element k stands for the float32 number k * scale + offset; 1 and 0 where only the
    // other one is given. A number, or an array that broadcasts to the variable's shape: [c, 1, 1] is one for
    // each channel of [n, c, h, w].
    std::optional<Array> scale{}, offset{};
    std::string name{};
};

// A shared variable that is kept in less memory than its values would take. In a graph it is an expression
// like any other: kernels unpack and scale the elements that they have in hand, on every device, and rows
// that are gathered or sliced are rows of the bytes. No update can write it. Copies of the handle name the
// same storage; one that was made without a value, or moved from, is empty: every use of it throws
// GraphError.
//
// The bytes: an axis of length d that has f planes is ceil(d / f) bytes long, and its byte j holds the
// elements j, j + ceil(d / f), and so on, one of each plane. Planes of several axes are numbered in row-major
// order, plane 0 has the lowest bits. Axes are chosen so that the whole takes the fewest bytes, the leading
// one only where there is no other: its rows stay whole. Bits without an element are 0, and negative numbers
// two's complements.
class PackedShared {
  public:
    PackedShared() = default;
    // What it stands for: uint8 or int8, with a scale or an offset float32. As Shared::get_value.
    Array get_value() const;
    // Integers and booleans, with a scale or an offset floats too (TypeError): each becomes the nearest
    // number k, halves the even one. IndexError where that is out of range, naming the first such value, its
    // position and a cure, and for NaN; ShapeError for another shape. The variable is as before then.
    void set_value(const Array& value, Where where = Where::current()) const;
    const std::string& name() const;
    DType dtype() const;  // of the values
    Dims shape() const;
    StorageType storage() const;
    std::int64_t bytes() const;  // of the elements as they are kept
    Expr operator[](const Index& at) const;
    operator Expr() const;  // NOLINT: float32 with a scale or an offset, else uint8 or int8
    operator Arg() const;   // NOLINT

    // The variables that it is made of: the bytes, and float32 ones named "x.scale" and "x.offset" for "x",
    // which are empty where there are none. Writing them changes what the elements stand for.
    const Shared& packed() const;
    const Shared& scale() const;
    const Shared& offset() const;
    // "uint4 [60000, 1, 28, 28] in planes [1, 1, 2, 1]", of the number of planes along each axis.
    std::string layout() const;

  private:
    struct State;
    friend PackedShared shared(const Array& value, const StorageOptions& options, Where where);
    const State& used() const;
    std::shared_ptr<const State> state_;
};

// shared(pixels, {.storage = uint4, .scale = 17, .name = "images"}). Converts the value as set_value does;
// IndexError for a scale that is 0 or not finite and an offset that is not finite, ShapeError where one does
// not broadcast to the value's shape.
PackedShared shared(const Array& value, const StorageOptions& options, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
