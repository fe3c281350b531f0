#include "graph/base/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "graph/base/log.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"

namespace bitale {

namespace {

using outside::has_nul;
using outside::open_file;

constexpr std::string_view beginning = ".bitale-unfinished-";
constexpr std::size_t buffered = std::size_t{1} << 16;

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

// The path behind links, of which the last may lead to nothing: what is saved is then made there.
std::string behind_links(std::string path) {
    constexpr int most = 40;  // as Linux has it
    for (int i = 0; i < most; ++i) {
        std::vector<char> text(4096);
        const ssize_t n = readlink(path.c_str(), text.data(), text.size());
        if (n < 0 || static_cast<std::size_t>(n) == text.size()) return path;
        const std::string to(text.data(), static_cast<std::size_t>(n));
        path = to.starts_with('/') ? to : folder_of(path) + "/" + to;
    }
    return path;
}

bool lock_at_once(int file) {
    int status = 0;
    do {
        status = flock(file, LOCK_EX | LOCK_NB);
    } while (status < 0 && errno == EINTR);
    return status == 0;
}

// Whether the file still has a name.
bool has_name(int file) {
    struct stat s {};
    return fstat(file, &s) == 0 && s.st_nlink > 0;
}

}  // namespace

int sweep_unfinished(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> list(opendir(folder.c_str()), closedir);
    int removed = 0;
    while (const dirent* entry = list ? readdir(list.get()) : nullptr) {
        if (!std::string_view(entry->d_name).starts_with(beginning)) continue;
        const std::string path = folder + "/" + entry->d_name;
        // Who writes holds a lock, and loses it by dying; on another machine too.
        const int file = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        struct stat s {};
        if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && lock_at_once(file))
            removed += outside::remove_file(path) == 0;
        close(file);
    }
    return removed;
}

AtomicFile::AtomicFile(Begun, std::string path, bool durable)
    : path_(std::move(path)), target_(behind_links(path_)), folder_(folder_of(target_)), durable_(durable) {
    buffer_.reserve(buffered);
}

AtomicFile::AtomicFile(std::string path, bool durable) : AtomicFile(Begun(), std::move(path), durable) {
    struct stat s {};
    // By its own path: behind the links of /proc there may be a pipe, which has no path.
    const bool there = stat(path_.c_str(), &s) == 0;
    const bool refused = has_nul(path_) || (!there && errno == ELOOP);
    if (refused || (there && S_ISDIR(s.st_mode))) {
        if (!refused) errno = EISDIR;
        if (has_nul(path_)) errno = EINVAL;
        fail("be written");
    }
    if (there && !S_ISREG(s.st_mode)) {
        open_directly();
        return;
    }
    // A folder's rights allow a name to be replaced, whatever the file's own rights say; who may not write
    // the file does not want it replaced.
    if (there && faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail("be written");
    if (there) kept_ = Kept{s.st_mode & 0777, s.st_uid, s.st_gid};
    sweep_unfinished(folder_);
    // Nobody may read the new file who could not read the old one.
    open_temporary(there ? kept_->mode : 0666);
}

AtomicFile::~AtomicFile() { drop(); }

void AtomicFile::drop() {
    if (file_ < 0) return;
    // The lock is held until the name is gone.
    if (!temporary_.empty()) outside::remove_file(temporary_);
    close(file_);
    file_ = -1;
}

void AtomicFile::fail(const std::string& doing) {
    const std::string cause = std::strerror(errno);
    drop();
    throw FileError(in_quotes(path_) + " cannot " + doing + ": " + cause);
}

void AtomicFile::open_directly() {
    file_ = open_file(path_, O_WRONLY | O_NOCTTY);
    if (file_ < 0) fail("be written");
}

void AtomicFile::open_temporary(unsigned mode) {
    constexpr int attempts = 100;
    for (int i = 0; i < attempts; ++i) {
        temporary_ = folder_ + "/" + outside::unpredictable_name(beginning);
        file_ = open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (file_ < 0 && errno == EEXIST) continue;
        if (file_ < 0) {
            temporary_.clear();
            fail("be written");
        }
        // Where a file system knows no locks nobody can sweep either. Between the two calls somebody may have
        // taken the file for a dead process's.
        if (!lock_at_once(file_) && errno == EWOULDBLOCK) {
            drop();
            continue;
        }
        if (has_name(file_)) return;
        temporary_.clear();
        drop();
    }
    errno = EEXIST;
    fail("be written");
}

void AtomicFile::put(std::string_view bytes) {
    if (!outside::write_all(file_, bytes)) fail("be written");
}

void AtomicFile::write(std::string_view bytes) {
    written_ += bytes.size();
    if (buffer_.size() + bytes.size() > buffered) {
        put(buffer_);
        buffer_.clear();
    }
    if (bytes.size() > buffered)
        put(bytes);
    else
        buffer_ += bytes;
}

void AtomicFile::sync_folder() {
    const int folder = open_file(folder_, O_RDONLY | O_DIRECTORY);
    // Who may not read the folder can have all of its file system synced; some cannot sync folders at all.
    const bool synced = folder >= 0 ? outside::sync_file(folder) == 0 : syncfs(file_) == 0;
    const int code = errno;
    if (folder >= 0) close(folder);
    if (synced || code == EINVAL || code == ENOTSUP) return;
    errno = code;
    temporary_.clear();
    fail("be made durable, though it is written");
}

void AtomicFile::give_old_mode() {
    // Giving files away is for administrators, to another group for its members.
    mode_t mode = kept_->mode;
    const bool same_group =
        kept_->group == getegid() || fchown(file_, static_cast<uid_t>(-1), kept_->group) == 0;
    if (kept_->owner != geteuid() && fchown(file_, kept_->owner, static_cast<gid_t>(-1)) != 0) errno = 0;
    // Another group may do what everybody may.
    if (!same_group) mode = (mode & 0707) | (mode & 070 & mode << 3);
    if (fchmod(file_, mode) != 0) fail("be written");
}

void AtomicFile::commit() {
    put(buffer_);
    buffer_.clear();
    if (temporary_.empty()) {  // a device or a pipe, which need not know syncing
        if (close(std::exchange(file_, -1)) != 0) fail("be written");
        return;
    }
    if (kept_) give_old_mode();
    if (durable_ && outside::sync_file(file_) != 0 && errno != EINVAL && errno != ENOTSUP) fail("be written");
    // Some file systems say at closing that the disk is full. The lock stays with the other number.
    if (const int other = outside::open_again(file_); other >= 0 && close(other) != 0) fail("be written");
    if (outside::rename_file(temporary_, target_) != 0) fail("be written");
    temporary_.clear();
    if (durable_) sync_folder();
    close(std::exchange(file_, -1));
}

void save_file(const std::string& path, std::string_view bytes, bool durable) {
    AtomicFile file(path, durable);
    file.write(bytes);
    file.commit();
}

void dump_file(const std::string& path, std::string_view text) {
    try {
        save_file(path, text, /*durable=*/false);
    } catch (const FileError& e) {
        warn(std::string("BITALE_DUMP: ") + e.what());
    }
}

}  // namespace bitale
