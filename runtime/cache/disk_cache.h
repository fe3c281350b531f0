// Compiled objects on disk, found by key. We load code from here, so the folder must be ours alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bitale {

// One folder with KEY.so, sealed by a trailer with its key and checksum, and KEY.cpp beside it. Files appear
// by rename, so any number of processes may use the folder at once. Whatever is damaged, foreign or of
// another format is a miss. Which entry was used last is said by their times, which are numbers of a counter
// and no dates: clocks may be wrong.
class DiskCache {
  public:
    // Makes the folder with mode 0700 if it is not there. A folder that cannot be made, belongs to somebody
    // else or can be written by others is not used: problem() says why.
    explicit DiskCache(std::string directory, std::int64_t most_bytes);

    bool usable() const { return problem_.empty(); }
    const std::string& problem() const { return problem_; }
    const std::string& directory() const { return directory_; }

    // The path of a verified object; nothing when there is none.
    std::optional<std::string> find(const std::string& key) const;
    // Whether there is a file for the key, good or damaged.
    bool holds(const std::string& key) const;
    // Seals the object at `built` and moves it, and its source, to their places; both lie below the folder.
    // Why the object is not kept, or nothing; the files then stay where they were.
    std::string store(const std::string& key, const std::string& built, const std::string& source);
    // The same with bytes instead of paths: those of a verified object, and why they are not kept.
    std::optional<std::string> read(const std::string& key) const;
    std::string keep(const std::string& key, const std::string& object, const std::string& source);
    // Of all that is the cache's, what is being built included.
    std::int64_t bytes() const;
    // Removes every file of the cache's own naming; the number removed.
    int clear();

  private:
    std::string path_of(const std::string& key) const;
    std::int64_t newest() const;
    void count_on(const std::string& key);
    void sweep(const std::string& but_for);
    std::string directory_, problem_;
    std::int64_t most_bytes_;
};

// The one that the options name; nothing where they switch it off or its folder cannot be used.
std::optional<DiskCache> cache_in_use();

// The folder that the options and the environment name: cache_dir, $XDG_CACHE_HOME/bitale, ~/.cache/bitale;
// empty when there is none.
std::string cache_directory();

}  // namespace bitale
