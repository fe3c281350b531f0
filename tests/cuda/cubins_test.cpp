// Machine code is kept on disk, found again without NVRTC, and written by dumps. Needs NVRTC, but no GPU.
#include "runtime/cuda/cubins.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitale/bitale.h"
#include "codegen/pipeline.h"
#include "graph/base/options.h"
#include "ops/rules/phases.h"
#include "runtime/cuda/dump.h"
#include "runtime/cuda/process.h"
#include "runtime/cuda/target.h"
#include "runtime/report.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

Program small_program() {
    const Expr x = vector("x");
    Graph graph = *function({x}, {exp(x) + 1, sum(x)}, {.name = "little", .device = "null"}).state().plain;
    optimize(graph);
    return generate(graph, target_of("sm_90"));
}

// The exit status of a process that runs `work` on a copy of this one.
template <class Work>
int in_a_process(Work&& work) {
    const pid_t child = fork();
    if (child == 0) {
        int status = 99;
        try {
            status = work();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s\n", e.what());
        }
        _exit(status);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

bool nvrtc_is_open() { return text_of_file("/proc/self/maps").find("libnvrtc") != std::string::npos; }

constexpr int no_nvrtc = 77;

}  // namespace

// The first case of this file, before any other opens NVRTC.
TEST_CASE("another process finds cubins and does not open NVRTC") {
    if (!std::string_view(BITALE_SANITIZE).empty()) return;
    const TemporaryFolder folder;
    const ScopedOptions scope(with_cache(folder / "cache"));
    const Program program = small_program();
    const std::vector<CudaUnit> units = cuda_units(program);
    const bool open_before = nvrtc_is_open();
    const int runs = in_a_process([&] {
        return nvrtc_problem().empty()
                   ? find_or_compile(units, machine_target("sm_90"), "little").compiler_runs
                   : no_nvrtc;
    });
    if (runs == no_nvrtc) {
        CHECK(nvrtc_skipped());
        return;
    }
    CHECK(runs == 1);
    CHECK(in_a_process([&] {
              const CompiledUnits found = find_or_compile(units, machine_target("sm_90"), "little");
              const bool whole = found.modules[0].image.size() > 1000 && !found.modules[0].resources.empty();
              return found.compiler_runs + (whole ? 0 : 10) + (nvrtc_is_open() == open_before ? 0 : 20);
          }) == 0);
    // Another architecture, or other text, is another entry.
    CHECK(in_a_process([&] { return find_or_compile(units, "sm_80", "little").compiler_runs; }) == 1);
    std::vector<CudaUnit> changed = units;
    changed[0].text += "\n";
    CHECK(in_a_process([&] { return find_or_compile(changed, "sm_90", "little").compiler_runs; }) == 1);
}

TEST_CASE("without NVRTC what is in the cache is found, and what is not is counted") {
    if (nvrtc_skipped()) return;
    const TemporaryFolder folder;
    const NvrtcProblem gone = [] { return std::string("libnvrtc.so.13 is not there"); };
    const Program program = small_program();
    const std::vector<CudaUnit> units = cuda_units(program);
    {
        const ScopedOptions scope(with_cache(folder / "cache"));
        CHECK_THROWS_WITH(
            find_or_compile(units, "sm_90", "little", gone),
            ContainsSubstring("kernels of function little are not in the cache for sm_90") &&
                ContainsSubstring("there is no NVRTC to compile them (libnvrtc.so.13 is not there)"));
        CHECK(find_or_compile(units, "sm_90", "little").compiler_runs == 1);
        CHECK(find_or_compile(units, "sm_90", "little", gone).compiler_runs == 0);
        std::vector<CudaUnit> more = units;
        more.push_back({units[0].text + "\n", {0, 0, 0}});
        CHECK_THROWS_WITH(
            find_or_compile(more, "sm_90", "little", gone),
            ContainsSubstring(fmt::format("3 of the {} kernels of function little are not in the cache for "
                                          "sm_90, and there is no NVRTC to compile them (libnvrtc.so.13",
                                          units[0].kernels.size() + 3)));
    }
    // On another machine, NVRTC would have been looked for elsewhere.
    Options elsewhere = with_cache(folder / "cache");
    elsewhere.cuda_home = "/nowhere";
    const ScopedOptions scope(elsewhere);
    CHECK(known_nvrtc(gone)->version == nvrtc_version());
    CHECK(find_or_compile(units, "sm_90", "little", gone).compiler_runs == 0);
}

TEST_CASE("a damaged cubin is compiled again, and without the cache each time") {
    if (nvrtc_skipped()) return;
    const TemporaryFolder folder;
    Options with = with_cache(folder / "cache");
    const std::vector<CudaUnit> units = cuda_units(small_program());
    std::string image;
    {
        const ScopedOptions scope(with);
        image = find_or_compile(units, "sm_90", "little").modules[0].image;
        for (const auto& file : std::filesystem::directory_iterator(folder / "cache"))
            if (file.path().extension() == ".so") std::ofstream(file.path(), std::ios::app) << "damage";
        const CompiledUnits again = find_or_compile(units, "sm_90", "little");
        CHECK(again.compiler_runs == 1);
        CHECK(again.modules[0].image == image);
        CHECK(find_or_compile(units, "sm_90", "little").compiler_runs == 0);
    }
    with.cache = false;
    const ScopedOptions scope(with);
    CHECK(find_or_compile(units, "sm_90", "little").compiler_runs == 1);
}

TEST_CASE("a GPU that is newer than NVRTC gets PTX of the newest architecture") {
    if (nvrtc_skipped()) return;
    CHECK(machine_target("sm_90") == "sm_90");
    CHECK_THAT(machine_target("sm_999"), ContainsSubstring("compute_"));
}

TEST_CASE("a dump has source, PTX, machine code and resources; SASS, or why not") {
    if (nvrtc_skipped()) return;
    const TemporaryFolder folder;
    const ScopedOptions scope(with_cache(folder / "cache"));
    const Program program = small_program();
    const auto taken = dump_cuda(program, "sm_90", folder.path());
    CHECK_THAT(taken.at(program.kernels[0].entries[0]),
               ContainsSubstring(" registers, ") && ContainsSubstring(", for sm_90"));
    CHECK_THAT(text_of_file(folder / "kernels_0.cu"), ContainsSubstring("__global__"));
    CHECK_THAT(text_of_file(folder / "kernels_0.ptx"), ContainsSubstring(".visible .entry k_"));
    CHECK(text_of_file(folder / "kernels_0.cubin").substr(1, 3) == "ELF");
    CHECK_THAT(text_of_file(folder / "resources.txt"),
               ContainsSubstring(program.kernels[0].entries[0] + ": ") && ContainsSubstring(" registers, "));
    if (text_of_file(folder / "kernels_0.sass").empty())
        CHECK_THAT(text_of_file(folder / "sass.txt"), ContainsSubstring("nvdisasm"));
}

TEST_CASE("SASS comes from the disassembler under CUDA_HOME") {
    if (nvrtc_skipped()) return;
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "bin");
    const std::string tool = folder / "bin/nvdisasm";
    std::ofstream(tool) << "#!/bin/sh\necho \"disassembled with $1\"\n";
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
    const ScopedVariable home("CUDA_HOME", folder.path());
    const ScopedOptions scope(with_cache(folder / "cache"));
    dump_cuda(small_program(), "sm_90", folder.path());
    CHECK(text_of_file(folder / "kernels_0.sass") == "disassembled with -c\n");
}

namespace {

// A function on the emulator with a dump, and what the dump has.
struct Dumped {
    explicit Dumped(const std::string& target) {
        Options with = with_cache(folder / "cache");
        with.dump = folder / "dump";
        with.dump_target = target;
        const ScopedOptions scope(with);
        const Expr x = vector("x");
        const Function f = function({x}, exp(x) + 1, {.name = "little", .device = "emulator"});
        report = f.report(Detail::complete);
        for (const auto& entry : std::filesystem::directory_iterator(with.dump)) files = entry.path();
    }
    std::string text(const std::string& name) const { return text_of_file(files + "/" + name); }

    TemporaryFolder folder;
    std::string files, report;
};

}  // namespace

TEST_CASE("the emulator's kernels are dumped as for a GPU, where NVRTC is; the report has what they take") {
    if (nvrtc_skipped()) return;
    for (const std::string target : {"sm_90", "sm_80"}) {
        const Dumped dumped(target);
        CHECK_THAT(dumped.text("kernels_0.cu"), ContainsSubstring("__global__"));
        CHECK_THAT(dumped.text("kernels_0.ptx"), ContainsSubstring(".target " + target));
        CHECK(dumped.text("kernels_0.cubin").substr(1, 3) == "ELF");
        CHECK_THAT(dumped.text("resources.txt"), ContainsSubstring("For " + target + "\n"));
        CHECK_THAT(dumped.text("report_full.txt"),
                   ContainsSubstring(" registers, ") && ContainsSubstring(", for " + target));
        CHECK(dumped.text("nvrtc.txt").empty());
    }
}

TEST_CASE("what NVRTC does not make is missing from a dump, which says why; the function is built") {
    // No NVRTC of today knows this architecture, and where there is none it is the same.
    const Dumped dumped("sm_12");
    CHECK_THAT(dumped.text("kernels_0.cu"), ContainsSubstring("__global__"));
    CHECK_THAT(dumped.text("nvrtc.txt"),
               ContainsSubstring("What is missing here was not made: ") && ContainsSubstring("NVRTC"));
    CHECK(dumped.text("kernels_0.cubin").empty());
    CHECK(dumped.report.find(" registers, ") == std::string::npos);
}

TEST_CASE(
    "line information is part of what is found in the cache, and names the lines of the text as it is") {
    if (nvrtc_skipped()) return;
    const TemporaryFolder folder;
    Options with = with_cache(folder / "cache");
    std::vector<CudaUnit> units = cuda_units(small_program());
    const auto made = [&](bool lines, const std::string& name) {
        with.debug_lines = lines;
        const ScopedOptions scope(with);
        return find_or_compile(units, "sm_90", name);
    };
    CHECK(made(false, "little").modules[0].image.find("debug_line") == std::string::npos);
    const CompiledUnits with_lines = made(true, "little");
    CHECK(with_lines.compiler_runs == 1);
    // Machine code is no text to print.
    CHECK(with_lines.modules[0].image.find("debug_line") != std::string::npos);
    CHECK(with_lines.modules[0].image.find("little.cu") != std::string::npos);
    CHECK(made(true, "little").compiler_runs == 0);
    CHECK(made(true, "renamed").compiler_runs == 1);
    units[0].text = "// one more line\n" + units[0].text;
    CHECK(made(false, "little").compiler_runs == 0);
    CHECK(made(true, "little").compiler_runs == 1);
}

TEST_CASE("resources are told in words") {
    KernelResources r;
    r.registers = 24;
    r.shared_bytes = 10240;
    CHECK(text_of(r) == "24 registers, 10240 B of shared memory a block, 0 B of stack, no spills");
    r.spill_stores = 8;
    r.spill_loads = 4;
    CHECK_THAT(text_of(r), ContainsSubstring("8 B spilled and 4 B loaded again"));
}

namespace {

// As an executable of a GPU would answer.
class Answering : public Executable {
  public:
    std::vector<Array> run(std::span<const Array> /*arguments*/) override { return {}; }
    std::vector<Array> loop(const LoopCall& /*call*/) override { return {}; }
    std::string resources(const std::string& entry) const override { return "17 registers of " + entry; }
    std::string library_choice(const Step& step) const override { return "engine 5 of " + step.title; }
};

}  // namespace

TEST_CASE("a report has the resources of every kernel") {
    const Expr x = vector("x");
    const Function f = function({x}, {exp(x), sum(x)}, {.device = "null"});
    CHECK(f.report(Detail::complete).find("registers") == std::string::npos);
    Function::State state;
    state.device = f.state().device;
    state.program = f.state().program;
    state.inputs = f.state().inputs;
    state.executable = std::make_unique<Answering>();
    const std::string report = report_of(state, Detail::complete);
    for (const KernelText& kernel : state.program->kernels)
        for (const std::string& entry : kernel.entries)
            CHECK_THAT(report, ContainsSubstring(entry) && ContainsSubstring(": 17 registers of " + entry));
    for (const Step& step : state.program->body.steps)
        CHECK_THAT(report, ContainsSubstring("\n     engine 5 of " + step.title + "\n"));
}

TEST_CASE("tools that are missing or fail leave nothing") {
    CHECK(output_of({"echo", "two  words"}) == "two  words\n");
    CHECK(!output_of({"no-such-program-anywhere"}));
    CHECK(!output_of({"false"}));
}
