#include "runtime/cache/workshop.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "bitale/error.h"
#include "graph/base/log.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"
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

namespace {

// Of a workshop in the cache, which nobody tidies up by hand: its files to where they may stay.
[[noreturn]] void fail_elsewhere(const Workshop& in_cache, std::string message) {
    std::optional<Workshop> kept;
    try {
        kept.emplace(temporary_folder());
        each_name(in_cache.path(), [&](const std::string& name) {
            const std::unique_ptr<ByteSource> file = open_source(in_cache.path() + "/" + name);
            kept->add(name, file->part(0, file->size(), name.c_str()));
        });
        kept->keep();
        const std::string& from = in_cache.path();
        for (std::size_t at = 0; (at = message.find(from, at)) != std::string::npos;)
            message.replace(at, from.size(), kept->path());
    } catch (const FileError&) {
        message += "its files could not be kept\n";
    }
    throw CompileError(message);
}

}  // namespace

void build_somewhere(const DiskCache* cache, const std::function<void(Workshop&)>& build) {
    std::string problem;
    std::optional<Workshop> workshop;
    if (cache && cache->usable()) try {
            workshop.emplace(cache->directory());
            return build(*workshop);
        } catch (const SameElsewhere& e) {
            fail_elsewhere(*workshop, e.what());
        } catch (const Error& e) {
            problem = e.what();
        }
    workshop.reset();
    try {
        workshop.emplace(temporary_folder());
        build(*workshop);
    } catch (const FileError& e) {
        throw CompileError("generated code cannot be compiled: " + std::string(e.what()));
    } catch (const CompileError&) {
        if (workshop) workshop->keep();
        throw;
    }
    if (!problem.empty())
        warn("compiled kernels are not kept between runs: nothing can be built in " +
             in_quotes(cache->directory()) + ": " + problem.substr(0, problem.find('\n')));
}

}  // namespace bitale
