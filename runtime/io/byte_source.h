// Bytes that readers of file formats take from wherever they want: those of a file, or of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bitale {

[[noreturn]] void file_error(const std::string& path, const std::string& cause);

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;

    // Fewer bytes than asked for only at the end. Throws FileError.
    virtual std::size_t read_at(std::uint64_t at, void* to, std::size_t count) = 0;
    // The bytes of a part that must be there; `what` completes the error's "... is truncated".
    std::string part(std::uint64_t at, std::size_t count, const char* what);
    std::uint64_t size() const { return size_; }
    const std::string& path() const { return path_; }

  protected:
    ByteSource(std::string path, std::uint64_t size) : path_(std::move(path)), size_(size) {}

  private:
    std::string path_;
    std::uint64_t size_;
};

// A regular file. Throws FileError for one that cannot be opened, and for pipes, devices and folders, which
// have no size and may never end.
std::unique_ptr<ByteSource> open_source(const std::string& path);
// Bytes that the caller keeps, under a name for messages.
std::unique_ptr<ByteSource> memory_source(std::string name, std::string_view bytes);

}  // namespace bitale
