// The idx format of the MNIST files: a magic with the element type and the rank, lengths, elements;
// big-endian.
#include <cstdint>

#include "bitale/io.h"
#include "runtime/io/load.h"

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

std::uint32_t big_endian(Stream& stream) {
    std::uint32_t x = 0;
    for (const char c : stream.take(4, "the idx header")) x = x << 8 | static_cast<unsigned char>(c);
    return x;
}

}  // namespace

Array read_idx(ByteSource& input, const LoadLimits& limits) {
    const std::unique_ptr<Stream> stream = file_stream(input);
    LoadBudget budget(limits);
    const std::uint32_t magic = big_endian(*stream);
    if (magic >> 16 != 0)
        file_error(input.path(), "is not an idx file: it does not begin with two zero bytes");
    const DType dtype = dtype_of_code(input.path(), magic >> 8 & 0xff);
    budget.check_rank(magic & 0xff, *stream);
    Dims shape;
    for (std::uint32_t axis = 0; axis < (magic & 0xff); ++axis) shape.push_back(big_endian(*stream));
    Array a = budget.array(dtype, shape, *stream);
    stream->take(a.mutable_data(), static_cast<std::size_t>(a.bytes()), "the elements");
    stream->finish("the elements");
    swap_bytes(a);
    return a;
}

Array load_idx(const std::string& path, LoadLimits limits, Where where) {
    return loading()(with_line(where, [&] { return read_idx(*open_source(path), limits); }));
}

}  // namespace bitale
