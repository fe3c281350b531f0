// NVRTC accepts every kernel of the examples and of the corpus for the architectures we promise. Needs NVRTC,
// but no GPU.
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/loop_kernels.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <regex>
#include <set>
#include <thread>

#include "codegen/pipeline.h"
#include "ops/rules/phases.h"
#include "runtime/cuda/target.h"
#include "runtime/state.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"
#include "tests/support/corpus.h"
#include "tests/support/nets.h"

using namespace bitale;
using namespace bitale::cuda;
using namespace bitale::test;

namespace {

// As a function on a GPU would have it, with cuDNN or without.
Program cuda_program(const Function& f, bool with_cudnn) {
    Graph graph = *f.state().plain;
    optimize(graph);
    Target target = target_of("sm_90");
    target.has_conv = with_cudnn;
    return generate(graph, target);
}

// What is left of a text without comments.
std::string code_of(const std::string& text) { return std::regex_replace(text, std::regex("//[^\n]*"), ""); }

void check_text(const Program& program) {
    for (const KernelText& kernel : program.kernels) {
        INFO(kernel.cuda_body.substr(0, 2000));
        REQUIRE(!kernel.cuda_body.empty());
        // Kernels call named helpers: what differs between devices is in the prelude.
        for (const char* word : {"asm", "#include", "__CUDA_ARCH__", "__builtin"})
            CHECK(code_of(kernel.cuda_body).find(word) == std::string::npos);
    }
    CHECK(program.cuda_prelude.find("#include") == std::string::npos);
    const std::string helpers = code_of(program.cuda_prelude);
    CHECK(std::regex_replace(helpers, std::regex("B_FN i32 b_neg\\([^}]*\\}"), "").find("asm") ==
          std::string::npos);
}

struct Job {
    std::shared_ptr<const Program> program;
    std::string architecture;
    int most_spilled = 0;  // bytes
    std::string problems;  // what is wrong with the result
    std::size_t kernels = 0;
};

void compile(Job& job) try {
    std::set<std::string> entries;
    for (const CompiledModule& module :
         compile_units(cuda_units(*job.program), job.architecture, job.program->name)) {
        if (module.log.find("warning") != std::string::npos)
            job.problems += module.log.substr(0, 2000) + "\n";
        for (const KernelResources& r : module.resources) {
            entries.insert(r.entry);
            if (r.spill_stores > job.most_spilled)
                job.problems += fmt::format("{}: {} bytes of registers spilled\n", r.entry, r.spill_stores);
        }
    }
    for (const KernelText& kernel : job.program->kernels)
        for (const std::string& entry : kernel.entries)
            if (!entries.contains(entry)) job.problems += entry + " is missing in the module\n";
    job.kernels = entries.size();
} catch (const std::exception& e) {
    job.problems += std::string(e.what()).substr(0, 3000) + "\n";
}

// All programs for all architectures, on all cores.
class Jobs {
  public:
    explicit Jobs(std::vector<std::string> architectures, int most_spilled = 0)
        : architectures_(std::move(architectures)), most_spilled_(most_spilled) {}
    void add(const Function& f, bool with_cudnn) { add(cuda_program(f, with_cudnn)); }
    void add(Program of) {
        const auto program = std::make_shared<const Program>(std::move(of));
        check_text(*program);
        for (const std::string& architecture : architectures_)
            jobs_.push_back({program, architecture, most_spilled_, {}});
    }
    void run() {
        std::atomic<std::size_t> next{0};
        const auto work = [&] {
            for (std::size_t j = next++; j < jobs_.size(); j = next++) compile(jobs_[j]);
        };
        std::vector<std::thread> threads;
        for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t) threads.emplace_back(work);
        work();
        for (std::thread& t : threads) t.join();
        for (const Job& job : jobs_) {
            INFO(job.program->name << " for " << job.architecture << "\n" << job.problems);
            CHECK(job.kernels > 0);
            CHECK(job.problems.empty());
        }
    }

  private:
    std::vector<std::string> architectures_;
    int most_spilled_;
    std::vector<Job> jobs_;
};

}  // namespace

TEST_CASE("ptxas does not see that an int32 is negated") {
    // It would drop the negation in front of the largest of three (device/integer.h).
    const Expr x = input(int32, {-1, 8, 8, 4}, "x");
    const Expr y = -max_pool(-transpose(x, {0, 3, 1, 2}), 3, {.stride = 2});
    const Program program = cuda_program(function({x}, y, {.device = "null"}), false);
    CHECK_THAT(program.cuda_prelude, ContainsSubstring("not.b32"));
    CHECK_THAT(program.kernels.at(0).cuda_body, ContainsSubstring("b_neg("));
    CHECK_THAT(program.cuda_prelude, ContainsSubstring("#ifdef __CUDACC_RTC__"));
}

TEST_CASE("NVRTC reports registers, spills and shared memory") {
    const auto list = resources_in(
        "ptxas info    : Compiling entry function 'k_1' for 'sm_90'\n"
        "ptxas info    : Function properties for k_1\n"
        "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 24 registers, used 1 barriers, 10240 bytes smem\n"
        "ptxas info    : Compiling entry function 'k_2' for 'sm_90'\n"
        "ptxas info    : Function properties for k_2\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 6 registers, 380 bytes cmem[0]\n");
    REQUIRE(list.size() == 2);
    CHECK(list[0].entry == "k_1");
    CHECK((list[0].registers == 24 && list[0].barriers == 1 && list[0].shared_bytes == 10240));
    CHECK((list[0].stack_bytes == 8 && list[0].spill_stores == 4 && list[0].spill_loads == 12));
    CHECK(list[0].spills());
    CHECK((list[1].registers == 6 && list[1].shared_bytes == 0 && !list[1].spills()));
}

TEST_CASE("what NVRTC refuses is shown with its line") {
    if (nvrtc_skipped()) return;
    try {
        compile_cuda("extern \"C\" __global__ void k(int* p) {\n    *p = nobody;\n}\n", "sm_90", "wrong.cu");
        FAIL("compiled an undeclared name");
    } catch (const CompileError& e) {
        CHECK_THAT(e.what(), ContainsSubstring(">     2 |     *p = nobody;"));
        CHECK_THAT(e.what(), ContainsSubstring("sm_90"));
    }
    const CompiledModule ptx =
        compile_cuda("extern \"C\" __global__ void k(int* p) { *p = 1; }", "compute_90", "k");
    CHECK_THAT(ptx.image, ContainsSubstring(".visible .entry k"));
    CHECK(nvrtc_architectures().size() > 3);
}

TEST_CASE("kernels of the examples compile for every architecture") {
    if (nvrtc_skipped()) return;
    // ptxas keeps 2,048 threads on a multiprocessor where that costs a register or two: no step does.
    Jobs steps({"sm_75", "sm_80", "sm_90", "sm_120"}), evaluations({"sm_75", "sm_80", "sm_90", "sm_120"}, 8);
    for (const std::string& name : net_names()) {
        const Net net = make_net(name);
        steps.add(net.step, true);
        evaluations.add(net.evaluation, true);
        if (name == "keras") steps.add(net.step, false);
    }
    steps.run();
    evaluations.run();
}

TEST_CASE("kernels of loops compile for every architecture") {
    if (nvrtc_skipped()) return;
    Jobs jobs({"sm_75", "sm_80", "sm_90", "sm_120"});
    for (const bool repeating : {false, true}) jobs.add(loop_program("sm_90", repeating));
    jobs.run();
}

namespace {

// A kernel of the corpus holds dozens of cases that have nothing to do with each other, all of unknown
// lengths: what they have in common, addresses and lengths, is kept over all of them, and with 64-bit
// divisions, which are calls, some does not fit into registers. No kernel of a network has that.
constexpr int spilled_by_corpus = 256;

}  // namespace

TEST_CASE("kernels of the corpus compile for the oldest architecture") {
    if (nvrtc_skipped()) return;
    Jobs jobs({"sm_75"}, spilled_by_corpus);
    for (const CorpusPart& part : kernel_corpus())
        if (part.typical) jobs.add(part.build("null"), false);
    jobs.run();
}

TEST_CASE("kernels of the corpus of every dtype compile for every architecture", "[slow]") {
    if (nvrtc_skipped()) return;
    Jobs jobs({"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"}, spilled_by_corpus);
    for (const CorpusPart& part : kernel_corpus()) jobs.add(part.build("null"), false);
    jobs.run();
}
