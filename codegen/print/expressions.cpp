#include "codegen/print/expressions.h"

#include <fmt/format.h>
#include <algorithm>

#include <cmath>
#include <cstdint>

#include "codegen/print/c_family.h"
#include "graph/base/check.h"
#include "graph/base/numbers.h"

namespace bitale {

std::string literal(DType dtype, double number, std::int64_t integer) {
    switch (dtype) {
        case DType::boolean: return integer ? "true" : "false";
        case DType::float32:
        case DType::float64: {
            const bool single = dtype == DType::float32;
            if (std::isnan(number))
                return single ? "b_float(0x7fc00000u)" : "b_double(0x7ff8000000000000ull)";
            if (std::isinf(number))
                return std::string(number < 0 ? "(-" : "(") +
                       (single ? "b_float(0x7f800000u))" : "b_double(0x7ff0000000000000ull))");
            std::string s = number_text(number, single ? 9 : 17);
            if (s.find_first_of(".e") == std::string::npos) s += ".0";
            if (single) s += "f";
            return s[0] == '-' ? "(" + s + ")" : s;
        }
        case DType::float16: return "b_to_f16(" + literal(DType::float32, number, 0) + ")";
        case DType::bfloat16: return "b_to_bf16(" + literal(DType::float32, number, 0) + ")";
        case DType::uint64: return std::to_string(static_cast<std::uint64_t>(integer)) + "ull";
        default: break;
    }
    if (integer == INT64_MIN) return "(-9223372036854775807ll - 1)";
    const std::string s = std::to_string(integer) + (bits_of(dtype) == 64 ? "ll" : "");
    return "((" + std::string(c_type(dtype)) + ")" + (integer < 0 ? "(" + s + ")" : s) + ")";
}

std::string instantiate(const std::string& text, const std::vector<std::string>& arguments) {
    std::string r;
    const auto word = [](char c) { return is_letter_or_digit(c) || c == '_' || c == '.'; };
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && word(text[end])) ++end;
        if (end == i + 1 && text[i] >= 'a' && text[i] < static_cast<char>('a' + arguments.size()))
            r += arguments[text[i] - 'a'];
        else
            r += text.substr(i, std::max<std::size_t>(end - i, 1));
        i = std::max(end, i + 1);
    }
    return r;
}

std::string better_than(bool least, DType dtype, const std::string& value, const std::string& best,
                        const std::string& there) {
    std::string better = fmt::format("!({} {} {})", value, least ? ">=" : "<=", best);
    if (is_float(dtype)) better += fmt::format(" & ({0} == {0})", best);
    return there.empty() ? better : fmt::format("({} < 0) | ({})", there, better);
}

std::string combined(Combine combine, DType dtype, const std::string& a, const std::string& b) {
    switch (combine) {
        case Combine::sum:
        case Combine::prod: {
            const std::string sign = combine == Combine::sum ? " + " : " * ";
            return is_integer(dtype)
                       ? "(" + std::string(c_type(dtype)) + ")((u64)" + a + sign + "(u64)" + b + ")"
                       : a + sign + b;
        }
        case Combine::max: return "b_maximum(" + a + ", " + b + ")";
        case Combine::min: return "b_minimum(" + a + ", " + b + ")";
        case Combine::any: return a + " | " + b;
        case Combine::all: return a + " & " + b;
        default: break;
    }
    BITALE_CHECK(false, "a combine that is no operation on two values");
    return "";
}

const char* stored_type(DType dtype, bool cuda) {
    return dtype == DType::boolean && !cuda ? "u8" : c_type(dtype);
}

std::string text_of_op(const ScalarNode& s) {
    const MapInfo& map = *s.op->map;
    const bool integer =
        !s.arguments.empty() && !is_float(s.arguments.back()->dtype) && !map.integer_text.empty();
    return integer ? map.integer_text : map.text;
}

std::string cast_call(DType to, const std::string& value, DType from) {
    if (to == from) return value;
    // Compilers have no conversion of a register of conditions, but choose between two numbers by it.
    if (from == DType::boolean && to != DType::float16 && to != DType::bfloat16)
        return fmt::format("({0} ? ({1})1 : ({1})0)", value, c_type(to));
    return "b_to_" + std::string(c_type(to)) + "(" + value + ")";
}

const char* c_type(DType dtype) {
    static const char* const names[dtype_count] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                                   "u32",  "u64", "f16", "bf16", "f32", "f64"};
    return names[static_cast<int>(dtype)];
}

}  // namespace bitale
