#include "runtime/cache/workshop.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "bitale/error.h"
#include "graph/base/log.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"
#include "graph/base/turns.h"
#include "runtime/cache/names.h"
#include "runtime/io/byte_source.h"

namespace bitale {

namespace {

constexpr std::string_view beginning = "bitale-work-";
constexpr const char* marker = "kept";  // in workshops whose files a message names

void remove_all(const std::string& folder) {
    each_name(folder, [&](const std::string& name) { outside::remove_file(folder + "/" + name); });
    outside::remove_folder(folder);
}

bool lock_at_once(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0; }

}  // namespace

std::string temporary_folder() {
    const char* base = secure_getenv("TMPDIR");
    return base && *base ? base : "/tmp";
}

std::int64_t sweep_workshops(const std::string& base) {
    std::int64_t bytes = 0;
    each_name(base, [&](const std::string& name) {
        if (!name.starts_with(beginning)) return;
        const std::string path = base + "/" + name;
        const int folder = outside::open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (folder < 0) return;
        struct stat s {};
        const bool ours = fstat(folder, &s) == 0 && s.st_uid == geteuid();
        if (ours && access((path + "/" + marker).c_str(), F_OK) != 0 && lock_at_once(folder)) {
            remove_all(path);
        } else if (ours) {
            each_name(path, [&](const std::string& file) {
                if (lstat((path + "/" + file).c_str(), &s) == 0) bytes += s.st_size;
            });
        }
        close(folder);
    });
    return bytes;
}

Workshop::Workshop(const std::string& base) {
    sweep_workshops(base);
    constexpr int attempts = 100;
    for (int i = 0; i < attempts; ++i) {
        path_ = base + "/" + outside::unpredictable_name(beginning);
        // Until it is locked somebody may take the folder for a dead process's.
        if (outside::make_folder(path_, 0700) != 0) {
            if (errno == EEXIST) continue;
            break;
        }
        lock_ = outside::open_file(path_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (lock_ < 0) {
            const int code = errno;
            outside::remove_folder(path_);
            errno = code;
            if (code == ENOENT) continue;
            break;
        }
        struct stat s {};
        if ((lock_at_once(lock_) || errno != EWOULDBLOCK) && fstat(lock_, &s) == 0 && s.st_nlink > 0) return;
        close(lock_);
    }
    file_error(path_, std::string("cannot be made: ") + std::strerror(errno));
}

Workshop::~Workshop() {
    if (!kept_) remove_all(path_);
    close(lock_);
}

std::string Workshop::add(const std::string& name, std::string_view text) const {
    std::string path = path_ + "/" + name;
    const int file = outside::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    const bool written = file >= 0 && outside::write_all(file, text);
    const int code = errno;
    if (file >= 0 && close(file) == 0 && written) return path;
    file_error(path, std::string("cannot be written: ") + std::strerror(written ? errno : code));
}

void Workshop::keep() {
    kept_ = true;
    // Where the mark cannot be made the next sweep takes the files, which is no harm.
    if (const int file = outside::open_file(path_ + "/" + marker, O_WRONLY | O_CREAT, 0600); file >= 0)
        close(file);
}

std::string cure_for(std::string_view text) {
    const auto quotes = [&](int code) { return text.find(std::strerror(code)) != std::string_view::npos; };
    if (quotes(EMFILE) || quotes(ENFILE)) return "close files, or raise the limit of open files (ulimit -n)";
    if (quotes(ENOSPC) || quotes(EDQUOT))
        return "make room in the folder for temporary files, or name another one by the variable TMPDIR";
    if (quotes(ENOMEM) || quotes(EAGAIN))
        return "let programs end, or raise the limits of memory and of processes (ulimit -v, ulimit -u)";
    return "";
}

namespace {

// Where the files of each work that failed lie.
struct KeptFolders {
    ForkMutex mutex;
    std::map<std::string, std::string> of;
};

KeptFolders& kept_folders() {
    static KeptFolders& folders = *new KeptFolders;
    return folders;
}

// Empty where there is none, or somebody has tidied up.
std::string kept_before(const std::string& key) {
    const std::lock_guard lock(kept_folders().mutex);
    const auto at = kept_folders().of.find(key);
    const bool is_there =
        at != kept_folders().of.end() && access((at->second + "/" + marker).c_str(), F_OK) == 0;
    return is_there ? at->second : "";
}

void keep(Workshop& workshop, const std::string& key) {
    workshop.keep();
    const std::lock_guard lock(kept_folders().mutex);
    kept_folders().of[key] = workshop.path();
}

std::string moved(std::string message, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = message.find(from, at)) != std::string::npos; at += to.size())
        message.replace(at, from.size(), to);
    return message;
}

// Who tries the same again shall not fill the disk.
[[noreturn]] void fail_in(Workshop& workshop, const Work& work, const std::string& message) {
    const std::string before = kept_before(work.key);
    if (before.empty()) keep(workshop, work.key);
    throw CompileError(work.where, before.empty() ? message : moved(message, workshop.path(), before));
}

// Of a workshop in the cache, which nobody tidies up by hand: its files to where they may stay.
[[noreturn]] void fail_elsewhere(const Workshop& in_cache, const Work& work, std::string message) {
    if (const std::string before = kept_before(work.key); !before.empty())
        throw CompileError(work.where, moved(message, in_cache.path(), before));
    std::optional<Workshop> kept;
    try {
        kept.emplace(temporary_folder());
        each_name(in_cache.path(), [&](const std::string& name) {
            const std::unique_ptr<ByteSource> file = open_source(in_cache.path() + "/" + name);
            kept->add(name, file->part(0, file->size(), name.c_str()));
        });
        keep(*kept, work.key);
        message = moved(message, in_cache.path(), kept->path());
    } catch (const FileError&) {
        message += "its files could not be kept\n";
    }
    throw CompileError(work.where, message);
}

}  // namespace

void build_somewhere(const DiskCache* cache, const Work& work, const std::function<void(Workshop&)>& build) {
    std::string problem;
    std::optional<Workshop> workshop;
    if (cache && cache->usable()) try {
            workshop.emplace(cache->directory());
            return build(*workshop);
        } catch (const SameElsewhere& e) {
            fail_elsewhere(*workshop, work, e.what());
        } catch (const Error& e) {
            problem = e.what();
        }
    workshop.reset();
    try {
        workshop.emplace(temporary_folder());
        build(*workshop);
    } catch (const FileError& e) {
        const std::string cure = cure_for(e.what());
        throw CompileError(work.where,
                           "generated code" + (work.of.empty() ? "" : " " + work.of) +
                               " cannot be compiled: " + e.what() + "\nCure: " +
                               (cure.empty() ? "name a folder for temporary files that can be written by the "
                                               "variable TMPDIR"
                                             : cure));
    } catch (const CompileError& e) {
        if (!workshop) throw;
        fail_in(*workshop, work, e.what());
    }
    if (!problem.empty()) {
        const std::string nothing = "nothing can be built in " + in_quotes(cache->directory());
        warn("compiled kernels are not kept between runs: " + nothing + ": " +
                 problem.substr(0, problem.find('\n')),
             nothing);
    }
}

}  // namespace bitale
