// The idx format of the MNIST files: a magic with the element type and the rank, lengths, elements;
// big-endian.
#include <algorithm>
#include <cstring>

#include "bitale/io.h"
#include "runtime/io/file.h"

namespace bitale {

namespace {

DType dtype_of_code(const std::string& path, unsigned code) {
    switch (code) {
        case 0x08: return DType::uint8;
        case 0x09: return DType::int8;
        case 0x0b: return DType::int16;
        case 0x0c: return DType::int32;
        case 0x0d: return DType::float32;
        case 0x0e: return DType::float64;
        default: file_error(path, "is not an idx file: its element type is " + std::to_string(code));
    }
}

}  // namespace

Array load_idx(const std::string& path) {
    const std::string bytes = read_maybe_gzip(path);
    ByteReader reader(path, bytes);
    const std::uint64_t magic = reader.big_endian(4, "the idx header");
    if (magic >> 16 != 0) file_error(path, "is not an idx file: it does not begin with two zero bytes");
    const DType dtype = dtype_of_code(path, static_cast<unsigned>(magic >> 8 & 0xff));
    Dims shape;
    std::int64_t size = bytes_of(dtype);
    for (std::uint64_t axis = 0; axis < (magic & 0xff); ++axis) {
        shape.push_back(static_cast<std::int64_t>(reader.big_endian(4, "the idx header")));
        if (__builtin_mul_overflow(size, shape.back(), &size))
            file_error(path, "has an absurd shape, " + text_of(shape));
    }
    const std::string_view data = reader.take(static_cast<std::size_t>(size), "the elements");
    if (reader.left() != 0)
        file_error(path, "is no idx file of shape " + text_of(shape) + ": " + std::to_string(reader.left()) +
                             " bytes are left over");
    Array a(dtype, shape);
    char* to = static_cast<char*>(a.mutable_data());
    if (size > 0) std::memcpy(to, data.data(), data.size());
    const std::int64_t width = bytes_of(dtype);
    if (width > 1)
        for (std::int64_t i = 0; i < a.size(); ++i) std::reverse(to + i * width, to + (i + 1) * width);
    return a;
}

}  // namespace bitale
