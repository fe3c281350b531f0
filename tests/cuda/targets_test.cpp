// What machine code is made for: the GPU's own architecture first, and something older where the driver
// refuses it.
#include "runtime/cuda/targets.h"

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "bitale/error.h"
#include "codegen/program.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/loading.h"
#include "tests/support/catch.h"

using namespace bitale;
using namespace bitale::cuda;

namespace {

using List = std::vector<std::string>;
const std::vector<int> architectures = {75, 80, 86, 90, 100, 120};

Targets some_targets() {
    return {[] { return architectures; }, [] { return std::string("NVRTC 9.9, and a driver for CUDA 9.8"); }};
}

// A runtime that takes the images that begin with one of some texts, and refuses the others.
struct Driver {
    List takes{};
    Status refusal = 222;
    int loaded = 0, unloaded = 0;
    List tried{};
};
Driver driver;

RuntimeTable picky_runtime() {
    RuntimeTable t = emulated_runtime();
    t.cudaLibraryLoadData = [](Library* library, const void* image, int*, void**, unsigned, int*, void**,
                               unsigned) {
        const std::string text = static_cast<const char*>(image);
        driver.tried.push_back(text);
        for (const std::string& taken : driver.takes)
            if (text == taken) {
                ++driver.loaded;
                *library = reinterpret_cast<Library>(&driver);
                return success;
            }
        return driver.refusal;
    };
    t.cudaLibraryUnload = [](Library) { return ++driver.unloaded, success; };
    t.cudaLibraryGetKernel = [](KernelFunction* kernel, Library, const char*) {
        *kernel = reinterpret_cast<KernelFunction>(&driver);
        return success;
    };
    t.cudaFuncGetAttributes = [](FunctionAttributes*, const void*) { return success; };
    return t;
}

// A device whose compiler writes nothing but the target's name.
struct Bench {
    explicit Bench(Driver with) : runtime(picky_runtime()) {
        driver = std::move(with);
        program.target = "sm_90";
        program.kernels.emplace_back().entries = {"k_test"};
        backend.runtime = &runtime;
        backend.targets = std::shared_ptr<Targets>(new Targets(some_targets()));
        backend.compile = [this](const Program& p, const std::vector<CudaUnit>& units) {
            Images images;
            images.target = backend.targets->current(p.target);
            images.list.assign(units.size(), images.target);
            images.compiler_runs = static_cast<int>(units.size());
            return images;
        };
    }
    LoadedUnits load() {
        if (!context) context.emplace(backend, this, "cuda");
        return load_units(*context, program, {{"", {0}}, {"", {0}}});
    }
    const RuntimeTable runtime;
    Backend backend;
    Program program;
    std::optional<Context> context{};
};

int mappings() {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

}  // namespace

TEST_CASE("a GPU gets its own machine code, then that of its generation, then PTX") {
    CHECK(targets_for("sm_90", architectures) ==
          List{"sm_90", "compute_90", "compute_86", "compute_80", "compute_75"});
    CHECK(targets_for("sm_89", architectures) ==
          List{"sm_86", "sm_80", "compute_86", "compute_80", "compute_75"});
    CHECK(targets_for("sm_103", architectures).front() == "sm_100");
    CHECK(targets_for("sm_130", architectures).front() == "compute_120");
    CHECK(targets_for("sm_70", architectures) == List{"sm_70"});
    CHECK(targets_for("sm_90", {}) == List{"sm_90"});
}

TEST_CASE("PTX of a newer CUDA than the driver's is refused for every target, other code is not") {
    Targets t = some_targets();
    CHECK(t.current("sm_121") == "sm_120");
    CHECK(t.note().empty());
    t.refuse("sm_120", 209, "no image");
    CHECK(t.current("sm_121") == "compute_120");
    CHECK(t.note() == "compute_120, because the driver refuses sm_120 (no image)");
    t.refuse("sm_120", 209, "no image");  // by a function that was compiled meanwhile
    CHECK(t.current("sm_121") == "compute_120");
    t.refuse("compute_120", 218, "invalid PTX");
    CHECK(t.current("sm_121") == "compute_100");
    CHECK_THROWS_WITH(
        t.refuse("compute_100", 222, "unsupported PTX"),
        ContainsSubstring("for a GPU of sm_121: sm_120 (no image), compute_120 (invalid PTX), compute_100 "
                          "(unsupported PTX); there are NVRTC 9.9, and a driver for CUDA 9.8: install"));
    CHECK(t.current("sm_121") == "sm_120");
}

TEST_CASE("what the driver refuses is compiled for the next target, and kept to") {
    Bench bench({.takes = {"compute_86"}, .refusal = 218});
    const LoadedUnits loaded = bench.load();
    CHECK(driver.tried == List{"sm_90", "compute_90", "compute_86", "compute_86"});
    CHECK(loaded.images.compiler_runs == 6);
    CHECK(loaded.libraries.size() == 2);
    CHECK_THAT(bench.backend.targets->note(),
               ContainsSubstring("compute_86, because the driver refuses sm_90 ("));
    driver.tried.clear();
    driver.unloaded = 0;
    bench.load();
    CHECK(driver.tried == List{"compute_86", "compute_86"});
    CHECK(driver.unloaded == 2);  // by who had them
}

TEST_CASE("kernels of functions that are gone are unloaded") {
    const Expr x = vector("x");
    int after_one = 0;
    for (int i = 0; i < 12; ++i) {
        Function f = function({x}, exp(x) * (0.125 * i + 1) + sum(x), {.device = "emulator"});
        f(ones({5}));
        if (i == 0) after_one = mappings();
    }
    CHECK(mappings() <= after_one + 3);
}

TEST_CASE("a driver that takes nothing is told with the versions and the cure") {
    Bench bench({.refusal = 222});
    CHECK_THROWS_WITH(bench.load(), ContainsSubstring("the driver refuses all code") &&
                                        ContainsSubstring("sm_90 (") && ContainsSubstring("compute_90 (") &&
                                        ContainsSubstring("NVRTC 9.9") && ContainsSubstring("newer driver"));
    CHECK(driver.tried == List{"sm_90", "compute_90"});
}

TEST_CASE("errors that another target does not cure are not tried again") {
    Bench bench({.refusal = 2});
    CHECK_THROWS_AS(bench.load(), OutOfMemory);
    CHECK(driver.tried == List{"sm_90"});
}

TEST_CASE("a GPU is there by the runtime's count, with NVRTC or without") {
    Loaded<RuntimeTable> library;
    library.present = true;
    library.path = "libcudart.so.13";
    library.table = emulated_runtime();
    library.table.cudaGetDeviceCount = [](int* count) { return *count = 2, success; };
    CHECK(why_unavailable(library, 0).empty());
    CHECK(why_unavailable(library, 1).empty());
    CHECK(why_unavailable(library, 2) ==
          "there is no GPU 2; the CUDA runtime libcudart.so.13 finds 2, cuda and cuda:1");
    library.table.cudaGetDeviceCount = [](int* count) { return *count = 0, error_no_device; };
    CHECK_THAT(why_unavailable(library, 0), ContainsSubstring("but no GPU"));
}
