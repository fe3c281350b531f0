// Sealing, verifying, and sweeping of the cache folder.
#include "runtime/cache/disk_cache.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

#include "graph/base/options.h"
#include "runtime/cache/sha256.h"

namespace bitale {

namespace fs = std::filesystem;

namespace {

constexpr const char* seal = "bitale-object-1";
constexpr std::size_t key_digits = 32;

// What follows the object in its file; of fixed length.
std::string trailer(const std::string& key, std::string_view object) {
    return "\n" + std::string(seal) + " " + key + " " + sha256(object) + "\n";
}

std::optional<std::string> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::string bytes;
    // A piece at a time: what a file says of its length need not hold while it is read.
    constexpr std::size_t piece = std::size_t{64} << 10;
    do {
        const std::size_t known = bytes.size();
        bytes.resize(known + piece);
        file.read(bytes.data() + known, piece);
        bytes.resize(known + static_cast<std::size_t>(file.gcount()));
    } while (file);
    if (file.bad()) return std::nullopt;
    return bytes;
}

bool is_key(std::string_view name) {
    return name.size() == key_digits && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

bool is_temporary(std::string_view name) {
    return name.starts_with("tmp-") && name.size() > 4 + key_digits && is_key(name.substr(4, key_digits));
}

// KEY.so, KEY.cpp and temporary files.
bool is_ours(const fs::path& path) {
    const std::string name = path.filename().string();
    const std::string ending = path.extension().string();
    return is_temporary(name) || (is_key(path.stem().string()) && (ending == ".so" || ending == ".cpp"));
}

struct Entry {
    fs::path path;
    std::time_t used = 0;
    std::int64_t bytes = 0;
};

std::vector<Entry> entries_of(const std::string& directory) {
    std::vector<Entry> list;
    std::error_code ignored;
    for (fs::directory_iterator at(directory, ignored), end; !ignored && at != end; at.increment(ignored)) {
        struct stat s {};
        if (!is_ours(at->path()) || lstat(at->path().c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
        list.push_back({at->path(), s.st_mtime, s.st_size});
    }
    return list;
}

// Why the folder must not be used; empty when it may.
std::string problem_of(const std::string& directory) {
    if (directory.empty()) return "neither XDG_CACHE_HOME nor HOME is set";
    std::error_code error;
    if (const fs::path parent = fs::path(directory).parent_path(); !parent.empty())
        fs::create_directories(parent, error);
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
        return "\"" + directory + "\" cannot be made: " + std::strerror(errno);
    struct stat s {};
    if (lstat(directory.c_str(), &s) != 0)
        return "\"" + directory + "\" cannot be read: " + std::strerror(errno);
    if (!S_ISDIR(s.st_mode)) return "\"" + directory + "\" is not a folder";
    if (s.st_uid != geteuid()) return "\"" + directory + "\" belongs to another user";
    if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "\"" + directory + "\" can be written by others; chmod 700 it";
    if (access(directory.c_str(), R_OK | X_OK) != 0)
        return "\"" + directory + "\" cannot be read: " + std::strerror(errno);
    return "";
}

}  // namespace

DiskCache::DiskCache(std::string directory, std::int64_t most_bytes)
    : directory_(std::move(directory)), problem_(problem_of(directory_)), most_bytes_(most_bytes) {}

std::optional<std::string> DiskCache::find(const std::string& key) const {
    if (!usable()) return std::nullopt;
    std::string path = directory_ + "/" + key + ".so";
    struct stat s {};
    if (lstat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid()) return std::nullopt;
    const std::optional<std::string> file = read_file(path);
    const std::size_t tail = trailer(key, "").size();
    if (!file || file->size() <= tail) return std::nullopt;
    const std::string_view object(file->data(), file->size() - tail);
    if (std::string_view(*file).substr(object.size()) != trailer(key, object)) return std::nullopt;
    // Remember the use, for the sweep; an hour is fine enough.
    if (std::time(nullptr) - s.st_mtime > 3600) {
        utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
        utimensat(AT_FDCWD, (directory_ + "/" + key + ".cpp").c_str(), nullptr, 0);
    }
    return path;
}

bool DiskCache::holds(const std::string& key) const {
    struct stat s {};
    return usable() && lstat((directory_ + "/" + key + ".so").c_str(), &s) == 0;
}

std::string DiskCache::temporary(const std::string& key, const std::string& ending) const {
    static std::atomic<int> number{0};
    return directory_ + "/tmp-" + key + "-" + std::to_string(getpid()) + "-" + std::to_string(++number) +
           ending;
}

std::optional<std::string> DiskCache::store(const std::string& key, const std::string& built,
                                            const std::string& source) {
    if (!usable()) return std::nullopt;
    const std::optional<std::string> object = read_file(built);
    if (!object) return std::nullopt;
    std::ofstream file(built, std::ios::binary | std::ios::app);
    file << trailer(key, *object);
    file.close();
    if (!file) return std::nullopt;
    std::string path = directory_ + "/" + key + ".so";
    if (std::rename(source.c_str(), (directory_ + "/" + key + ".cpp").c_str()) != 0) return std::nullopt;
    if (std::rename(built.c_str(), path.c_str()) != 0) return std::nullopt;
    sweep();
    return path;
}

std::optional<std::string> DiskCache::read(const std::string& key) const {
    const std::optional<std::string> path = find(key);
    std::optional<std::string> bytes = path ? read_file(*path) : std::nullopt;
    const std::size_t tail = trailer(key, "").size();
    if (!bytes || bytes->size() <= tail) return std::nullopt;
    bytes->resize(bytes->size() - tail);
    return bytes;
}

bool DiskCache::keep(const std::string& key, const std::string& object, const std::string& source) {
    if (!usable()) return false;
    const std::string built = temporary(key, ".so"), text = temporary(key, ".cpp");
    const auto write = [](const std::string& path, const std::string& bytes) {
        std::ofstream file(path, std::ios::binary);
        file << bytes;
        file.close();
        return file.good();
    };
    if (write(built, object) && write(text, source) && store(key, built, text)) return true;
    unlink(built.c_str());
    unlink(text.c_str());
    return false;
}

void DiskCache::sweep() {
    std::vector<Entry> list = entries_of(directory_);
    const std::time_t now = std::time(nullptr);
    std::int64_t total = 0;
    std::erase_if(list, [&](const Entry& e) {
        // A process that died left it behind; one that lives still needs it.
        if (is_temporary(e.path.filename().string())) {
            if (now - e.used > 24 * 3600) unlink(e.path.c_str());
            return true;
        }
        total += e.bytes;
        return false;
    });
    if (total <= most_bytes_) return;
    std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
        return a.used != b.used ? a.used < b.used : a.path < b.path;
    });
    for (const Entry& e : list) {
        if (total <= most_bytes_ - most_bytes_ / 8) break;
        if (unlink(e.path.c_str()) == 0) total -= e.bytes;
    }
}

std::int64_t DiskCache::bytes() const {
    std::int64_t total = 0;
    if (usable())
        for (const Entry& e : entries_of(directory_)) total += e.bytes;
    return total;
}

int DiskCache::clear() {
    int removed = 0;
    if (usable())
        for (const Entry& e : entries_of(directory_)) removed += unlink(e.path.c_str()) == 0;
    return removed;
}

std::optional<DiskCache> cache_in_use() {
    if (!options().cache) return std::nullopt;
    DiskCache cache(cache_directory(), options().cache_bytes);
    if (!cache.usable()) return std::nullopt;
    return cache;
}

std::string cache_directory() {
    if (!options().cache_directory.empty()) return options().cache_directory;
    // The standard asks to ignore a relative path.
    if (const char* home = std::getenv("XDG_CACHE_HOME"); home && home[0] == '/')
        return std::string(home) + "/bitale";
    const char* home = std::getenv("HOME");
    if (!home || home[0] != '/') {
        const passwd* user = getpwuid(geteuid());
        home = user ? user->pw_dir : nullptr;
    }
    return home && home[0] == '/' ? std::string(home) + "/.cache/bitale" : "";
}

}  // namespace bitale
