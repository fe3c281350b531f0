// Values by a hash of their places, and targets.
#include <stdexcept>
#include <string>

#include "shapes/shapes.h"

namespace bench {

using namespace bitale;

namespace {

std::uint32_t hash(std::uint32_t i, std::uint32_t salt) {
    std::uint32_t x = i * 0x9E3779B1U + salt * 0x85EBCA77U;
    x = (x ^ (x >> 16)) * 0x7FEB352DU;
    x = (x ^ (x >> 15)) * 0x846CA68BU;
    return x ^ (x >> 16);
}

template <class T, class F>
Array filled(const Dims& shape, DType dtype, const F& value) {
    Array array(dtype, shape);
    auto* data = static_cast<T*>(array.mutable_data());
    for (std::int64_t i = 0; i < array.size(); ++i) data[i] = value(static_cast<std::uint32_t>(i));
    return array;
}

}  // namespace

Dims dims_of(const Json& lengths) { return lengths.get<Dims>(); }

Array floats(const Dims& shape, std::uint32_t salt, double low, double high) {
    return filled<float>(shape, float32, [&](std::uint32_t i) {
        return static_cast<float>(low + (high - low) * ((hash(i, salt) >> 8) * 0x1p-24));
    });
}

Array bytes(const Dims& shape, std::uint32_t salt, DType dtype) {
    return filled<std::uint8_t>(
        shape, dtype, [&](std::uint32_t i) { return static_cast<std::uint8_t>(hash(i, salt) >> 24); });
}

Array places(std::int64_t count, std::uint32_t salt, std::int64_t below) {
    return filled<std::int64_t>(
        {count}, int64, [&](std::uint32_t i) { return static_cast<std::int64_t>(hash(i, salt)) % below; });
}

Update result(const Dims& shape, const Expr& value, const std::string& name) {
    return {shared(zeros(shape, value.dtype()), name), value};
}

Updates update_of(const Json& row, Given& given) {
    for (const auto family : {reductions, convolutions, products, data_sets, others})
        if (Updates updates = family(row, given); !updates.empty()) return updates;
    throw std::runtime_error("unknown op " + row.at("op").get<std::string>());
}

}  // namespace bench
