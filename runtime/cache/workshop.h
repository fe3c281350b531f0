// Folders in which something is built, before it is anybody's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bitale/error.h"
#include "runtime/cache/disk_cache.h"

namespace bitale {

// A private folder of an unpredictable name, removed with all that is in it. Its process holds a lock on it,
// so that what a dead one left is told from what a living one needs, and goes when the next workshop is
// opened.
class Workshop {
  public:
    explicit Workshop(const std::string& base);  // throws FileError
    ~Workshop();
    Workshop(const Workshop&) = delete;
    Workshop& operator=(const Workshop&) = delete;
    const std::string& path() const { return path_; }
    // A file in it that is written now; its path. Throws FileError.
    std::string add(const std::string& name, std::string_view text) const;
    // What is in it stays: a message names it.
    void keep();

  private:
    std::string path_;
    int lock_ = -1;
    bool kept_ = false;
};

// TMPDIR, else /tmp.
std::string temporary_folder();

// Removes workshops of dead processes; bytes in those of living ones.
std::int64_t sweep_workshops(const std::string& base);

// Of a build that would not end otherwise in another folder, such as one that takes too long. Its message may
// name files of the workshop.
class SameElsewhere : public CompileError {
  public:
    using CompileError::CompileError;
};

// What is built, for messages.
struct Work {
    std::string key;  // the same for the same texts
    std::string of;   // the generated code of what: "of function \"step\"", or nothing
    Where where{};    // of the function
};

// What helps where the system has refused what the text quotes; empty where that is not known.
std::string cure_for(std::string_view text);

// Builds in the cache's folder, where there is one, so that storing is renaming; where that fails for
// whatever reason but SameElsewhere, once more in the folder for temporary files: a cache must never be why
// something cannot be built. `build` throws what it likes; what it throws the last time is thrown, and its
// files stay then, in the folder for temporary files: those of the first failure of the same work in this
// process, which the messages of later ones name.
void build_somewhere(const DiskCache* cache, const Work& work, const std::function<void(Workshop&)>& build);

}  // namespace bitale
