#include "runtime/io/save.h"

#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "bitale/io.h"
#include "graph/base/check.h"
#include "graph/base/numbers.h"
#include "graph/base/text.h"
#include "runtime/io/byte_source.h"
#include "runtime/io/load.h"

namespace bitale {

namespace {

const ApiBorder saving_border("to save an array; the file is as before");

const char* descr_of(DType dtype) {
    switch (dtype) {
        case DType::boolean: return "|b1";
        case DType::int8: return "|i1";
        case DType::int16: return "<i2";
        case DType::int32: return "<i4";
        case DType::int64: return "<i8";
        case DType::uint8: return "|u1";
        case DType::uint16: return "<u2";
        case DType::uint32: return "<u4";
        case DType::uint64: return "<u8";
        case DType::float16: return "<f2";
        case DType::float32: return "<f4";
        case DType::float64: return "<f8";
        case DType::bfloat16: break;
    }
    throw InternalError("an array of bfloat16 in an npy file");
}

void require_storable(const std::string& path, const std::string& what, const Array& value) {
    if (value.dtype() == DType::bfloat16)
        file_error(path,
                   "cannot be written: npy files cannot hold bfloat16, as " + what +
                       " is; save it as float32 (Array::as), or by a checkpoint in a .safetensors file");
}

std::string_view bytes_of(const Array& value) {
    return {static_cast<const char*>(value.data()), static_cast<std::size_t>(value.bytes())};
}

// What stands before the elements: little-endian, C order.
std::string npy_header(const Array& value) {
    std::string shape = "(";
    for (const std::int64_t d : value.shape()) shape += std::to_string(d) + ", ";
    if (value.rank() > 1)
        shape.resize(shape.size() - 2);
    else if (value.rank() == 1)
        shape.pop_back();
    std::string header = std::string("{'descr': '") + descr_of(value.dtype()) +
                         "', 'fortran_order': False, 'shape': " + shape + "), }";
    // The data begins at a multiple of 64, behind a newline.
    constexpr std::string_view magic("\x93NUMPY\1\0", 8);
    const std::size_t before = magic.size() + 2;
    header.append(63 - (before + header.size()) % 64, ' ');
    header += '\n';
    std::string text(magic);
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    return text + header;
}

void put(std::string& to, std::uint64_t x, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(x >> (8 * i) & 0xff);
}

constexpr std::uint64_t all_ones_32 = 0xffffffff, all_ones_16 = 0xffff;
constexpr int version = 20, version64 = 45;  // of the format that a reader has to know

// A number's field of `bytes` bytes; from `limit` on all ones, and the number in `extra`.
std::string field(std::uint64_t x, int bytes, std::uint64_t limit, std::string& extra) {
    std::string s;
    if (x >= limit) put(extra, x, 8);
    put(s, x >= limit ? all_ones_32 : x, bytes);
    return s;
}

// What a local header and the directory share of an entry, up to the lengths of name and extra field.
std::string common_fields(std::uint64_t crc, std::string_view sizes, std::size_t name, std::size_t extra) {
    std::string s;
    put(s, extra ? version64 : version, 2);
    put(s, 0x800, 2);  // names are UTF-8
    put(s, 0, 2);      // stored
    put(s, 0, 2);      // time and date: 1980-01-01, so that equal values give equal files
    put(s, 0x21, 2);
    put(s, crc, 4);
    s += sizes;
    put(s, name, 2);
    put(s, extra, 2);
    return s;
}

// An extra field of the kind "zip64", or none.
std::string zip64_extra(const std::string& numbers) {
    std::string s;
    if (numbers.empty()) return s;
    put(s, 1, 2);
    put(s, numbers.size(), 2);
    return s + numbers;
}

void put_end(AtomicFile& file, std::uint64_t entries, std::uint64_t offset, std::uint64_t bytes,
             std::uint64_t zip64_from) {
    const std::uint64_t most_entries = std::min(zip64_from, all_ones_16);
    std::string s;
    if (entries >= most_entries || offset >= zip64_from || bytes >= zip64_from) {
        const std::uint64_t end64 = file.written();
        put(s, 0x06064b50, 4);
        put(s, 44, 8);  // bytes that follow
        put(s, version64, 2);
        put(s, version64, 2);
        put(s, 0, 8);  // disks
        put(s, entries, 8);
        put(s, entries, 8);
        put(s, bytes, 8);
        put(s, offset, 8);
        put(s, 0x07064b50, 4);  // where this record is
        put(s, 0, 4);
        put(s, end64, 8);
        put(s, 1, 4);
        entries = all_ones_16;
        offset = bytes = all_ones_32;
    }
    put(s, 0x06054b50, 4);
    put(s, 0, 4);
    put(s, entries, 2);
    put(s, entries, 2);
    put(s, bytes, 4);
    put(s, offset, 4);
    put(s, 0, 2);
    file.write(s);
}

std::uint64_t crc_of(std::uint64_t before, std::string_view bytes) {
    return crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

}  // namespace

const ApiBorder& saving() { return saving_border; }

bool has_control_characters(const std::string& name) {
    return std::any_of(name.begin(), name.end(), is_control_character);
}

void write_npz(AtomicFile& file, const std::map<std::string, Array>& values, std::uint64_t zip64_from) {
    std::string directory;
    for (const auto& [key, value] : values) {
        const std::string name = key + ".npy", header = npy_header(value);
        const std::string_view elements = bytes_of(value);
        const std::uint64_t size = header.size() + elements.size(), offset = file.written();
        const std::uint64_t crc = crc_of(crc_of(0, header), elements);
        std::string numbers, sizes = field(size, 4, zip64_from, numbers);
        sizes += field(size, 4, zip64_from, numbers);  // packed and as it is: stored entries are both
        std::string local, extra = zip64_extra(numbers);
        put(local, 0x04034b50, 4);
        local += common_fields(crc, sizes, name.size(), extra.size()) + name + extra;
        file.write(local);
        file.write(header);
        file.write(elements);

        const std::string place = field(offset, 4, zip64_from, numbers);
        extra = zip64_extra(numbers);
        put(directory, 0x02014b50, 4);
        put(directory, version64, 2);  // version made by
        directory += common_fields(crc, sizes, name.size(), extra.size());
        put(directory, 0, 2);  // comment
        put(directory, 0, 2);  // disk
        put(directory, 0, 2);  // attributes
        put(directory, 0, 4);
        directory += place + name + extra;
    }
    const std::uint64_t offset = file.written();
    file.write(directory);
    put_end(file, values.size(), offset, directory.size(), zip64_from);
}

void save_npy(const std::string& path, const Array& value, SaveOptions options, Where where) {
    saving()(with_line(where, [&] {
        require_storable(path, "the array", value);
        const std::string header = npy_header(value);
        AtomicFile file(path, options.durable);
        file.write(header);
        file.write(bytes_of(value));
        file.commit();
    }));
}

void save_npz(const std::string& path, const std::map<std::string, Array>& values, SaveOptions options,
              Where where) {
    saving()(with_line(where, [&] {
        for (const auto& [key, value] : values) {
            constexpr std::size_t ending = 4;
            if (has_control_characters(key))
                file_error(path,
                           "cannot be written: the name " + in_quotes(key) + " holds control characters");
            if (key.size() + ending > all_ones_16)
                file_error(path, "cannot be written: a name of " + std::to_string(key.size()) +
                                     " bytes is longer than zip can have");
            require_storable(path, in_quotes(key), value);
        }
        AtomicFile file(path, options.durable);
        write_npz(file, values);
        file.commit();
    }));
}

}  // namespace bitale
