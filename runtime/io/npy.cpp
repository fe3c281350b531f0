// Reading NumPy's npy files: versions 1 to 3, either byte order and either memory order.
#include "runtime/io/npy.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "bitale/io.h"
#include "runtime/io/file.h"

namespace bitale {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

struct Header {
    std::string descr, shape;
    bool fortran = false;
};

// The text after 'key': in the header's dictionary, up to the end of the value.
std::string value_of(const std::string& path, std::string_view header, const std::string& key) {
    std::size_t at = header.find("'" + key + "'");
    if (at == std::string_view::npos) at = header.find("\"" + key + "\"");
    if (at == std::string_view::npos) file_error(path, "has an npy header without " + key);
    at = header.find(':', at);
    if (at == std::string_view::npos) file_error(path, "has a malformed npy header");
    ++at;
    while (at < header.size() && header[at] == ' ') ++at;
    std::size_t end = at;
    if (end < header.size() && header[end] == '(')
        end = header.find(')', end) + 1;
    else if (end < header.size() && (header[end] == '\'' || header[end] == '"'))
        end = header.find(header[end], end + 1) + 1;
    else
        while (end < header.size() && header[end] != ',' && header[end] != '}') ++end;
    if (end <= at || end > header.size()) file_error(path, "has a malformed npy header");
    return std::string(header.substr(at, end - at));
}

Dims dims_of(const std::string& path, const std::string& text) {
    Dims dims;
    for (std::size_t i = 0; i < text.size();) {
        if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
            ++i;
            continue;
        }
        std::int64_t length = 0;
        for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i)
            if (__builtin_mul_overflow(length, 10, &length) ||
                __builtin_add_overflow(length, text[i] - '0', &length))
                file_error(path, "has an absurd shape, " + text);
        dims.push_back(length);
    }
    return dims;
}

// "<f4" -> float32. bfloat16 has no name in NumPy.
DType dtype_of_descr(const std::string& path, std::string_view descr) {
    const char kind = descr.empty() ? '?' : descr[0];
    const std::string_view width = descr.substr(std::min<std::size_t>(1, descr.size()));
    const std::pair<std::string_view, DType> known[] = {
        {"b1", DType::boolean}, {"i1", DType::int8},    {"i2", DType::int16},   {"i4", DType::int32},
        {"i8", DType::int64},   {"u1", DType::uint8},   {"u2", DType::uint16},  {"u4", DType::uint32},
        {"u8", DType::uint64},  {"f2", DType::float16}, {"f4", DType::float32}, {"f8", DType::float64}};
    for (const auto& [name, dtype] : known)
        if (name[0] == kind && name.substr(1) == width) return dtype;
    file_error(path, "holds elements of type '" + std::string(descr) + "', which no bitale dtype can hold");
}

void swap_bytes(Array& a) {
    const auto width = static_cast<std::size_t>(bytes_of(a.dtype()));
    auto* p = static_cast<char*>(a.mutable_data());
    for (std::int64_t i = 0; i < a.size(); ++i, p += width) std::reverse(p, p + width);
}

// Elements stored with the first axis fastest.
Array from_fortran(const Array& stored, const Dims& shape) {
    Array r(stored.dtype(), shape);
    const auto width = static_cast<std::size_t>(bytes_of(stored.dtype()));
    const char* from = static_cast<const char*>(stored.data());
    char* to = static_cast<char*>(r.mutable_data());
    std::vector<std::int64_t> at(shape.size(), 0);
    for (std::int64_t i = 0; i < r.size(); ++i) {
        std::int64_t offset = 0;
        for (std::size_t axis = shape.size(); axis-- > 0;) offset = offset * shape[axis] + at[axis];
        std::memcpy(to + static_cast<std::size_t>(i) * width, from + static_cast<std::size_t>(offset) * width,
                    width);
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            if (++at[axis] < shape[axis]) break;
            at[axis] = 0;
        }
    }
    return r;
}

}  // namespace

Array parse_npy(const std::string& path, std::string_view bytes) {
    ByteReader reader(path, bytes);
    if (bytes.substr(0, magic.size()) != magic) file_error(path, "is not an npy file");
    reader.take(magic.size(), "the npy magic");
    const auto version = reader.little_endian(2, "the npy version") & 0xff;
    if (version < 1 || version > 3)
        file_error(path, "has npy version " + std::to_string(version) + ", not 1 to 3");
    const std::uint64_t length = reader.little_endian(version == 1 ? 2 : 4, "the npy header");
    const std::string_view header = reader.take(length, "the npy header");
    std::string descr = value_of(path, header, "descr");
    if (descr.size() < 3 || (descr[0] != '\'' && descr[0] != '"'))
        file_error(path, "holds structured elements, " + descr + "; save one column");
    descr = descr.substr(1, descr.size() - 2);
    const bool big = descr[0] == '>';
    if (descr[0] == '<' || descr[0] == '>' || descr[0] == '|' || descr[0] == '=') descr.erase(0, 1);
    const bool fortran = value_of(path, header, "fortran_order") == "True";
    const Dims shape = dims_of(path, value_of(path, header, "shape"));
    const DType dtype = dtype_of_descr(path, descr);

    std::int64_t size = bytes_of(dtype);
    for (const std::int64_t d : shape)
        if (__builtin_mul_overflow(size, d, &size))
            file_error(path, "has an absurd shape, " + text_of(shape));
    const std::string_view data = reader.take(static_cast<std::size_t>(size), "the array");
    Array a(dtype, shape);
    if (size > 0) std::memcpy(a.mutable_data(), data.data(), data.size());
    if (big && bytes_of(dtype) > 1) swap_bytes(a);
    return fortran && shape.size() > 1 ? from_fortran(a, shape) : a;
}

Array load_npy(const std::string& path) { return parse_npy(path, read_bytes(path)); }

}  // namespace bitale
