#include "bitale/dtype.h"

#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "bitale/error.h"
#include "graph/base/text.h"

namespace bitale {

namespace {
constexpr std::string_view names[dtype_count] = {"boolean",  "int8",    "int16",  "int32",  "int64",
                                                 "uint8",    "uint16",  "uint32", "uint64", "float16",
                                                 "bfloat16", "float32", "float64"};
// Of C++ and of other libraries, where letters alone would suggest another type.
constexpr std::pair<std::string_view, std::string_view> names_elsewhere[] = {
    {"float", "float32"}, {"double", "float64"}, {"half", "float16"}, {"int", "int32"},
    {"long", "int64"},    {"bool", "boolean"},   {"byte", "uint8"},   {"single", "float32"}};
}  // namespace

std::string_view name_of(DType t) { return names[static_cast<int>(t)]; }

DType dtype_named(std::string_view name) {
    for (int i = 0; i < dtype_count; ++i)
        if (names[i] == name) return static_cast<DType>(i);
    for (const auto& [elsewhere, here] : names_elsewhere)
        if (elsewhere == name)
            throw TypeError("unknown dtype " + in_quotes(name) + "; did you mean " + in_quotes(here) + "?");
    throw TypeError("unknown dtype " + in_quotes(name) +
                    did_you_mean(name, {std::begin(names), std::end(names)}));
}

Float16::Float16(float value) {
    const std::uint32_t f = std::bit_cast<std::uint32_t>(value), sign = (f >> 16) & 0x8000u,
                        magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        bits = static_cast<std::uint16_t>(sign | 0x7e00u);
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
        bits = static_cast<std::uint16_t>(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {  // subnormal: let the float unit round at the right bit
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    } else {
        const std::uint32_t odd = (magnitude >> 13) & 1u;
        bits = static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
}

Float16::operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
    if (rest < 0x400u) {
        const float tiny = static_cast<float>(rest) * 0x1p-24f;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(tiny) | sign);
    }
    return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
}

BFloat16::BFloat16(float value) {
    const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
    bits = (f & 0x7fffffffu) > 0x7f800000u
               ? static_cast<std::uint16_t>((f >> 16) | 0x40u)
               : static_cast<std::uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace bitale
