#include "graph/ir/bit_planes.h"

#include <algorithm>
#include <tuple>

#include "graph/base/check.h"

namespace bitale {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Calls f(first element of a row, first byte of its row, shift, count) for each part of a row of elements
// that is a row of bytes.
template <class F>
void for_each_run(const BitPlanes& p, F&& f) {
    if (count_of(p.shape) == 0) return;
    const std::size_t outer = p.shape.empty() ? 0 : p.shape.size() - 1;  // axes
    const std::int64_t length = p.shape.empty() ? 1 : p.shape.back(),
                       bytes = p.shape.empty() ? 1 : p.packed.back(),
                       planes = p.shape.empty() ? 1 : p.planes.back(), rows = count_of(p.shape) / length;
    Dims at(outer, 0);
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t byte_row = 0, plane = 0;
        for (std::size_t i = 0; i < outer; ++i) {
            plane = plane * p.planes[i] + at[i] / p.packed[i];
            byte_row = byte_row * p.packed[i] + at[i] % p.packed[i];
        }
        for (std::int64_t k = 0; k < planes && k * bytes < length; ++k)
            f(row * length + k * bytes, byte_row * bytes,
              static_cast<int>(plane * planes + k) * p.type.bits(), std::min(bytes, length - k * bytes));
        for (std::size_t i = outer; i > 0; --i) {
            if (++at[i - 1] < p.shape[i - 1]) break;
            at[i - 1] = 0;
        }
    }
}

}  // namespace

StorageType::StorageType(DType dtype, Where where) : bits_(8), is_signed_(dtype == DType::int8) {
    if (dtype != DType::int8 && dtype != DType::uint8)
        throw TypeError(where, "elements are stored as uint1, uint2, uint4, int4, uint8 or int8, not as " +
                                   std::string(name_of(dtype)) +
                                   "; shared(value) keeps the value's own type");
}

std::string name_of(StorageType type) {
    return (type.is_signed() ? "int" : "uint") + std::to_string(type.bits());
}

std::string BitPlanes::text() const {
    return name_of(type) + " " + text_of(shape) + " in planes " + text_of(planes);
}

BitPlanes bit_planes(StorageType type, const Dims& shape) {
    const std::size_t rank = shape.size(), first = rank > 1 ? 1 : 0;
    const std::int64_t all = 8 / type.bits();
    BitPlanes best{.type = type, .shape = shape, .planes = Dims(rank, 1), .packed = shape};
    if (rank == 0) return best;
    bool found = false;
    std::tuple<std::int64_t, std::int64_t, std::size_t> best_cost;
    Dims planes(rank, 1);
    // All ways, the inner axes first; of ways that cost the same the first one counts.
    const auto try_axis = [&](const auto& self, std::size_t axis, std::int64_t left) -> void {
        if (axis == first) {
            planes[axis] = left;
            Dims bytes = shape;
            std::size_t axes = 0;
            for (std::size_t i = 0; i < rank; ++i) {
                bytes[i] = ceil_div(shape[i], planes[i]);
                axes += planes[i] > 1 ? 1 : 0;
            }
            const std::tuple cost(count_of(bytes), planes.back(), axes);
            if (!found || cost < best_cost) {
                found = true;
                best_cost = cost;
                best.planes = planes;
                best.packed = bytes;
            }
            return;
        }
        for (std::int64_t own = left; own >= 1; own /= 2) {
            planes[axis] = own;
            self(self, axis - 1, left / own);
        }
    };
    try_axis(try_axis, rank - 1, all);
    return best;
}

Array packed(const BitPlanes& planes, const Array& codes) {
    BITALE_CHECK(codes.dtype() == DType::uint8 && codes.shape() == planes.shape, "codes of another shape");
    Array bytes(DType::uint8, planes.packed);
    const auto* from = static_cast<const std::uint8_t*>(codes.data());
    auto* to = static_cast<std::uint8_t*>(bytes.mutable_data());
    for_each_run(planes, [&](std::int64_t element, std::int64_t byte, int shift, std::int64_t count) {
        for (std::int64_t j = 0; j < count; ++j)
            to[byte + j] = static_cast<std::uint8_t>(to[byte + j] | from[element + j] << shift);
    });
    return bytes;
}

Array unpacked(const BitPlanes& planes, const Array& bytes) {
    BITALE_CHECK(bytes.dtype() == DType::uint8 && bytes.shape() == planes.packed, "bytes of another shape");
    Array codes(DType::uint8, planes.shape);
    const int mask = (1 << planes.type.bits()) - 1;
    const auto* from = static_cast<const std::uint8_t*>(bytes.data());
    auto* to = static_cast<std::uint8_t*>(codes.mutable_data());
    for_each_run(planes, [&](std::int64_t element, std::int64_t byte, int shift, std::int64_t count) {
        for (std::int64_t j = 0; j < count; ++j)
            to[element + j] = static_cast<std::uint8_t>(from[byte + j] >> shift & mask);
    });
    return codes;
}

}  // namespace bitale
