#include "runtime/io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bitale/error.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"

namespace bitale {

namespace {

class FileSource : public ByteSource {
  public:
    FileSource(std::string path, int file, std::uint64_t size)
        : ByteSource(std::move(path), size), file_(file) {}
    ~FileSource() override { close(file_); }
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    std::size_t read_at(std::uint64_t at, void* to, std::size_t count) override {
        std::size_t done = 0;
        while (done < count) {
            const ssize_t n =
                pread(file_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(at + done));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) file_error(path(), std::string("cannot be read: ") + std::strerror(errno));
            if (n == 0) break;
            done += static_cast<std::size_t>(n);
        }
        return done;
    }

  private:
    int file_;
};

class MemorySource : public ByteSource {
  public:
    MemorySource(std::string name, std::string_view bytes)
        : ByteSource(std::move(name), bytes.size()), bytes_(bytes) {}
    std::size_t read_at(std::uint64_t at, void* to, std::size_t count) override {
        if (at >= bytes_.size()) return 0;
        const std::string_view part = bytes_.substr(at, count);
        if (!part.empty()) std::memcpy(to, part.data(), part.size());
        return part.size();
    }

  private:
    std::string_view bytes_;
};

}  // namespace

void file_error(const std::string& path, const std::string& cause) {
    throw FileError(in_quotes(path) + " " + cause);
}

std::string ByteSource::part(std::uint64_t at, std::size_t count, const char* what) {
    // Nothing is allocated for bytes that the file has not.
    if (at > size_ || count > size_ - at)
        file_error(path_, "is truncated: " + std::string(what) + " needs " + std::to_string(count) +
                              " bytes at offset " + std::to_string(at) + " of " + std::to_string(size_));
    std::string bytes(count, '\0');
    if (read_at(at, bytes.data(), count) != count)
        file_error(path_, "is truncated: it became shorter while " + std::string(what) + " was read");
    return bytes;
}

std::unique_ptr<ByteSource> open_source(const std::string& path) {
    // Without waiting for somebody who writes into a pipe.
    const int file = outside::open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (file < 0) file_error(path, std::string("cannot be opened: ") + std::strerror(errno));
    struct stat s {};
    const bool known = fstat(file, &s) == 0;
    if (!known || !S_ISREG(s.st_mode)) {
        close(file);
        file_error(path, S_ISDIR(s.st_mode) ? "cannot be read: it is a folder"
                                            : "cannot be read: it is a pipe or a device; copy it to a file");
    }
    return std::make_unique<FileSource>(path, file, static_cast<std::uint64_t>(s.st_size));
}

std::unique_ptr<ByteSource> memory_source(std::string name, std::string_view bytes) {
    return std::make_unique<MemorySource>(std::move(name), bytes);
}

}  // namespace bitale
