// Reading NumPy's npz files: zip archives of npy files, stored or deflated.
#include <zlib.h>

#include <algorithm>
#include <string>

#include "bitale/io.h"
#include "graph/base/text.h"
#include "runtime/io/file.h"
#include "runtime/io/npy.h"
#include "runtime/io/save.h"

namespace bitale {

namespace {

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50,
                        end64_magic = 0x06064b50, locator64_magic = 0x07064b50;
constexpr std::uint64_t all_ones = 0xffffffff;

struct Entry {
    std::string name;
    std::uint64_t method = 0, crc = 0, packed = 0, size = 0, offset = 0;
};

std::uint64_t crc_of(std::string_view bytes) {
    return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

struct Directory {
    std::uint64_t entries = 0, offset = 0;
};

Directory find_directory(const std::string& path, std::string_view bytes) {
    // The end record is the last thing but for a comment of up to 65535 bytes.
    constexpr std::size_t record = 22;
    if (bytes.size() < record) file_error(path, "is no npz file, or truncated");
    for (std::size_t at = bytes.size() - record;; --at) {
        ByteReader r(path, bytes);
        r.seek(at, "the zip directory");
        if (r.little_endian(4, "the zip directory") == end_magic) {
            r.take(6, "the zip directory");
            Directory d;
            d.entries = r.little_endian(2, "the zip directory");
            r.take(4, "the zip directory");
            d.offset = r.little_endian(4, "the zip directory");
            if ((d.entries == 0xffff || d.offset == all_ones) && at >= 20) {
                r.seek(at - 20, "the zip64 locator");
                if (r.little_endian(4, "the zip64 locator") == locator64_magic) {
                    r.take(4, "the zip64 locator");
                    r.seek(r.little_endian(8, "the zip64 locator"), "the zip64 directory");
                    if (r.little_endian(4, "the zip64 directory") != end64_magic)
                        file_error(path, "has a damaged zip64 directory");
                    r.take(28, "the zip64 directory");
                    d.entries = r.little_endian(8, "the zip64 directory");
                    r.take(8, "the zip64 directory");
                    d.offset = r.little_endian(8, "the zip64 directory");
                }
            }
            return d;
        }
        if (at == 0 || bytes.size() - at > record + 65535)
            file_error(path, "is no npz file, or truncated: it has no zip directory");
    }
}

Entry read_entry(ByteReader& r) {
    const char* what = "the zip directory";
    if (r.little_endian(4, what) != central_magic) file_error(r.path(), "has a damaged zip directory");
    Entry e;
    r.take(4, what);
    const std::uint64_t flags = r.little_endian(2, what);
    e.method = r.little_endian(2, what);
    r.take(4, what);
    e.crc = r.little_endian(4, what);
    e.packed = r.little_endian(4, what);
    e.size = r.little_endian(4, what);
    const std::uint64_t name = r.little_endian(2, what), extra = r.little_endian(2, what),
                        comment = r.little_endian(2, what);
    r.take(8, what);
    e.offset = r.little_endian(4, what);
    e.name = std::string(r.take(name, what));
    if (has_control_characters(e.name))
        file_error(r.path(), "has an entry whose name holds control characters, " + in_quotes(e.name));
    ByteReader x(r.path(), r.take(extra, what));
    while (x.left() >= 4) {
        const std::uint64_t tag = x.little_endian(2, what), length = x.little_endian(2, what);
        ByteReader field(r.path(), x.take(length, what));
        if (tag != 1) continue;
        for (std::uint64_t* number : {&e.size, &e.packed, &e.offset})
            if (*number == all_ones) *number = field.little_endian(8, what);
    }
    r.take(comment, what);
    if ((flags & 1) != 0) file_error(r.path(), "is encrypted");
    return e;
}

std::string unpack(const std::string& path, const Entry& e, std::string_view packed) {
    const std::string subject = "entry " + in_quotes(e.name);
    std::string bytes;
    if (e.method == 0) {
        bytes = packed;
    } else if (e.method == Z_DEFLATED) {
        if (e.size > packed.size() * 1100 + 1024) file_error(path, subject + " claims an impossible size");
        bytes.resize(e.size);
        z_stream stream{};
        if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
            file_error(path, "cannot be unpacked: zlib has no memory");
        // zlib counts in 32 bits.
        std::size_t in = 0, out = 0;
        int status = Z_OK;
        constexpr std::size_t step = std::size_t{1} << 30;
        while (status == Z_OK) {
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
            stream.avail_in = static_cast<uInt>(std::min(step, packed.size() - in));
            stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + out);
            stream.avail_out = static_cast<uInt>(std::min(step, bytes.size() - out));
            const uInt in_before = stream.avail_in, out_before = stream.avail_out;
            status = inflate(&stream, Z_NO_FLUSH);
            in += in_before - stream.avail_in;
            out += out_before - stream.avail_out;
            if (status == Z_OK && in_before == stream.avail_in && out_before == stream.avail_out) break;
        }
        inflateEnd(&stream);
        if (status != Z_STREAM_END || out != bytes.size())
            file_error(path, subject + " is damaged: its deflate stream is broken");
    } else {
        file_error(path, subject + " is packed by method " + std::to_string(e.method) +
                             "; only stored and deflated ones can be read");
    }
    if (bytes.size() != e.size || crc_of(bytes) != e.crc)
        file_error(path, subject + " is damaged: its checksum differs");
    return bytes;
}

}  // namespace

std::map<std::string, Array> load_npz(const std::string& path) {
    const std::string bytes = read_bytes(path);
    const Directory directory = find_directory(path, bytes);
    ByteReader r(path, bytes);
    r.seek(directory.offset, "the zip directory");
    std::map<std::string, Array> values;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
        const Entry e = read_entry(r);
        ByteReader local(path, bytes);
        local.seek(e.offset, "a zip entry");
        if (local.little_endian(4, "a zip entry") != local_magic)
            file_error(path, "has a damaged entry " + in_quotes(e.name));
        local.take(22, "a zip entry");
        const std::uint64_t name = local.little_endian(2, "a zip entry"),
                            extra = local.little_endian(2, "a zip entry");
        local.take(name + extra, "a zip entry");
        const std::string npy = unpack(path, e, local.take(e.packed, "a zip entry"));
        std::string key = e.name;
        if (key.ends_with(".npy")) key.resize(key.size() - 4);
        values.insert_or_assign(key, parse_npy(path + ":" + e.name, npy));
    }
    return values;
}

}  // namespace bitale
