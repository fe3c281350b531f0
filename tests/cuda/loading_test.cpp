// Libraries of CUDA: found where they may lie, opened by nobody who does not need them, missed with a reason.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("has no function cudaGraphConditionalHandleCreate"));
    bool said = false;
    for (const LibraryStatus& library : library_list())
        said = said || library.text.find("without loops in graphs") != std::string::npos;
    CHECK(said);
}

// Each in a process of its own, with folders of emulated libraries and the version of their driver.
namespace {

std::string emulated_folder(const std::string& version) {
    return std::string(BITALE_BINARY_DIR) + "/emulated_cuda/" + version;
}
int with_libraries(const std::string& folders, const std::string& driver, const std::string& name) {
    const char* flags = std::getenv("BITALE_FLAGS");
    const std::string command =
        "BITALE_TEST_SEARCH='" + name + "' " + (driver.empty() ? "" : "BITALE_EMULATED_DRIVER=" + driver) +
        " BITALE_FLAGS='cuda_home=" + folders + (flags ? std::string(",") + flags : "") +
        "' timeout 120 /proc/$PPID/exe '" + name + "' > /dev/null";
    return WEXITSTATUS(std::system(command.c_str()));  // NOLINT(concurrency-mt-unsafe)
}
// Whether this process is one of those.
bool searches(const std::string& name) {
    const char* searching = std::getenv("BITALE_TEST_SEARCH");
    return searching && name == searching;
}

// By a library's product and convolution, so that each is asked to work with the others.
void check_that_it_computes() {
    const Expr x = matrix("x"), y = matrix("y");
    Function f = function({x, y}, dot(x, y), {.device = "cuda"});
    const Array a = full_of({64, 96}, 0.5), b = full_of({96, 128}, 2);
    CHECK(f(a, b)[0].at(0) == 96);
}
std::string cudart_text() {
    for (const LibraryStatus& library : library_list())
        if (library.name == "cudart") return library.text;
    return "";
}

}  // namespace

TEST_CASE("a runtime that lacks a function is passed over") {
    if (!searches("a runtime that lacks a function is passed over")) return;
    CHECK(why_unavailable().empty());
    CHECK_THAT(runtime_library().path, ContainsSubstring("/emulated_cuda/13.1/libcudart.so.13"));
    CHECK(graph_library().present);
    CHECK(loop_library().path == runtime_library().path);
    CHECK_THAT(cudart_text(), ContainsSubstring("; passed over: ") &&
                                  ContainsSubstring("13.1-without-cudaLaunchKernelExC/libcudart.so.13 has "
                                                    "no function cudaLaunchKernelExC"));
    check_that_it_computes();
}

TEST_CASE("a runtime that the driver is too old for is passed over with the libraries of its version") {
    if (!searches(
            "a runtime that the driver is too old for is passed over with the libraries of its version"))
        return;
    CHECK(why_unavailable().empty());
    CHECK_THAT(runtime_library().path, ContainsSubstring("/emulated_cuda/12.8/libcudart.so.12"));
    CHECK_THAT(cudart_text(), ContainsSubstring("/emulated_cuda/13.1/libcudart.so.13 is of CUDA 13.1, the "
                                                "driver for 12.8"));
    CHECK_THAT(nvrtc_library().path, ContainsSubstring("/emulated_cuda/12.8/libnvrtc.so.12"));
    CHECK_THAT(cublaslt_library().path, ContainsSubstring("/emulated_cuda/12.8/libcublasLt.so.12"));
    CHECK_THAT(cudnn_library().path, ContainsSubstring("/emulated_cuda/12.8/libcudnn.so.9"));
    CHECK_THAT(passed_over_text(cudnn_library().passed_over),
               ContainsSubstring("/emulated_cuda/13.1/libcudnn.so.9 is for CUDA 13.1, the CUDA runtime ") &&
                   ContainsSubstring(" is of CUDA 12"));
    check_that_it_computes();
}

TEST_CASE("runtimes none of which serves are all named") {
    if (!searches("runtimes none of which serves are all named")) return;
    CHECK_THAT(why_unavailable(), ContainsSubstring("needs a driver for CUDA 13.1, the installed one is for "
                                                    "12.8; update it; passed over: ") &&
                                      ContainsSubstring("has no function cudaLaunchKernelExC") &&
                                      ContainsSubstring("13.5/libcudart.so.13 is of CUDA 13.5"));
    CHECK_THROWS_WITH(function({vector("x")}, Expr(1.0F), {.device = "cuda"}),
                      ContainsSubstring("13.5/libcudart.so.13 is of CUDA 13.5"));
}

TEST_CASE("a search goes on until a library serves, each in a process of its own") {
    const std::string folder = options().cuda_home;
    if (!std::string(BITALE_SANITIZE).empty() || std::getenv("BITALE_TEST_SEARCH") || !folder.empty()) return;
    // The program may have been copied to another machine, without the emulated libraries beside it.
    if (!std::filesystem::exists(std::string(BITALE_BINARY_DIR) + "/CMakeCache.txt")) {
        std::printf("SKIPPED: emulated libraries are found where the test was built, %s, which is not here\n",
                    BITALE_BINARY_DIR);
        return;
    }
    const std::string lacking = emulated_folder("13.1-without-cudaLaunchKernelExC"),
                      newer = emulated_folder("13.1");
    CHECK(with_libraries(lacking + ":" + newer, "", "a runtime that lacks a function is passed over") == 0);
    CHECK(with_libraries(newer + ":" + emulated_folder("12.8"), "12080",
                         "a runtime that the driver is too old for is passed over with the libraries of "
                         "its version") == 0);
    CHECK(with_libraries(lacking + ":" + newer + ":" + emulated_folder("13.5"), "12080",
                         "runtimes none of which serves are all named") == 0);
}

// On a machine with a driver, and of the emulated NVRTC, the second time might come from the driver's cache.
TEST_CASE("NVRTC compiles a text again with all that it says of it") {
    if (!std::string(BITALE_SANITIZE).empty() || !nvrtc_problem().empty()) return;
    for (int twice = 0; twice < 2; ++twice) {
        const CompiledModule made = compile_cuda(
            "extern \"C\" __global__ void k_again(float* x) { x[threadIdx.x] += 1; }\n", "sm_90", "again");
        CHECK(!made.image.empty());
        CHECK_THAT(made.log, ContainsSubstring("ptxas info"));
    }
}

TEST_CASE("each library has a version or a reason") {
    for (const LibraryStatus& library : library_list()) {
        INFO(library.name);
        CHECK(library.text.size() > 8);
    }
    CHECK(runtime_library().present == runtime_library().problem.empty());
    CHECK(nvrtc_library().present == nvrtc_problem().empty());
}

TEST_CASE("a child of a process that has asked for a GPU is told that it can use none") {
    if (!why_unavailable().empty()) return;
    const pid_t child = fork();
    if (child == 0) {
        bool told = why_unavailable().find("forked") != std::string::npos;
        try {
            const Expr x = vector("x");
            function({x}, x + 1, {.device = "cuda"});
            told = false;
        } catch (const DeviceError& e) {
            told = told && std::string(e.what()).find("forked") != std::string::npos;
        }
        _exit(told ? 7 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(why_unavailable().empty());
}
