// Reading NumPy's npy files: versions 1 to 3, either byte order and either memory order.
#include "runtime/io/load.h"

#include <algorithm>
#include <cstring>

#include "bitale/io.h"
#include "runtime/io/npy_header.h"

namespace bitale {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
// Headers of plain arrays take some hundred bytes.
constexpr std::size_t longest_header = std::size_t{64} << 10;

std::size_t little_endian(std::string_view bytes) {
    std::size_t x = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) x = x << 8 | static_cast<unsigned char>(bytes[i]);
    return x;
}

// The first axis is fastest in the file: each element goes to its place as it comes.
void read_fortran(Stream& stream, Array& a) {
    const Dims& shape = a.shape();
    const auto width = static_cast<std::int64_t>(bytes_of(a.dtype()));
    Dims strides(shape.size(), width), at(shape.size(), 0);
    for (std::size_t axis = shape.size() - 1; axis-- > 0;)
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    char* const to = static_cast<char*>(a.mutable_data());
    std::string block(std::size_t{64} << 10, '\0');
    std::int64_t place = 0;
    for (std::int64_t left = a.bytes(); left > 0;) {
        const std::int64_t n = std::min<std::int64_t>(left, static_cast<std::int64_t>(block.size()));
        stream.take(block.data(), static_cast<std::size_t>(n), "the array");
        left -= n;
        for (std::int64_t i = 0; i < n; i += width) {
            std::memcpy(to + place, block.data() + i, static_cast<std::size_t>(width));
            for (std::size_t axis = 0; axis < shape.size(); ++axis) {
                place += strides[axis];
                if (++at[axis] < shape[axis]) break;
                place -= strides[axis] * shape[axis];
                at[axis] = 0;
            }
        }
    }
}

}  // namespace

Array read_npy(Stream& stream, LoadBudget& budget) {
    const std::string& path = stream.path();
    char begin[magic.size()] = {};
    if (stream.read(begin, sizeof begin) != sizeof begin || std::string_view(begin, sizeof begin) != magic)
        file_error(path, std::string_view(begin, 2) == "PK"
                             ? "is not an npy file, but looks like an npz file: use load_npz"
                             : "is not an npy file");
    const std::string versions = stream.take(2, "the npy version");
    const int version = static_cast<unsigned char>(versions[0]);
    if (version < 1 || version > 3)
        file_error(path, "has npy version " + std::to_string(version) + ", not 1 to 3");
    const std::size_t length = little_endian(stream.take(version == 1 ? 2 : 4, "the npy header"));
    if (length > longest_header)
        file_error(path,
                   "has an npy header of " + std::to_string(length) + " bytes, more than any array needs");
    const NpyHeader header = parse_npy_header(path, stream.take(length, "the npy header"));

    Array a = budget.array(header.dtype, header.shape, stream);
    if (header.fortran_order && header.shape.size() > 1)
        read_fortran(stream, a);
    else
        stream.take(a.mutable_data(), static_cast<std::size_t>(a.bytes()), "the array");
    stream.finish("the array");
    if (header.big_endian) swap_bytes(a);
    normalize_booleans(a);
    return a;
}

Array read_npy(ByteSource& input, const LoadLimits& limits) {
    LoadBudget budget(limits);
    const std::unique_ptr<Stream> stream = plain_stream(input, 0, input.size(), input.path());
    return read_npy(*stream, budget);
}

namespace {

const ApiBorder loading_border("to load a file");

}  // namespace

const ApiBorder& loading() { return loading_border; }

Array load_npy(const std::string& path, LoadLimits limits, Where where) {
    return loading()(with_line(where, [&] { return read_npy(*open_source(path), limits); }));
}

}  // namespace bitale
