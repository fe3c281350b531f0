// Whole files as bytes, plain or gzip.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bitale {

// All throw FileError naming the path and the cause.
std::string read_bytes(const std::string& path);
// Bytes of a gzip file; of any other file as they are.
std::string read_maybe_gzip(const std::string& path);

[[noreturn]] void file_error(const std::string& path, const std::string& cause);

// Takes parts off the front of a file's bytes; asking for more than there is throws FileError "is truncated".
class ByteReader {
  public:
    ByteReader(std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}
    std::string_view take(std::size_t count, const char* what);
    std::size_t left() const { return bytes_.size() - at_; }
    std::size_t at() const { return at_; }
    void seek(std::size_t at, const char* what);
    std::uint64_t little_endian(int bytes, const char* what);
    std::uint64_t big_endian(int bytes, const char* what);
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    std::string_view bytes_;
    std::size_t at_ = 0;
};

}  // namespace bitale
