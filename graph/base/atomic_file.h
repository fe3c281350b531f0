// A file that is written whole or not at all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bitale {

// What is written goes to a file beside the target, of a name that nobody can foresee, and takes the target's
// place in commit(): readers see the old file or the new one. A target that is a link stays one, and the file
// behind it is replaced; a file keeps its mode, and its owner where we may give files away. What is no file,
// as a device or a pipe, is written directly. All throw FileError, naming the path and the cause; a file that
// was not committed leaves nothing behind, and what a killed process left goes with the next one.
class AtomicFile {
  public:
    // Without `durable`, a crash of the machine (not of the program) soon after may lose old and new.
    explicit AtomicFile(std::string path, bool durable = true);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(std::string_view bytes);
    std::uint64_t written() const { return written_; }
    void commit();

  private:
    struct Begun {};
    AtomicFile(Begun, std::string path, bool durable);  // whole, so that the destructor cleans up behind more
    [[noreturn]] void fail(const std::string& doing);
    void open_directly();
    void open_temporary(unsigned mode);
    void put(std::string_view bytes);
    void give_old_mode();
    void sync_folder();
    void drop();

    std::string path_;    // as the caller named it
    std::string target_;  // behind all links
    std::string folder_, temporary_;
    std::string buffer_;  // small pieces are written together
    std::uint64_t written_ = 0;
    struct Kept {
        mode_t mode = 0;
        uid_t owner = 0;
        gid_t group = 0;
    };
    std::optional<Kept> kept_;  // of the file that is replaced
    bool durable_;
    int file_ = -1;
};

// All of a file at once.
void save_file(const std::string& path, std::string_view bytes, bool durable = true);

// The same for the files of BITALE_DUMP, which soon lose their worth: a warning where they cannot be written.
void dump_file(const std::string& path, std::string_view text);

// Removes what processes that are dead had begun to save in the folder; the number of files.
int sweep_unfinished(const std::string& folder);

}  // namespace bitale
