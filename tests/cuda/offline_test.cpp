// Devices such as cuda:sm_90: functions are built and reported for a GPU that is not here, and cannot be
// called.
#include "runtime/cuda/offline_device.h"

#include <filesystem>
#include <regex>
#include <string>
#include <string_view>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "graph/ir/shared.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/offline_plans.h"
#include "runtime/exec/program_io.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;

namespace {

constexpr const char* cannot_run = "device cuda:sm_90, which compiles and reports; it cannot run";

}  // namespace

TEST_CASE("a device of an architecture is there without a GPU, and says that it cannot run") {
    Device& device = device_named("cuda:sm_90");
    CHECK(device.name() == "cuda:sm_90");
    CHECK(&device == &device_named("cuda:sm_90"));
    CHECK(&device != &device_named("cuda:sm_80"));
    CHECK(device.target()->architecture == "sm_90");
    CHECK_THAT(error_of([&] {
                   device.check_runs("step", {"net.cpp", 12});
               }),
               ContainsSubstring("net.cpp:12: function \"step\" is for ") && ContainsSubstring(cannot_run) &&
                   ContainsSubstring("\"emulator\""));
}

TEST_CASE("a function is built for an architecture without a GPU, and cannot be called or looped") {
    if (nvrtc_skipped()) return;
    const Shared w = shared(Array(std::vector<float>{1, 2}), "w"), v = shared(zeros({2}), "v");
    const unsigned line = __LINE__ + 1;
    Function f = function({}, {}, {.updates = {{v, w}}, .name = "copies", .device = "cuda:sm_90"});
    CHECK_THAT(error_of([&] { f(); }), ContainsSubstring("offline_test.cpp:" + std::to_string(line) +
                                                         ": function \"copies\" is for ") &&
                                           ContainsSubstring(cannot_run));
    CHECK(v.get_value().at(0) == 0);
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("launches: none, this device compiles and reports"));
}

TEST_CASE("columns that do not fill the blocks of a GPU are summed up there, behind their maximum") {
    if (nvrtc_skipped()) return;
    for (const std::string device : {"cuda:sm_75", "cuda:sm_90"})
        for (const std::int64_t columns : {33, 127, 129, 257}) {
            INFO(device + ", " + std::to_string(columns));
            const Expr x = input(float32, {64, columns}, "x");
            CHECK_NOTHROW(function({x}, logsumexp(x, 0), {.device = device}));
        }
}

TEST_CASE("without NVRTC a function with kernels is not built for an architecture, says the error") {
    if (cuda::nvrtc_problem().empty()) return;
    const TemporaryFolder folder;  // a cache that knows no NVRTC, emulated ones included
    Options with = options();
    with.cache_directory = folder / "cache";
    const ScopedOptions scope(with);
    const Expr x = vector("x");
    CHECK_THAT(error_of([&] { function({x}, exp(x), {.device = "cuda:sm_90"}); }),
               ContainsSubstring("device cuda:sm_90: CUDA kernels cannot be compiled without NVRTC") &&
                   ContainsSubstring("cuda_home in BITALE_FLAGS"));
}

TEST_CASE("a training step is compiled, planned and reported for an architecture, and touches nothing") {
    if (nvrtc_skipped()) return;
    const TemporaryFolder folder;
    Options with = options();
    with.cache = true;
    with.cache_directory = folder / "cache";
    const ScopedOptions scope(with);
    const Shared images = shared(zeros({256, 1, 20, 20}, uint8), "images"),
                 labels = shared(zeros({256}, int32), "labels"),
                 first = shared(zeros({16, 1, 5, 5}), "first"),
                 filters = shared(zeros({32, 16, 3, 3}), "filters"),
                 w = shared(zeros({32 * 14 * 14, 64}), "w");
    const Expr i = scalar("i", int64);
    const Slice part{i * 128, (i + 1) * 128};
    const Expr h = relu(conv2d(cast(images[part], float32) / 255, first));
    const Expr loss = mean(softmax_crossentropy(dot(flatten(relu(conv2d(h, filters)), 2), w), labels[part]));
    const std::vector<Expr> g = grad(loss, {filters, w});
    const auto build = [&] {
        return function({i}, loss,
                        {.updates = {{filters, filters - 0.1 * g[0]}, {w, w - 0.1 * g[1]}},
                         .name = "step",
                         .device = "cuda:sm_90",
                         .profile = true,
                         .autotune = true});
    };
    Function f = build();
    CHECK(f.compiler_runs() > 0);
    with.dump = folder / "dump";
    {
        const ScopedOptions dumping(with);
        CHECK(build().compiler_runs() == 0);  // found in the cache
    }
    CHECK(f.peak_bytes() > 128 * 32 * 14 * 14 * 4);
    CHECK(f.profile().rows.empty());

    const std::string report = f.report(Detail::complete);
    CHECK_THAT(report, ContainsSubstring("device cuda:sm_90") && ContainsSubstring("target sm_90") &&
                           ContainsSubstring(" registers, ") &&
                           ContainsSubstring("nothing is measured, because"));
    CHECK_THAT(report,
               ContainsSubstring("library call: c[") && ContainsSubstring("library call: convolution of"));
    CHECK_THAT(report, ContainsSubstring("its algorithm and workspace are chosen on a GPU"));
    if (const std::string why = cuda::why_no_plans_without_gpu(); !why.empty())
        CHECK_THAT(report, ContainsSubstring("not planned here: " + why));
    else
        CHECK_THAT(report,
                   ContainsSubstring(" plans engine ") && ContainsSubstring("for NVIDIA H100 (sm_90)"));

    bool by_library = false;
    for (const Kernel& k : f.kernels()) {
        CHECK(k.device == "cuda:sm_90");
        by_library = by_library || k.by_library;
    }
    CHECK(by_library);
    CHECK(program_from_json(program_to_json(*f.state().program)).target == "sm_90");
    for (const auto& dumped : std::filesystem::directory_iterator(with.dump))
        CHECK_THAT(text_of_file(dumped.path().string() + "/kernels_0.cubin"),
                   Catch::Matchers::StartsWith("\x7f"
                                               "ELF"));

    const SharedPtr state = f.state().program->shared.at(0);
    const std::uint64_t version = state->version;
    CHECK_THAT(error_of([&] { f(0); }), ContainsSubstring(cannot_run));
    CHECK_THAT(error_of([&] { f.loop(0, 2); }), ContainsSubstring(cannot_run));
    CHECK(state->version == version);
}

TEST_CASE("a thread of a long product has registers for the loads that it waits for together") {
    if (nvrtc_skipped()) return;
    const Expr x = input(float32, {1, 1960}, "x");
    const Shared w = shared(zeros({1960, 64}), "w");
    const Function f = function({x}, relu(dot(x, w)), {.device = "cuda:sm_90"});
    const std::string report = f.report(Detail::complete);
    INFO(report);
    std::smatch found;
    REQUIRE(std::regex_search(report, found, std::regex("([0-9]+) registers, ")));
    // With a launch bound that asks for a full multiprocessor, ptxas gives 32, and no two loads are together.
    CHECK(std::stoi(found[1]) > 48);
    CHECK_THAT(report, ContainsSubstring("no spills"));
}

TEST_CASE("lengths that only a call tells leave library calls unplanned") {
    if (nvrtc_skipped()) return;
    const Expr x = matrix("x");
    const Shared w = shared(zeros({256, 128}), "w");
    const Function f = function({x}, dot(x, w), {.device = "cuda:sm_80"});
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("not planned here: its lengths are known at a call"));
}

TEST_CASE("an architecture that NVRTC does not know is refused when it is old, and gets PTX when it is new") {
    if (nvrtc_skipped()) return;
    const Expr x = vector("x");
    CHECK_THAT(error_of([&] { function({x}, exp(x), {.device = "cuda:sm_12"}); }),
               ContainsSubstring("device cuda:sm_12: NVRTC does not compile for sm_12, but for sm_"));
    const Function f = function({x}, exp(x), {.device = "cuda:sm_999"});
    CHECK_THAT(f.report(Detail::complete),
               ContainsSubstring("NVRTC does not know sm_999, so kernels are PTX for compute_"));
}

TEST_CASE("a variable stays on the device that has its newest value when another one refuses a call") {
    if (emulator_skipped() || nvrtc_skipped()) return;
    const Shared w = shared(Array(std::vector<float>{1, 2}), "w"), v = shared(zeros({2}), "v");
    Function doubles = function({}, {}, {.updates = {{w, w * 2}}, .device = "emulator"}),
             copies = function({}, {}, {.updates = {{v, w}}, .device = "cuda:sm_90"});
    doubles();
    const SharedPtr state = doubles.state().program->shared.at(0);
    const void* const home = state->home;
    CHECK(home == static_cast<const void*>(&device_named("emulator")));
    CHECK_THROWS_AS(copies(), DeviceError);
    CHECK(state->home == home);
    CHECK(w.get_value().at(1) == 4);
}
