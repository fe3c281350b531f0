// The cache on disk: sealing, damage, foreign files, folders that cannot be used, several processes.
#include "runtime/cache/disk_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <csignal>
#include <ctime>
#include <filesystem>

#include "graph/base/options.h"
#include "runtime/cache/sha256.h"
#include "runtime/cache/workshop.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr std::int64_t plenty = std::int64_t{1} << 30;

std::string key_of(const std::string& text) { return sha256(text).substr(0, 32); }

std::optional<std::string> put(DiskCache& cache, const std::string& key, const std::string& object) {
    const Workshop workshop(cache.directory());
    const std::string built = workshop.add("object", object),
                      source = workshop.add("source", "source of " + key);
    if (!cache.store(key, built, source).empty()) return std::nullopt;
    return cache.directory() + "/" + key + ".so";
}

}  // namespace

TEST_CASE("sha256 gives the digests of its standard", "[core][runtime][cache]") {
    REQUIRE(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    REQUIRE(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    REQUIRE(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    REQUIRE(sha256(std::string(1000000, 'a')) ==
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the cache finds what it stored, source beside it", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    DiskCache cache(folder / "deep/cache", plenty);
    REQUIRE(cache.usable());
    struct stat s {};
    REQUIRE(stat((folder / "deep/cache").c_str(), &s) == 0);
    REQUIRE((s.st_mode & 0777) == 0700);
    const std::string key = key_of("a");
    REQUIRE(!cache.find(key));
    const std::optional<std::string> path = put(cache, key, "object");
    REQUIRE(path);
    REQUIRE(cache.find(key) == path);
    REQUIRE(text_of_file(*path).starts_with("object"));
    REQUIRE(text_of_file(folder / "deep/cache/" + key + ".cpp") == "source of " + key);
    REQUIRE(DiskCache(folder / "deep/cache", plenty).find(key) == path);
    REQUIRE(cache.bytes() > 0);
    REQUIRE(cache.clear() == 2);
    REQUIRE(!cache.find(key));
}

TEST_CASE("objects of any length are read as they were written", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    DiskCache cache(folder / "cache", plenty);
    constexpr std::size_t piece = std::size_t{64} << 10;
    for (const std::size_t length : {std::size_t{1}, piece - 1, piece, piece + 1, 3 * piece + 17}) {
        std::string object(length, 'x');
        for (std::size_t i = 0; i < length; i += 97) object[i] = static_cast<char>(i);
        const std::string key = key_of(std::to_string(length));
        CHECK_FALSE(cache.holds(key));
        REQUIRE(cache.keep(key, object, "source").empty());
        CHECK(cache.holds(key));
        CHECK(cache.read(key) == object);
        std::string file = text_of_file(folder / "cache/" + key + ".so");
        file[length - 1] ^= 1;
        write_file(folder / "cache/" + key + ".so", file);
        CHECK_FALSE(cache.read(key));
        CHECK(cache.holds(key));
    }
}

TEST_CASE("damaged and foreign objects are misses", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    DiskCache cache(folder / "cache", plenty);
    const std::string key = key_of("a"), other = key_of("b");
    const std::string path = *put(cache, key, "the object's bytes");
    const std::string good = text_of_file(path);
    const auto is_miss = [&](const std::string& text) {
        write_file(path, text);
        return !cache.find(key);
    };
    REQUIRE(!is_miss(good));
    for (std::size_t i = 0; i < good.size(); ++i) {
        std::string bad = good;
        bad[i] ^= 1;
        REQUIRE(is_miss(bad));
        REQUIRE(is_miss(good.substr(0, i)));
    }
    REQUIRE(is_miss(""));
    REQUIRE(is_miss(good + " "));
    // A good object under another object's name.
    write_file(folder / "cache/" + other + ".so", good);
    REQUIRE(!cache.find(other));
    // A link to somewhere else.
    unlink(path.c_str());
    write_file(folder / "elsewhere", good);
    REQUIRE(symlink((folder / "elsewhere").c_str(), path.c_str()) == 0);
    REQUIRE(!cache.find(key));
}

TEST_CASE("a folder that cannot be trusted or made is not used, and says why", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    write_file(folder / "file", "");
    REQUIRE_THAT(DiskCache(folder / "file", plenty).problem(), ContainsSubstring("is not a folder"));
    REQUIRE_THAT(DiskCache(folder / "file/cache", plenty).problem(), ContainsSubstring("cannot be made"));
    REQUIRE_THAT(DiskCache("", plenty).problem(), ContainsSubstring("HOME"));
    REQUIRE(mkdir((folder / "open").c_str(), 0700) == 0);
    REQUIRE(chmod((folder / "open").c_str(), 0777) == 0);
    REQUIRE_THAT(DiskCache(folder / "open", plenty).problem(), ContainsSubstring("written by others"));
    REQUIRE(symlink((folder / "open").c_str(), (folder / "link").c_str()) == 0);
    REQUIRE_THAT(DiskCache(folder / "link", plenty).problem(), ContainsSubstring("is not a folder"));
    if (geteuid() == 0) {
        REQUIRE(mkdir((folder / "theirs").c_str(), 0700) == 0);
        REQUIRE(chown((folder / "theirs").c_str(), 12345, 12345) == 0);
        REQUIRE_THAT(DiskCache(folder / "theirs", plenty).problem(), ContainsSubstring("another user"));
    }
    DiskCache unusable(folder / "file", plenty);
    REQUIRE(!unusable.find(key_of("a")));
    REQUIRE(unusable.bytes() == 0);
    REQUIRE(unusable.clear() == 0);
}

TEST_CASE("storing into a folder that vanished leaves the files where they were", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    DiskCache cache(folder / "cache", plenty);
    REQUIRE(rmdir((folder / "cache").c_str()) == 0);
    write_file(folder / "built", "object");
    write_file(folder / "source", "source");
    REQUIRE_THAT(cache.store(key_of("a"), folder / "built", folder / "source"),
                 ContainsSubstring("cannot be written"));
    REQUIRE(text_of_file(folder / "source") == "source");
}

TEST_CASE("the least recently used objects go first when the cache is full", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    DiskCache cache(folder / "cache", 100000);
    const std::string big(20000, 'x');
    std::vector<std::string> keys;
    for (int i = 0; i < 8; ++i) {
        keys.push_back(key_of(std::to_string(i)));
        put(cache, keys.back(), big);
        // Older and older in the order they were stored.
        const std::time_t when = std::time(nullptr) - 100000 + i * 1000;
        const utimbuf times{when, when};
        utime((folder / ("cache/" + keys.back() + ".so")).c_str(), &times);
    }
    REQUIRE(cache.bytes() <= 100000);
    REQUIRE(!cache.find(keys[0]));
    REQUIRE(cache.find(keys[7]));
    // Files that are not the cache's own are left alone.
    write_file(folder / "cache/notes.txt", "mine");
    cache.clear();
    REQUIRE(text_of_file(folder / "cache/notes.txt") == "mine");
}

TEST_CASE("what is used last is told without clocks", "[core][runtime][cache]") {
    // Entries with the times of a clock that stood at 1970, of one that stood at 2099, and of today's.
    for (const std::time_t when :
         {std::time_t{0}, std::time_t{100}, std::time_t{4070908800}, std::time(nullptr)}) {
        INFO("the clock says " << when);
        const TemporaryFolder folder;
        DiskCache cache(folder / "cache", 100000);
        const std::string big(20000, 'x');
        const auto key = [](int i) { return key_of(std::to_string(i)); };
        for (int i = 0; i < 4; ++i) REQUIRE(put(cache, key(i), big));
        for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
            const utimbuf times{when, when};
            REQUIRE(utime(entry.path().c_str(), &times) == 0);
        }
        for (int i = 4; i < 12; ++i) {
            REQUIRE(put(cache, key(i), big));
            CHECK(cache.find(key(i)));             // what was stored last is there
            if (i < 8) CHECK(cache.find(key(4)));  // and what is used all the time
            CHECK(cache.bytes() <= 100000);
        }
        for (int i = 0; i < 4; ++i) CHECK_FALSE(cache.find(key(i)));
    }
}

TEST_CASE("what is being built counts, and goes with its process", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    DiskCache cache(folder / "cache", plenty);
    std::string dead;
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        auto* workshop = new Workshop(cache.directory());
        workshop->add("object", std::string(5000, 'x'));
        const std::string& path = workshop->path();
        if (write(ends[1], path.data(), path.size()) < 0) _exit(1);
        close(ends[1]);
        pause();
    }
    close(ends[1]);
    char text[4096];
    const ssize_t n = read(ends[0], text, sizeof text);
    close(ends[0]);
    REQUIRE(n > 0);
    const std::string path(text, static_cast<std::size_t>(n));
    {
        const Workshop mine(cache.directory());
        CHECK(access((path + "/object").c_str(), F_OK) == 0);
    }
    CHECK(cache.bytes() == 5000);
    CHECK(cache.clear() == 0);
    CHECK(access((path + "/object").c_str(), F_OK) == 0);
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(cache.bytes() == 0);
    CHECK(access(path.c_str(), F_OK) != 0);
}

TEST_CASE("processes that store the same keys at once see whole objects only", "[core][runtime][cache]") {
    const TemporaryFolder folder;
    const auto object = [](int key) {
        return std::string(static_cast<std::size_t>(5000 + key * 777), static_cast<char>('a' + key));
    };
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
        const pid_t pid = fork();
        if (pid == 0) {
            DiskCache cache(folder / "cache", plenty);
            bool good = true;
            for (int round = 0; round < 30; ++round)
                for (int k = 0; k < 3; ++k) {
                    const std::string key = key_of(std::to_string(k));
                    if (const auto path = cache.find(key))
                        good = good && text_of_file(*path).starts_with(object(k));
                    good = put(cache, key, object(k)).has_value() && good;
                }
            _exit(good ? 0 : 1);
        }
        children.push_back(pid);
    }
    for (const pid_t pid : children) {
        int status = 0;
        REQUIRE(waitpid(pid, &status, 0) == pid);
        REQUIRE(WIFEXITED(status));
        REQUIRE(WEXITSTATUS(status) == 0);
    }
    DiskCache cache(folder / "cache", plenty);
    for (int k = 0; k < 3; ++k) REQUIRE(cache.find(key_of(std::to_string(k))));
    REQUIRE(cache.clear() == 6);
}

TEST_CASE("the folder comes from the options, then from the environment", "[core][runtime][cache]") {
    const ScopedOptions defaults{Options()};
    const ScopedVariable xdg("XDG_CACHE_HOME", "/somewhere/cache"), home("HOME", "/home/me");
    REQUIRE(cache_directory() == "/somewhere/cache/bitale");
    {
        const ScopedVariable unset("XDG_CACHE_HOME", std::nullopt);
        REQUIRE(cache_directory() == "/home/me/.cache/bitale");
    }
    const ScopedVariable relative("XDG_CACHE_HOME", "not/absolute");
    REQUIRE(cache_directory() == "/home/me/.cache/bitale");
    Options o;
    o.cache_directory = "/chosen";
    const ScopedOptions chosen(o);
    REQUIRE(cache_directory() == "/chosen");
}
