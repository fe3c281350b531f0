// Processes that are killed at every door of a save and of the cache, and machines that stop: the old or the
// new, never else.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "bitale/io.h"
#include "graph/base/atomic_file.h"
#include "graph/base/faults.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cache/sha256.h"
#include "runtime/cache/workshop.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;
using outside::Fault;
using outside::FileEvent;

namespace {

std::size_t files_below(const std::string& folder) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::recursive_directory_iterator(folder)) ++count;
    return count;
}

// Runs f in a child that is killed at its n-th use of a door; false when it came to its end.
template <class F>
bool killed_at(std::int64_t n, F&& f) {
    const pid_t child = fork();
    if (child == 0) {
        outside::plant(Fault{.door = {}, .number = n, .what = Fault::What::kill});
        f();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) REQUIRE(WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

std::map<std::string, Array> values(std::uint64_t seed) {
    Random random(seed);
    return {{"w", random_array(float32, {300, 70}, random)}, {"b", random_array(float32, {70}, random)}};
}

void show(const char* what, std::int64_t count) {
    if (std::getenv("BITALE_TEST_FIGURES")) std::printf("%s: %lld\n", what, static_cast<long long>(count));
}

bool equal(const std::map<std::string, Array>& a, const std::map<std::string, Array>& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
               return same(entry.second, b.at(entry.first));
           });
}

}  // namespace

TEST_CASE("a process that is killed at any door of a save leaves the old file or the new one", "[faults]") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.npz";
    const auto old = values(1), next = values(2);
    std::int64_t n = 1;
    bool was_old = false, was_new = false;
    for (;; ++n) {
        save_npz(path, old);
        if (!killed_at(n, [&] { save_npz(path, next); })) break;
        INFO("killed at door " << n);
        const auto got = load_npz(path);
        was_old = was_old || equal(got, old);
        was_new = was_new || equal(got, next);
        CHECK((equal(got, old) || equal(got, next)));
        save_npz(path, next);
        CHECK(equal(load_npz(path), next));
        CHECK(files_below(folder.path()) == 1);
    }
    show("save", n - 1);
    CHECK(n > 6);
    CHECK(was_old);
    CHECK(was_new);
}

TEST_CASE("a process that is killed at any door of the cache leaves a miss or the object", "[faults]") {
    const TemporaryFolder folder;
    const std::string key = sha256("k").substr(0, 32), object(70000, 'o'), source(3000, 's');
    const auto keeps = [&] { DiskCache(folder / "cache", 1 << 30).keep(key, object, source); };
    const auto builds = [&] {
        DiskCache cache(folder / "cache", 1 << 30);
        const Workshop workshop(cache.directory());
        cache.store(key, workshop.add("object", object), workshop.add("source", source));
    };
    for (const std::function<void()>& act : {std::function<void()>(keeps), std::function<void()>(builds)}) {
        std::int64_t n = 1;
        bool missed = false, found = false;
        for (;; ++n) {
            std::filesystem::remove_all(folder / "cache");
            if (!killed_at(n, act)) break;
            INFO("killed at door " << n);
            DiskCache cache(folder / "cache", 1 << 30);
            const std::optional<std::string> got = cache.read(key);
            missed = missed || !got;
            found = found || got;
            CHECK((!got || *got == object));
            act();
            CHECK(cache.read(key) == object);
            cache.clear();
            CHECK(files_below(folder / "cache") == 0);
        }
        show("cache", n - 1);
        CHECK(n > 8);
        CHECK(missed);
        CHECK(found);
    }
}

namespace {

// What a disk may hold after the machine stopped: what was synced for certain, of the rest any part.
class Disk {
  public:
    explicit Disk(const std::string& folder) : folder_(folder) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string text = text_of_file(entry.path().string());
            names_[entry.path().string()] = static_cast<int>(files_.size());
            files_.push_back({text, text.size()});
        }
    }

    void take(const FileEvent& e) {
        const std::map<std::string, int> names = now();
        switch (e.what) {
            case FileEvent::What::opened:
                if (e.path == folder_) {
                    numbers_[e.file] = the_folder;
                } else if (const auto at = names.find(e.path); at != names.end()) {
                    numbers_[e.file] = at->second;
                } else {
                    numbers_[e.file] = static_cast<int>(files_.size());
                    unsynced_.push_back({"", e.path, static_cast<int>(files_.size())});
                    files_.push_back({});
                }
                break;
            case FileEvent::What::written: files_[of(e.file)].text += e.bytes; break;
            case FileEvent::What::synced:
                if (numbers_.at(e.file) == the_folder) {
                    names_ = names;
                    unsynced_.clear();
                } else {
                    files_[of(e.file)].synced = files_[of(e.file)].text.size();
                }
                break;
            case FileEvent::What::renamed: unsynced_.push_back({e.path, e.other, names.at(e.path)}); break;
            case FileEvent::What::removed: unsynced_.push_back({e.path, "", -1}); break;
        }
    }

    // The texts that the path may have: no text is no file.
    std::set<std::optional<std::string>> possible(const std::string& path) const {
        std::set<std::optional<std::string>> texts;
        // Any of the changes of names may have reached the disk, in any order.
        for (std::uint64_t mask = 0; mask < std::uint64_t{1} << unsynced_.size(); ++mask) {
            const std::map<std::string, int> names = with(mask);
            const auto at = names.find(path);
            if (at == names.end()) {
                texts.insert(std::nullopt);
                continue;
            }
            const File& file = files_[static_cast<std::size_t>(at->second)];
            const std::size_t rest = file.text.size() - file.synced;
            for (const std::size_t part : {std::size_t{0}, rest / 2, rest}) {
                texts.insert(file.text.substr(0, file.synced + part));
                // The length reached the disk, the bytes did not.
                texts.insert(file.text.substr(0, file.synced + part) + std::string(rest - part, '\0'));
            }
        }
        return texts;
    }

  private:
    static constexpr int the_folder = -2;
    struct File {
        std::string text;
        std::size_t synced = 0;
    };
    struct Change {
        std::string from, to;
        int file;
    };
    std::map<std::string, int> with(std::uint64_t mask) const {
        std::map<std::string, int> names = names_;
        for (std::size_t i = 0; i < unsynced_.size(); ++i) {
            if ((mask >> i & 1) == 0) continue;
            const Change& c = unsynced_[i];
            if (!c.from.empty()) names.erase(c.from);
            if (!c.to.empty()) names[c.to] = c.file;
        }
        return names;
    }
    std::map<std::string, int> now() const { return with(~std::uint64_t{0}); }
    std::size_t of(int file) const { return static_cast<std::size_t>(numbers_.at(file)); }

    std::string folder_;
    std::vector<File> files_;
    std::map<std::string, int> names_;
    std::map<int, int> numbers_;  // of open files
    std::vector<Change> unsynced_;
};

struct Replayed {
    int states = 0, torn = 0;
    bool certain = false;  // once the save has returned there is the new text and no other
};

// The save of `next` over `old`, stopped after each of its events.
Replayed replay(const std::string& old, const std::string& next, bool durable) {
    const TemporaryFolder folder;
    const std::string path = folder / "model";
    save_file(path, old);
    Disk disk(folder.path());
    std::vector<FileEvent> events;
    outside::observe([&](const FileEvent& e) { events.push_back(e); });
    save_file(path, next, durable);
    outside::observe({});
    Replayed r;
    for (const FileEvent& event : events) {
        disk.take(event);
        for (const std::optional<std::string>& text : disk.possible(path)) {
            ++r.states;
            r.torn += text == old || text == next ? 0 : 1;
        }
    }
    r.certain = disk.possible(path) == std::set<std::optional<std::string>>{next};
    return r;
}

}  // namespace

TEST_CASE("a machine that stops at any moment of a save has the old file or the new one", "[faults]") {
    const std::string old(100000, 'o');
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{10}, std::size_t{65536}, std::size_t{1000000}}) {
        const std::string next(length, 'n');
        const Replayed synced = replay(old, next, true);
        show("states of a disk", synced.states);
        CHECK(synced.states > 5);
        CHECK(synced.torn == 0);
        CHECK(synced.certain);
        // Without syncing it is not so: the replay can tell.
        const Replayed hasty = replay(old, next, false);
        CHECK_FALSE(hasty.certain);
        CHECK((hasty.torn > 0 || length == 0));
    }
}
