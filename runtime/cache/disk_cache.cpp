// Sealing, verifying, and sweeping of the cache folder.
#include "runtime/cache/disk_cache.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "bitale/error.h"
#include "graph/base/atomic_file.h"
#include "graph/base/options.h"
#include "graph/base/outside.h"
#include "graph/base/text.h"
#include "runtime/cache/names.h"
#include "runtime/cache/sha256.h"
#include "runtime/cache/workshop.h"

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
    outside::occupy_closed_streams();
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

// KEY.so, KEY.cpp, and what earlier versions built beside them: tmp-KEY-...
std::string key_in(const std::string& name) {
    const std::string_view prefix = "tmp-";
    if (name.starts_with(prefix) && is_key(name.substr(prefix.size()).substr(0, key_digits))) return name;
    if (!name.ends_with(".so") && !name.ends_with(".cpp")) return "";
    const std::string key = name.substr(0, name.rfind('.'));
    return is_key(key) ? key : "";
}

// What is kept under one key.
struct Entry {
    std::int64_t used = 0, bytes = 0;
    std::vector<std::string> paths;
};

std::map<std::string, Entry> entries_of(const std::string& directory) {
    std::map<std::string, Entry> list;
    each_name(directory, [&](const std::string& name) {
        const std::string key = key_in(name), path = directory + "/" + name;
        struct stat s {};
        if (key.empty() || lstat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return;
        Entry& entry = list[key];
        entry.used = std::max<std::int64_t>(entry.used, s.st_mtime);
        entry.bytes += s.st_size;
        entry.paths.push_back(path);
    });
    return list;
}

// The counter: the time of this file.
constexpr const char* counter = "/order";
// The last number that every file system can hold as a time.
constexpr std::int64_t last_number = 0x7fffffff - 1;

bool set_time(const std::string& path, std::int64_t number) {
    const timespec when{static_cast<std::time_t>(number), 0}, both[] = {when, when};
    return utimensat(AT_FDCWD, path.c_str(), both, AT_SYMLINK_NOFOLLOW) == 0;
}

std::string cannot_be_written(const std::string& directory) {
    return in_quotes(directory) + " cannot be written: " + std::strerror(errno);
}

// Why the folder must not be used; empty when it may.
std::string problem_of(const std::string& directory) {
    if (directory.empty()) return "neither XDG_CACHE_HOME nor HOME is set";
    if (const std::string parent = fs::path(directory).parent_path().string(); !parent.empty())
        outside::make_folders(parent);
    struct stat s {};
    if (lstat(directory.c_str(), &s) != 0 && outside::make_folder(directory, 0700) != 0 && errno != EEXIST)
        return "\"" + directory + "\" cannot be made: " + std::strerror(errno);
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

std::optional<std::string> DiskCache::read(const std::string& key) const {
    if (!usable()) return std::nullopt;
    const std::string path = path_of(key);
    struct stat s {};
    if (lstat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid()) return std::nullopt;
    std::optional<std::string> file = read_file(path);
    const std::size_t tail = trailer(key, "").size();
    if (!file || file->size() <= tail) return std::nullopt;
    const std::string_view object(file->data(), file->size() - tail);
    if (std::string_view(*file).substr(object.size()) != trailer(key, object)) return std::nullopt;
    // Used now: as new as the last one that was stored.
    if (const std::int64_t now = newest(); now > 0 && s.st_mtime != now) {
        set_time(path, now);
        set_time(directory_ + "/" + key + ".cpp", now);
    }
    file->resize(object.size());
    return file;
}

std::optional<std::string> DiskCache::find(const std::string& key) const {
    return read(key) ? std::optional(path_of(key)) : std::nullopt;
}

bool DiskCache::holds(const std::string& key) const {
    struct stat s {};
    return usable() && lstat(path_of(key).c_str(), &s) == 0;
}

std::string DiskCache::path_of(const std::string& key) const { return directory_ + "/" + key + ".so"; }

std::int64_t DiskCache::newest() const {
    struct stat s {};
    return lstat((directory_ + counter).c_str(), &s) == 0 ? s.st_mtime : 0;
}

// Makes the entry the newest one. Times that no counter of ours has given, as those of a clock that was wrong
// or of another program, only say an order.
void DiskCache::count_on(const std::string& key) {
    std::map<std::string, Entry> list = entries_of(directory_);
    std::int64_t last = newest();
    for (const auto& [other, entry] : list)
        if (other != key) last = std::max(last, entry.used);
    if (last >= last_number) {
        std::vector<const Entry*> order;
        for (const auto& [other, entry] : list)
            if (other != key) order.push_back(&entry);
        std::stable_sort(order.begin(), order.end(),
                         [](const Entry* a, const Entry* b) { return a->used < b->used; });
        last = 0;
        for (const Entry* entry : order) {
            ++last;
            for (const std::string& path : entry->paths) set_time(path, last);
        }
    }
    for (const std::string& path : list[key].paths) set_time(path, last + 1);
    const std::string file = directory_ + counter;
    if (set_time(file, last + 1)) return;
    if (const int made = outside::open_file(file, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600); made >= 0)
        close(made);
    set_time(file, last + 1);
}

std::string DiskCache::store(const std::string& key, const std::string& built, const std::string& source) {
    if (!usable()) return problem_;
    const std::optional<std::string> object = read_file(built);
    if (!object) return in_quotes(built) + " cannot be read";
    const int file = outside::open_file(built, O_WRONLY | O_APPEND | O_NOFOLLOW);
    const bool sealed = file >= 0 && outside::write_all(file, trailer(key, *object));
    const std::string problem = sealed ? "" : cannot_be_written(directory_);
    if (file >= 0) close(file);
    if (!sealed) return problem;
    if (outside::rename_file(source, directory_ + "/" + key + ".cpp") != 0 ||
        outside::rename_file(built, path_of(key)) != 0)
        return cannot_be_written(directory_);
    count_on(key);
    sweep(key);
    return "";
}

std::string DiskCache::keep(const std::string& key, const std::string& object, const std::string& source) {
    if (!usable()) return problem_;
    try {
        save_file(directory_ + "/" + key + ".cpp", source, /*durable=*/false);
        AtomicFile file(path_of(key), /*durable=*/false);
        file.write(object);
        file.write(trailer(key, object));
        file.commit();
    } catch (const FileError& e) {
        return e.what();
    }
    count_on(key);
    sweep(key);
    return "";
}

// Entries that were used longest ago go, until an eighth is free; what was stored just now stays, unless it
// alone is too much.
void DiskCache::sweep(const std::string& but_for) {
    sweep_unfinished(directory_);
    const std::map<std::string, Entry> list = entries_of(directory_);
    std::int64_t total = sweep_workshops(directory_);
    std::vector<const Entry*> order;
    for (const auto& [key, entry] : list) {
        total += entry.bytes;
        if (key != but_for || entry.bytes > most_bytes_) order.push_back(&entry);
    }
    if (total <= most_bytes_) return;
    std::stable_sort(order.begin(), order.end(),
                     [](const Entry* a, const Entry* b) { return a->used < b->used; });
    for (const Entry* entry : order) {
        if (total <= most_bytes_ - most_bytes_ / 8) break;
        bool gone = true;
        for (const std::string& path : entry->paths) gone = outside::remove_file(path) == 0 && gone;
        if (gone) total -= entry->bytes;
    }
}

std::int64_t DiskCache::bytes() const {
    if (!usable()) return 0;
    std::int64_t total = sweep_workshops(directory_);
    for (const auto& [key, entry] : entries_of(directory_)) total += entry.bytes;
    return total;
}

int DiskCache::clear() {
    if (!usable()) return 0;
    int removed = sweep_unfinished(directory_);
    sweep_workshops(directory_);
    for (const auto& [key, entry] : entries_of(directory_))
        for (const std::string& path : entry.paths) removed += outside::remove_file(path) == 0;
    outside::remove_file(directory_ + counter);
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
    if (const char* home = secure_getenv("XDG_CACHE_HOME"); home && home[0] == '/')
        return std::string(home) + "/bitale";
    const char* home = secure_getenv("HOME");
    if (!home || home[0] != '/') {
        const passwd* user = getpwuid(geteuid());
        home = user ? user->pw_dir : nullptr;
    }
    return home && home[0] == '/' ? std::string(home) + "/.cache/bitale" : "";
}

}  // namespace bitale
