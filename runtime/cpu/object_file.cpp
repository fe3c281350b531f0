// Where the parts of an ELF file lie, and whether the file is as long.
#include "runtime/cpu/object_file.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "graph/base/outside.h"

namespace bitale {

namespace {

class ObjectFile {
  public:
    // A pipe is opened without waiting for its other end.
    explicit ObjectFile(const std::string& path)
        : file_(outside::open_file(path, O_RDONLY | O_NONBLOCK)), error_(errno) {}
    ~ObjectFile() {
        if (file_ >= 0) close(file_);
    }
    ObjectFile(const ObjectFile&) = delete;
    ObjectFile& operator=(const ObjectFile&) = delete;

    std::string problem() {
        if (file_ < 0) return error_ == ENOENT ? "is not there" : cannot_be_read(error_);
        struct stat s {};
        if (fstat(file_, &s) != 0) return cannot_be_read(errno);
        if (!S_ISREG(s.st_mode)) return "is no regular file";
        size_ = static_cast<std::uint64_t>(s.st_size);
        const auto header = record_at<ElfW(Ehdr)>(0);
        if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return "is no ELF file";
        const bool native = header->e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32);
        if (!native || header->e_type != ET_DYN || header->e_phentsize != sizeof(ElfW(Phdr)))
            return "is no shared object of this machine";
        need(header->e_phoff, std::uint64_t{header->e_phnum} * header->e_phentsize);
        need(header->e_shoff, std::uint64_t{header->e_shnum} * header->e_shentsize);
        for (std::size_t p = 0; p < header->e_phnum && fits(); ++p)
            if (const auto part = record_at<ElfW(Phdr)>(header->e_phoff + p * sizeof(ElfW(Phdr))))
                need(part->p_offset, part->p_filesz);
        for (std::size_t s = 0; s < header->e_shnum && fits(); ++s)
            if (const auto part = record_at<ElfW(Shdr)>(header->e_shoff + s * header->e_shentsize);
                part && part->sh_type != SHT_NOBITS)
                need(part->sh_offset, part->sh_size);
        if (fits()) return "";
        return "is cut off: it has " + std::to_string(size_) + " bytes, its headers tell of " +
               std::to_string(needed_);
    }

  private:
    static std::string cannot_be_read(int code) {
        return std::string("cannot be read: ") + std::strerror(code);
    }

    template <class T>
    std::optional<T> record_at(std::uint64_t at) const {
        T record;
        if (at > size_ || size_ - at < sizeof record ||
            pread(file_, &record, sizeof record, static_cast<off_t>(at)) != ssize_t{sizeof record})
            return std::nullopt;
        return record;
    }

    void need(std::uint64_t offset, std::uint64_t bytes) {
        std::uint64_t end = 0;
        if (__builtin_add_overflow(offset, bytes, &end)) end = UINT64_MAX;
        if (end > needed_) needed_ = end;
    }
    bool fits() const { return needed_ <= size_; }

    const int file_;
    const int error_;
    std::uint64_t size_ = 0, needed_ = 0;
};

}  // namespace

std::string problem_of_object(const std::string& path) { return ObjectFile(path).problem(); }

}  // namespace bitale
