// Saving: old file or new file, whatever happens; links, modes, devices, pipes, planted links, full disks,
// processes that die, archives beyond 32 bits.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "bitale/io.h"
#include "graph/base/atomic_file.h"
#include "runtime/io/save.h"
#include "tests/runtime/calls.h"
#include "tests/support/catch.h"
#include "tests/support/small_disk.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

mode_t mode_of(const std::string& path) {
    struct stat s {};
    REQUIRE(lstat(path.c_str(), &s) == 0);
    return s.st_mode;
}

// Runs f in a child that is then killed.
template <class F>
void killed_in(F&& f) {
    const pid_t child = fork();
    if (child == 0) {
        f();
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("a target that is a link stays a link, the file behind it is replaced", "[core][runtime][io]") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "real");
    save_npy(folder / "real/model.npy", numbered(3));
    REQUIRE(symlink("real/model.npy", (folder / "link.npy").c_str()) == 0);
    REQUIRE(symlink((folder / "link.npy").c_str(), (folder / "link2.npy").c_str()) == 0);
    REQUIRE(symlink("real/new.npy", (folder / "dangling.npy").c_str()) == 0);
    save_npy(folder / "link2.npy", numbered(5));
    CHECK(S_ISLNK(mode_of(folder / "link.npy")));
    CHECK(S_ISLNK(mode_of(folder / "link2.npy")));
    CHECK(S_ISREG(mode_of(folder / "real/model.npy")));
    CHECK(same(load_npy(folder / "real/model.npy"), numbered(5)));
    save_npz(folder / "dangling.npy", {{"x", numbered(2)}});
    CHECK(S_ISLNK(mode_of(folder / "dangling.npy")));
    CHECK(same(load_npz(folder / "real/new.npy").at("x"), numbered(2)));
    CHECK(names_in(folder / "real") == std::vector<std::string>{"model.npy", "new.npy"});
}

TEST_CASE("a file that is replaced keeps its mode and its owner", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string path = folder / "private.npy";
    save_npy(path, numbered(3));
    for (const mode_t mode : {0600u, 0640u, 0666u}) {
        REQUIRE(chmod(path.c_str(), mode) == 0);
        save_npy(path, numbered(4));
        CHECK((mode_of(path) & 07777) == mode);
    }
    if (geteuid() != 0) return;
    REQUIRE(chown(path.c_str(), 12345, 23456) == 0);
    save_npy(path, numbered(5));
    struct stat s {};
    REQUIRE(stat(path.c_str(), &s) == 0);
    CHECK(s.st_uid == 12345);
    CHECK(s.st_gid == 23456);
    CHECK((s.st_mode & 07777) == 0666);
}

TEST_CASE("a file that the user may not write is not replaced", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string path = folder / "kept.npy";
    save_npy(path, numbered(3));
    REQUIRE(chmod(path.c_str(), 0444) == 0);
    REQUIRE(chmod(folder.path().c_str(), 0777) == 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(2);
        try {
            save_npy(path, numbered(4));
        } catch (const FileError& e) {
            _exit(std::string(e.what()).find("cannot be written: Permission denied") == std::string::npos);
        }
        _exit(3);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    CHECK(load_npy(path).size() == 3);
    CHECK(names_in(folder.path()) == std::vector<std::string>{"kept.npy"});
}

TEST_CASE("devices and pipes are written, not replaced", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string pipe = folder / "pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    std::string got;
    std::thread reader([&] { got = text_of_file(pipe); });
    const Array value = numbered(100000);
    save_npy(pipe, value);
    reader.join();
    save_npy(folder / "plain.npy", value);
    CHECK(S_ISFIFO(mode_of(pipe)));
    CHECK(got == text_of_file(folder / "plain.npy"));

    // A pipe without a name, as a shell makes.
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Array small = numbered(10);
    save_npy("/dev/fd/" + std::to_string(ends[1]), small);
    close(ends[1]);
    got = text_of_file("/dev/fd/" + std::to_string(ends[0]));
    close(ends[0]);
    save_npy(folder / "small.npy", small);
    CHECK(got == text_of_file(folder / "small.npy"));
    std::filesystem::remove(folder / "small.npy");

    // A reader that goes away is an error, no signal that ends the program.
    std::thread leaver([&] { close(open(pipe.c_str(), O_RDONLY)); });
    CHECK_THROWS_AS(save_npy(pipe, value), FileError);
    leaver.join();

    const std::string device = folder / "null";
    if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;
    const int opened = open(device.c_str(), O_WRONLY);
    if (opened < 0) return;  // a file system without devices
    close(opened);
    save_npy(device, value);
    CHECK(S_ISCHR(mode_of(device)));
    CHECK(names_in(folder.path()) == std::vector<std::string>{"null", "pipe", "plain.npy"});
}

TEST_CASE("a save writes through no link that somebody planted beside its target", "[core][runtime][io]") {
    const TemporaryFolder folder;
    write_file(folder / "victim", "precious");
    const std::string path = folder / "model.npy";
    for (const std::string& ending :
         {".tmp" + std::to_string(getpid()), std::string(".tmp"), std::string("~")})
        REQUIRE(symlink((folder / "victim").c_str(), (path + ending).c_str()) == 0);
    save_npy(path, numbered(7));
    CHECK(text_of_file(folder / "victim") == "precious");
    CHECK(same(load_npy(path), numbered(7)));
    // Nor does the sweep take a link, or a folder, for something of its own.
    REQUIRE(symlink((folder / "victim").c_str(), (folder / ".bitale-unfinished-1").c_str()) == 0);
    REQUIRE(mkdir((folder / ".bitale-unfinished-2").c_str(), 0700) == 0);
    CHECK(sweep_unfinished(folder.path()) == 0);
    CHECK(text_of_file(folder / "victim") == "precious");
}

TEST_CASE("threads that save to one path never show a reader half a file", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.npy";
    const Array a = numbered(3000, 1), b = numbered(5000, 2);
    save_npy(path, a);
    std::atomic<bool> stop{false};
    std::atomic<int> failed{0};
    const auto saves = [&](const Array& value) {
        for (int i = 0; i < 300; ++i) try {
                save_npy(path, value, {.durable = false});
            } catch (const Error&) {
                ++failed;
            }
    };
    std::thread one([&] { saves(a); }), two([&] { saves(b); }), reader([&] {
        while (!stop) try {
                const Array got = load_npy(path);
                if (!same(got, a) && !same(got, b)) ++failed;
            } catch (const Error&) {
                ++failed;
            }
    });
    one.join();
    two.join();
    stop = true;
    reader.join();
    CHECK(failed == 0);
    CHECK(names_in(folder.path()) == std::vector<std::string>{"model.npy"});
}

TEST_CASE("what a killed process had begun goes with the next save, what a living one has does not",
          "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.npy";
    save_npy(path, numbered(3));
    killed_in([&] {
        AtomicFile* begun = new AtomicFile(path);
        begun->write(std::string(200000, 'x'));
    });
    CHECK(names_in(folder.path()).size() == 2);
    AtomicFile living(folder / "other.npy");
    CHECK(names_in(folder.path()).size() == 2);  // the first sweep
    living.write("text");
    save_npy(path, numbered(4));
    CHECK(names_in(folder.path()).size() == 2);
    CHECK(same(load_npy(path), numbered(4)));
    living.commit();
    CHECK(text_of_file(folder / "other.npy") == "text");
    CHECK(names_in(folder.path()) == std::vector<std::string>{"model.npy", "other.npy"});
}

TEST_CASE("where the disk is full the old file stays, and nothing else", "[core][runtime][io]") {
    for (const int kilobytes : {16, 64, 256}) {
        const SmallDisk disk(kilobytes);
        if (!disk.mounted()) {
            WARN("no file system can be mounted here");
            return;
        }
        const std::string path = disk / "model.npz";
        const std::map<std::string, Array> small{{"x", numbered(500)}}, large{{"x", numbered(100000)}};
        save_npz(path, small);
        CHECK_THAT(message_of<FileError>([&] { save_npz(path, large); }), ContainsSubstring("No space left"));
        CHECK(names_in(disk.path()) == std::vector<std::string>{"model.npz"});
        CHECK(same(load_npz(path).at("x"), small.at("x")));
    }
}

TEST_CASE("a limit of file sizes is an error, no signal that ends the program", "[core][runtime][io]") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.npy";
    save_npy(path, numbered(10));
    const pid_t child = fork();
    if (child == 0) {
        const rlimit limit{50000, 50000};
        setrlimit(RLIMIT_FSIZE, &limit);
        int status = 1;
        try {
            save_npy(path, numbered(100000));
        } catch (const FileError& e) {
            status = std::string(e.what()).find("too large") != std::string::npos ? 0 : 2;
        }
        _exit(status);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(same(load_npy(path), numbered(10)));
    CHECK(names_in(folder.path()) == std::vector<std::string>{"model.npy"});
}

TEST_CASE("a folder is no target, and is said so", "[core][runtime][io]") {
    const TemporaryFolder folder;
    CHECK_THAT(message_of<FileError>([&] { save_npy(folder.path(), numbered(3)); }),
               ContainsSubstring("Is a directory"));
    CHECK_THROWS_AS(save_npz(folder / "no/such.npz", {}), FileError);
    CHECK_THROWS_AS(save_npz(folder / "x.npz", {{std::string(70000, 'n'), numbered(1)}}), FileError);
    CHECK_THAT(message_of<FileError>([&] {
                   save_npz(folder / "x.npz", {{"w", Array(bfloat16, {2})}});
               }),
               ContainsSubstring("x.npz") && ContainsSubstring("cannot hold bfloat16, as \"w\" is"));
    CHECK(names_in(folder.path()).empty());
}

TEST_CASE("files are no standard streams where a program has closed those", "[core][runtime][io]") {
    // ThreadSanitizer ends while it reports that threads use a descriptor which another one opens: the point
    // here.
    if (std::string(BITALE_SANITIZE) == "thread") return;
    const TemporaryFolder folder;
    const ScopedVariable cache("BITALE_FLAGS", "cache_dir=" + (folder / "cache"));
    const std::string path = folder / "model.npy";
    const Array value = numbered(300000);
    const pid_t child = fork();
    if (child == 0) {
        for (const int stream : {0, 1, 2}) close(stream);
        std::atomic<bool> stop{false};
        const auto use_streams = [&] {
            char byte = 0;
            while (!stop)
                if (write(1, "epoch 1\n", 8) > 0 || write(2, "warning\n", 8) > 0 || read(0, &byte, 1) > 0)
                    _exit(2);
        };
        std::thread first(use_streams), second(use_streams);
        int status = 0;
        try {
            for (int i = 0; i < 30 && status == 0; ++i) {
                save_npy(path, value);
                save_npz(folder / "model.npz", {{"x", value}});
                if (!same(load_npy(path), value) || !same(load_npz(folder / "model.npz").at("x"), value))
                    status = 3;
            }
            const Expr x = vector("x");
            Function f = function({x}, exp(x) * 0.25F - 7.0F);
            if (f(value)[0].size() != value.size()) status = 4;
        } catch (...) {
            status = 5;
        }
        try {
            save_npy("/dev/stdout", value);
            status = 6;
        } catch (const FileError&) {
        }
        stop = true;
        first.join();
        second.join();
        _exit(status);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(same(load_npy(path), value));
}

TEST_CASE("a path with a NUL, or of links in a circle, is refused", "[core][runtime][io]") {
    const TemporaryFolder folder;
    save_npy(folder / "kept.npy", numbered(3));
    const std::string beyond = (folder / "kept.npy") + std::string(1, '\0') + ".tmp";
    CHECK_THAT(message_of<FileError>([&] { save_npy(beyond, numbered(1)); }),
               ContainsSubstring("kept.npy\\x00.tmp\" cannot be written"));
    CHECK_THROWS_AS(save_npz(beyond, {{"x", numbered(1)}}), FileError);
    CHECK_THROWS_AS(load_npy(beyond), FileError);
    CHECK(same(load_npy(folder / "kept.npy"), numbered(3)));
    REQUIRE(symlink("circle", (folder / "circle").c_str()) == 0);
    CHECK_THROWS_AS(save_npy(folder / "circle", numbered(1)), FileError);
    CHECK(names_in(folder.path()) == std::vector<std::string>{"circle", "kept.npy"});
}

TEST_CASE("archives with fields of 64 bits are read back", "[core][runtime][io]") {
    const TemporaryFolder folder;
    std::map<std::string, Array> values;
    for (int i = 0; i < 20; ++i) values["v" + std::to_string(i)] = numbered(i * 7, static_cast<float>(i));
    std::vector<std::string> files;
    // All fields, those of the larger entries and of offsets, offsets alone, the number of entries, none.
    for (const std::uint64_t from : {0, 300, 1000, 15, 1 << 20}) {
        const std::string path = folder / (std::to_string(from) + ".npz");
        AtomicFile file(path, false);
        write_npz(file, values, from);
        file.commit();
        const std::map<std::string, Array> got = load_npz(path);
        REQUIRE(got.size() == values.size());
        for (const auto& [name, value] : values) CHECK(same(got.at(name), value));
        files.push_back(text_of_file(path));
    }
    CHECK(files[0].size() > files[1].size());
    CHECK(files[1].size() > files[2].size());
    save_npz(folder / "plain.npz", values);
    CHECK(text_of_file(folder / "plain.npz") == files.back());
}
