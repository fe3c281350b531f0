// Files as other programs might write them, or as nobody should.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace bitale::test {

// An npy file with any header.
inline std::string npy_file(const std::string& header, const std::string& data, char version = 1) {
    std::string s("\x93NUMPY");
    if (header.size() > 0xffff) version = 2;
    s += version;
    s += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) s += static_cast<char>(header.size() >> (8 * i) & 0xff);
    return s + header + data;
}

// `window` as deflateInit2 takes it: 16 + MAX_WBITS for gzip, -MAX_WBITS for deflate alone.
inline std::string packed(const std::string& text, int window) {
    std::string r(compressBound(text.size()) + 64, '\0');
    z_stream stream{};
    if (deflateInit2(&stream, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error("deflateInit2 failed");
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(r.data());
    stream.avail_out = static_cast<uInt>(r.size());
    const int status = deflate(&stream, Z_FINISH);
    r.resize(r.size() - stream.avail_out);
    deflateEnd(&stream);
    if (status != Z_STREAM_END) throw std::runtime_error("deflate failed");
    return r;
}
inline std::string gzip(const std::string& text) { return packed(text, 16 + MAX_WBITS); }

// A zip archive whose directory may say anything.
class ZipFile {
  public:
    // The offset of the entry.
    std::uint64_t stored(const std::string& name, const std::string& text) { return add(name, text, 0); }
    std::uint64_t deflated(const std::string& name, const std::string& text) {
        return add(name, text, Z_DEFLATED);
    }
    // The directory names the entry at `offset` once more, by any name.
    void again(const std::string& name, std::uint64_t offset) {
        std::string common = body_.substr(offset + 4, 26);
        common[22] = static_cast<char>(name.size());
        list(common, name, offset);
    }
    // The directory becomes empty.
    void forget() {
        directory_.clear();
        entries_ = 0;
    }
    std::string text() const {
        std::string s = body_ + directory_;
        put(s, 0x06054b50, 4);
        put(s, 0, 4);
        put(s, entries_, 2);
        put(s, entries_, 2);
        put(s, directory_.size(), 4);
        put(s, body_.size(), 4);
        put(s, 0, 2);
        return s;
    }

  private:
    static void put(std::string& to, std::uint64_t x, int bytes) {
        for (int i = 0; i < bytes; ++i) to += static_cast<char>(x >> (8 * i) & 0xff);
    }
    std::uint64_t add(const std::string& name, const std::string& text, int method) {
        const std::string data = method == 0 ? text : packed(text, -MAX_WBITS);
        const std::uint64_t offset = body_.size();
        std::string common;
        put(common, 20, 2);
        put(common, 0, 2);
        put(common, static_cast<std::uint64_t>(method), 2);
        put(common, 0, 4);
        put(common, crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()), 4);
        put(common, data.size(), 4);
        put(common, text.size(), 4);
        put(common, name.size(), 2);
        put(common, 0, 2);
        put(body_, 0x04034b50, 4);
        body_ += common + name + data;
        list(common, name, offset);
        return offset;
    }
    void list(const std::string& common, const std::string& name, std::uint64_t offset) {
        put(directory_, 0x02014b50, 4);
        put(directory_, 20, 2);
        directory_ += common;
        put(directory_, 0, 8);
        put(directory_, 0, 2);
        put(directory_, offset, 4);
        directory_ += name;
        ++entries_;
    }

    std::string body_, directory_;
    std::uint64_t entries_ = 0;
};

}  // namespace bitale::test
