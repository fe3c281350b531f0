// Libraries of CUDA: found where they may lie, opened by nobody who does not need them, missed with a reason.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/process.h"
#include "runtime/cuda/search.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::cuda;

namespace {

Options with_home(const std::string& folder) {
    Options changed = options();
    changed.cuda_home = folder;
    return changed;
}

}  // namespace

// The first case of this file, before any other opens a library on purpose.
TEST_CASE("a function on the cpu opens no library of CUDA") {
    const Expr x = vector("x");
    Function f = function({x}, sum(exp(x)), {.device = "cpu"});
    CHECK(double(f(Array(std::vector<float>{0, 0}))) == 2);
    std::ifstream file("/proc/self/maps");
    const std::string maps{std::istreambuf_iterator<char>(file), {}};
    REQUIRE(!maps.empty());
    for (const char* name : {"libcuda", "libnvrtc", "libcublas", "libcudnn", "libnccl", "libcusolver"}) {
        INFO(name);
        CHECK(maps.find(name) == std::string::npos);
    }
}

TEST_CASE("libraries are looked for where the user says, then the loader, then known folders") {
    const test::TemporaryFolder folder;
    const std::string wheel = folder.path() + "/nvidia/cuda_nvrtc/lib";
    std::filesystem::create_directories(wheel);
    std::ofstream(wheel + "/libnvrtc.so.12") << "not a library";
    const ScopedOptions scope(with_home(folder.path() + ":/nowhere"));
    const auto list = library_candidates({"NVRTC", "libnvrtc", {13, 12}, "cuda_nvrtc"});
    const auto position = [&](const std::string& path) {
        return std::find(list.begin(), list.end(), path) - list.begin();
    };
    const auto end = static_cast<std::ptrdiff_t>(list.size());
    CHECK(list[0] == folder.path() + "/lib64/libnvrtc.so.13");
    CHECK(list[1] == folder.path() + "/lib64/libnvrtc.so.12");
    CHECK(position(wheel + "/libnvrtc.so.12") < position("/nowhere/lib64/libnvrtc.so.13"));
    CHECK(position("/nowhere/lib64/libnvrtc.so.13") < position("libnvrtc.so.13"));
    CHECK(position("libnvrtc.so.13") < position("/usr/local/cuda/lib64/libnvrtc.so.13"));
    CHECK(position("/usr/local/cuda/lib64/libnvrtc.so.13") < end);
}

TEST_CASE("a library that cannot be opened leaves the loader's first words") {
    const test::TemporaryFolder folder;
    std::ofstream(folder.path() + "/libawkward.so.7") << "not a library";
    const ScopedOptions scope(with_home(folder.path()));
    const SharedLibrary broken({"Awkward", "libawkward", {7}, "awkward"});
    CHECK(!broken.found());
    CHECK_THAT(broken.problem(), ContainsSubstring("libawkward.so.7"));
    CHECK(broken.symbol("anything") == nullptr);
    const SharedLibrary absent({"Absent", "libabsent", {1}, "absent"});
    CHECK_THAT(absent.problem(), ContainsSubstring("libabsent.so.1"));
}

// cuDNN opens an NVRTC by itself, which looks for its builtins by bare name.
TEST_CASE("with cuDNN the builtins of its NVRTC are opened, NVRTC is not") {
    const CompilerSearch compiler = find_compiler();
    if (!compiler.found) {
        WARN("no compiler: " << compiler.problem);
        return;
    }
    const test::TemporaryFolder folder;
    const std::string cudnn = folder / "nvidia/cudnn/lib", nvrtc = folder / "nvidia/cu13/lib";
    for (const std::string& path : {cudnn, nvrtc}) std::filesystem::create_directories(path);
    test::write_file(folder / "empty.c", "int bitale_empty = 0;\n");
    for (const std::string& file :
         {cudnn + "/libcudnn.so.9", nvrtc + "/libnvrtc.so.13", nvrtc + "/libnvrtc-builtins.so.13.99"}) {
        std::vector<std::string> command = compiler.found->command;
        command.insert(command.end(), {"-shared", "-fPIC", "-x", "c++", folder / "empty.c", "-o", file});
        REQUIRE(output_of(command));
    }
    const ScopedOptions scope(with_home(folder.path()));
    const SharedLibrary library({"cuDNN", "libcudnn", {9}, "cudnn"});
    REQUIRE(library.path() == cudnn + "/libcudnn.so.9");
    const std::string maps = test::text_of_file("/proc/self/maps");
    CHECK_THAT(maps, ContainsSubstring(nvrtc + "/libnvrtc-builtins.so.13.99"));
    CHECK(maps.find(nvrtc + "/libnvrtc.so") == std::string::npos);
}

TEST_CASE("device cuda is there, or says in one sentence why not") {
    const std::string reason = why_unavailable();
    if (reason.empty()) return;
    const Expr x = vector("x");
    try {
        function({x}, x + 1, {.device = "cuda"});
        FAIL("device cuda is not available, and yet a function was built for it");
    } catch (const DeviceError& e) {
        CHECK_THAT(e.what(), ContainsSubstring("device \"cuda\" is not available: " + reason));
    }
}

// Runs where the folder of the emulated libraries is one that lacks a name.
TEST_CASE("a runtime without a function for loops goes on with a graph a step, and says so") {
    const std::string folder = options().cuda_home;
    if (folder.find("-without-cudaGraphConditionalHandleCreate") == std::string::npos) return;
    CHECK(runtime_library().present);
    CHECK(graph_library().present);
    CHECK(!loop_library().present);
    CHECK_THAT(loop_library().problem, ContainsSubstring("has no function cudaGraphConditionalHandleCreate"));
    const Shared n = shared(Array(0.0F), "n");
    const Expr i = lscalar("i");
    Function f = function({i}, {cast(i, float32)}, {.updates = {{n, n + 1}}, .device = "cuda"});
    for (int twice = 0; twice < 2; ++twice) CHECK(f.loop(0, 4)[0].at(3) == 3);
    CHECK(n.get_value().at(0) == 8);
    CHECK_THAT(f.report(), ContainsSubstring("has no function cudaGraphConditionalHandleCreate"));
    bool said = false;
    for (const LibraryStatus& library : library_list())
        said = said || library.text.find("without loops in graphs") != std::string::npos;
    CHECK(said);
}

TEST_CASE("each library has a version or a reason") {
    for (const LibraryStatus& library : library_list()) {
        INFO(library.name);
        CHECK(library.text.size() > 8);
    }
    CHECK(runtime_library().present == runtime_library().problem.empty());
    CHECK(nvrtc_library().present == nvrtc_problem().empty());
}
