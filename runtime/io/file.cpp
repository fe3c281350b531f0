// Reading whole files.
#include "runtime/io/file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "bitale/error.h"
#include "graph/base/text.h"

namespace bitale {

void file_error(const std::string& path, const std::string& cause) {
    throw FileError(in_quotes(path) + " " + cause);
}

std::string read_bytes(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!file) file_error(path, std::string("cannot be opened: ") + std::strerror(errno));
    std::string bytes;
    char block[1 << 16];
    for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, file.get())) > 0;) bytes.append(block, n);
    if (std::ferror(file.get())) file_error(path, std::string("cannot be read: ") + std::strerror(errno));
    return bytes;
}

std::string read_maybe_gzip(const std::string& path) {
    const std::string packed = read_bytes(path);
    if (packed.size() < 2 || packed[0] != '\x1f' || packed[1] != '\x8b') return packed;
    if (packed.size() > 0xffffffffu) file_error(path, "is larger than 4 GiB: unpack it first");
    z_stream stream{};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        file_error(path, "cannot be unpacked: zlib has no memory");
    const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    std::string bytes;
    char block[1 << 16];
    for (;;) {
        stream.next_out = reinterpret_cast<Bytef*>(block);
        stream.avail_out = sizeof block;
        const int status = inflate(&stream, Z_NO_FLUSH);
        bytes.append(block, sizeof block - stream.avail_out);
        if (status == Z_STREAM_END) {
            if (stream.avail_in == 0) return bytes;
            inflateReset(&stream);  // another member follows
        } else if (status == Z_BUF_ERROR ||
                   (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
            file_error(
                path, "is truncated: its gzip stream ends after " + std::to_string(packed.size()) + " bytes");
        } else if (status != Z_OK) {
            file_error(path,
                       std::string("is damaged: ") + (stream.msg ? stream.msg : "no valid gzip stream"));
        }
    }
}

std::string_view ByteReader::take(std::size_t count, const char* what) {
    if (count > left())
        file_error(path_, "is truncated: " + std::string(what) + " needs " + std::to_string(count) +
                              " bytes at offset " + std::to_string(at_) + ", " + std::to_string(left()) +
                              " are left");
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
}

void ByteReader::seek(std::size_t at, const char* what) {
    if (at > bytes_.size()) file_error(path_, "is truncated: " + std::string(what) + " lies behind its end");
    at_ = at;
}

std::uint64_t ByteReader::little_endian(int bytes, const char* what) {
    const std::string_view part = take(static_cast<std::size_t>(bytes), what);
    std::uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; --i)
        x = x << 8 | static_cast<unsigned char>(part[static_cast<std::size_t>(i)]);
    return x;
}

std::uint64_t ByteReader::big_endian(int bytes, const char* what) {
    std::uint64_t x = 0;
    for (const char c : take(static_cast<std::size_t>(bytes), what))
        x = x << 8 | static_cast<unsigned char>(c);
    return x;
}

}  // namespace bitale
