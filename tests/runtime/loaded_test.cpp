// Loaded objects: open while they are used, few of them afterwards.
#include "runtime/cpu/loaded.h"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

#include "runtime/cpu/compiler.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// A small object, and copies of it: the loader knows an object again by its file.
class Objects {
  public:
    Objects() {
        write_file(folder_ / "one.cpp", "extern \"C\" int answer() { static int n = 41; return ++n; }\n");
        const CompilerSearch search = find_compiler();
        REQUIRE(search.found);
        CompileJob job{folder_ / "one.cpp", folder_ / "one.so"};
        job.more_flags = {"-nostdlib"};
        compile_all(*search.found, {job}, 1);
    }
    std::string copy(int number) const {
        std::string path = folder_ / ("copy" + std::to_string(number) + ".so");
        std::filesystem::copy_file(folder_ / "one.so", path);
        return path;
    }
    int mapped() const {
        int lines = 0;
        std::istringstream maps(text_of_file("/proc/self/maps"));
        for (std::string line; std::getline(maps, line);)
            lines += line.find(folder_.path()) != std::string::npos;
        return lines;
    }
    const std::string& folder() const { return folder_.path(); }

  private:
    TemporaryFolder folder_;
};

LoadedObjects::Use opened(LoadedObjects& objects, const std::string& key, const std::string& path) {
    std::string problem;
    LoadedObjects::Use use = objects.open(key, path, problem);
    INFO(problem);
    REQUIRE(use);
    return use;
}

int answer(const LoadedObjects::Use& use) {
    return reinterpret_cast<int (*)()>(dlsym(use.get(), "answer"))();
}

}  // namespace

TEST_CASE("objects that nobody uses are closed, those used last stay", "[core][runtime]") {
    const Objects files;
    LoadedObjects objects(8);
    const LoadedObjects::Use kept = opened(objects, "kept", files.copy(-1));
    REQUIRE(answer(kept) == 42);
    for (int i = 0; i < 300; ++i) {
        const std::string path = files.copy(i);
        REQUIRE(answer(opened(objects, std::to_string(i), path)) == 42);
        std::filesystem::remove(path);
        if (i % 50 == 49) {
            CHECK(objects.open_objects() <= 9);
            CHECK(files.mapped() <= 9 * 6);
        }
    }
    CHECK(answer(kept) == 43);  // it was there all the time
    CHECK(objects.find("kept").get() == kept.get());
    CHECK_FALSE(objects.find("100"));
    const LoadedObjects::Use again = objects.find("299");
    REQUIRE(again);
    CHECK(answer(again) == 43);  // not opened anew
    // One that was used again is not the next to go.
    objects.find("293").reset();
    for (int i = 300; i < 306; ++i) opened(objects, std::to_string(i), files.copy(i));
    CHECK(objects.find("293"));
    CHECK_FALSE(objects.find("294"));
}

TEST_CASE("a key is one object, whoever opens it", "[core][runtime]") {
    const Objects files;
    LoadedObjects objects(0);
    std::string problem;
    CHECK_FALSE(objects.open("none", files.folder() + "/none.so", problem));
    CHECK_THAT(problem, ContainsSubstring("none.so"));
    const std::string path = files.copy(0);
    {
        const LoadedObjects::Use first = opened(objects, "a", path),
                                 second = opened(objects, "a", files.copy(1));
        CHECK(first.get() == second.get());
        CHECK(objects.open_objects() == 1);
    }
    CHECK(objects.open_objects() == 0);
    CHECK(files.mapped() == 0);
    // From many threads at once, which drop what others find.
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                std::string why;
                LoadedObjects::Use use = objects.find("a");
                if (!use) use = objects.open("a", path, why);
                wrong += !use || !dlsym(use.get(), "answer");
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(objects.open_objects() == 0);
}

TEST_CASE("what an object does when it is closed runs under no lock", "[core][runtime]") {
    const TemporaryFolder folder;
    write_file(folder / "two.cpp",
               "static void (*hook)();\n"
               "extern \"C\" void at_end(void (*f)()) { hook = f; }\n"
               "[[gnu::destructor]] static void end() { hook(); }\n");
    const CompilerSearch search = find_compiler();
    REQUIRE(search.found);
    compile_all(*search.found, {CompileJob{folder / "two.cpp", folder / "two.so"}}, 1);
    static std::size_t open_at_end = 99;
    static LoadedObjects* list = nullptr;
    LoadedObjects objects(0);
    list = &objects;
    {
        const LoadedObjects::Use use = opened(objects, "two", folder / "two.so");
        reinterpret_cast<void (*)(void (*)())>(dlsym(use.get(), "at_end"))(
            [] { open_at_end = list->open_objects(); });
    }
    CHECK(open_at_end == 0);
}

TEST_CASE("uses may outlive the list of objects", "[core][runtime]") {
    const Objects files;
    LoadedObjects::Use use;
    {
        LoadedObjects objects(4);
        use = opened(objects, "a", files.copy(0));
    }
    CHECK(answer(use) == 42);
    use.reset();
    CHECK(files.mapped() == 0);
}
