// What is said when a launch fails: the kernel, its phase and the user's lines. On emulated GPUs of the
// tests' own, since a GPU that has failed stays so.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

using namespace bitale;
using namespace bitale::test;

namespace {

class Waiting {
  public:
    Waiting() : scope_(waiting()) {}

  private:
    static Options waiting() {
        Options o = options();
        o.wait_for_launches = true;
        return o;
    }
    ScopedOptions scope_;
};

// An emulated GPU whose functions a test may change.
struct Tables {
    cuda::RuntimeTable runtime = cuda::emulated_runtime();
    cuda::GraphTable graphs = cuda::emulated_graphs();
    cuda::Backend backend = cuda::emulator_backend();
    Tables() {
        backend.runtime = &runtime;
        backend.graphs = &graphs;
    }
};

// A function on such a GPU.
class OnGpu {
  public:
    OnGpu(Tables& tables, Function f)
        : f_(std::move(f)),
          gpu(tables.backend, this, "planted", "sm_90"),
          runner_({f_.state().plain, f_.state().signature, f_.state().program}, gpu) {}

    // What a call, or a loop of some steps, throws; empty: nothing.
    std::string error(const std::vector<Array>& arguments) {
        try {
            runner_.run(arguments);
        } catch (const Error& e) {
            return e.what();
        }
        return "";
    }
    std::string error_of_loop(const std::vector<std::int64_t>& values) {
        const Array zero(std::int64_t{0});
        try {
            LoopCall call = LoopCall::over(values);
            call.arguments = {&zero, 1};
            runner_.loop(call);
        } catch (const Error& e) {
            return e.what();
        }
        return "";
    }
    const Program& program() const { return *f_.state().program; }

  private:
    Function f_;

  public:
    cuda::Gpu gpu;

  private:
    cuda::CudaRunner runner_;
};

// A sum in two phases.
constexpr unsigned line_of_sum = __LINE__ + 3;
Function sum_of_many() {
    const Expr x = vector("x");
    return function({x}, sum(exp(x)), {.name = "many", .device = "emulator"});
}
const std::string sums_line = "faults_test.cpp:" + std::to_string(line_of_sum);
Array many() { return Array(std::vector<float>(100'000, 0.5f)); }

}  // namespace

namespace {

// What a GPU's context has asked for and not given back, and which request is refused.
struct Held {
    int requests = 0, refused = 0, memory = 0, events = 0, streams = 0;
    bool refuses() { return ++requests == refused; }
};
Held held;

}  // namespace

TEST_CASE("a GPU whose resources are refused midway gives back those that it has") {
    Tables tables;
    cuda::RuntimeTable& t = tables.runtime;
    t.cudaMallocHost = [](void** block, std::size_t bytes) -> cuda::Status {
        if (held.refuses()) return cuda::error_out_of_memory;
        return ++held.memory, cuda::emulated_runtime().cudaMallocHost(block, bytes);
    };
    t.cudaFreeHost = [](void* block) { return --held.memory, cuda::emulated_runtime().cudaFreeHost(block); };
    t.cudaEventCreateWithFlags = [](cuda::Event* event, unsigned flags) -> cuda::Status {
        if (held.refuses()) return cuda::error_out_of_memory;
        return ++held.events, cuda::emulated_runtime().cudaEventCreateWithFlags(event, flags);
    };
    t.cudaEventDestroy = [](cuda::Event event) {
        return --held.events, cuda::emulated_runtime().cudaEventDestroy(event);
    };
    t.cudaStreamCreateWithFlags = [](cuda::Stream* stream, unsigned flags) -> cuda::Status {
        if (held.refuses()) return cuda::error_out_of_memory;
        return ++held.streams, cuda::emulated_runtime().cudaStreamCreateWithFlags(stream, flags);
    };
    t.cudaStreamDestroy = [](cuda::Stream stream) {
        return --held.streams, cuda::emulated_runtime().cudaStreamDestroy(stream);
    };
    bool refused = true;
    for (int n = 1; refused; ++n) {
        held = {.refused = n};
        try {
            const cuda::Gpu gpu(tables.backend, &tables, "refused", "sm_90");
            refused = false;
            CHECK(held.memory == 4);
            CHECK(n > 10);
        } catch (const OutOfMemory&) {
            // Given back, as below.
        }
        CAPTURE(n);
        CHECK(held.memory == 0);
        CHECK(held.events == 0);
        CHECK(held.streams == 0);
    }
}

TEST_CASE("a launch that is waited for names kernel, phase, grid and the user's lines") {
    if (emulator_skipped()) return;
    const Waiting waiting;
    Tables tables;
    OnGpu f(tables, sum_of_many());
    const std::string entry = f.program().kernels.at(0).entries.at(1);
    CHECK(f.error({many()}).empty());
    cuda::plant_failure(entry);
    const std::string first = f.error({many()});
    CHECK_THAT(first,
               Catch::Matchers::StartsWith("kernel " + entry + " of many (phase 2 of 2, 1 blocks of ") &&
                   ContainsSubstring(" threads), which computes ") && ContainsSubstring(sums_line) &&
                   ContainsSubstring("a planted failure (cudaErrorLaunchFailure)") &&
                   ContainsSubstring("device planted is not usable any more") &&
                   !ContainsSubstring("launches=wait"));
    CHECK(f.error({many()}) == first);
}

TEST_CASE(
    "a fault that is found later names the functions, their lines, and the flag that finds the launch") {
    if (emulator_skipped()) return;
    Tables tables;
    for (const bool as_graph : {false, true}) {
        OnGpu f(tables, sum_of_many());
        if (as_graph) CHECK(f.error({many()}).empty());
        const std::string entry = f.program().kernels.at(0).entries.at(0);
        cuda::plant_failure(entry);
        CHECK_THAT(f.error({many()}),
                   Catch::Matchers::StartsWith("waiting for the GPU fails: kernel " + entry +
                                               ": a planted failure") &&
                       ContainsSubstring(", in many; " + entry + " of many computes ") &&
                       ContainsSubstring(sums_line) &&
                       ContainsSubstring("; launches=wait in BITALE_FLAGS waits after every launch"));
    }
}

TEST_CASE("nothing is a graph where launches are waited for, and the report says so") {
    if (emulator_skipped()) return;
    const Waiting waiting;
    Tables tables;
    OnGpu f(tables, sum_of_many());
    CHECK(f.gpu.graphs.most() == cuda::Graphs::Most::off);
    CHECK(f.gpu.graphs.why_not_more() == "launches=wait");
    Function g = sum_of_many();
    g(many());
    g(many());
    CHECK_THAT(g.report(Detail::complete), ContainsSubstring("because of launches=wait"));
}

TEST_CASE("the kernels that end a step are named with the loop's function") {
    if (emulator_skipped()) return;
    const Waiting waiting;
    Tables tables;
    const Expr i = scalar("i", int64);
    OnGpu f(tables, function({i}, {i * 2}, {.name = "turns", .device = "emulator"}));
    cuda::plant_failure("bitale_advance");
    CHECK_THAT(f.error_of_loop({1, 2, 3}),
               ContainsSubstring(
                   "kernel bitale_advance (1 blocks of 256 threads), which ends a step of turns fails: "));
}

TEST_CASE("a graph that cannot be launched names its function and five of its lines") {
    if (emulator_skipped()) return;
    Tables tables;
    tables.graphs.cudaGraphLaunch = [](cuda::GraphExecutable, cuda::Stream) { return cuda::Status{1}; };
    const Expr x = vector("x");
    const Expr a = exp(x), b = tanh(a), c = sin(b), d = cos(c), e = sqrt(d), g = e * a;
    OnGpu f(tables, function({x}, {a, b, c, d, e, g, log(a + 1)}, {.name = "maps", .device = "emulator"}));
    CHECK(f.error({many()}).empty());
    CHECK_THAT(f.error({many()}),
               Catch::Matchers::StartsWith("launching the graph of a call of maps, which computes ") &&
                   ContainsSubstring("faults_test.cpp:") &&
                   ContainsSubstring(" more fails: cudaErrorInvalidValue"));
}

TEST_CASE("a library's call that fails is named by its sizes and lines; a fault before it comes up as such") {
    if (emulator_skipped()) return;
    const Expr x = matrix("x"), y = matrix("y");
    const unsigned line = __LINE__ + 2;
    const Function product =
        function({x, y}, dot(x, y), {.name = "product", .device = "emulator", .specialise = false});
    const Array a = zeros({64, 96}), b = zeros({96, 128});
    bool has_library = false;
    for (const Step& step : product.state().program->body.steps)
        has_library = has_library || std::holds_alternative<GemmStep>(step.operation);
    if (!has_library) {
        WARN("no library of matrix products stands for cuBLASLt here");
        return;
    }
    const std::string words =
        "the library's matrix product [64, 96] . [96, 128] of product, which computes dot at "
        "faults_test.cpp:" +
        std::to_string(line);
    Tables tables;
    tables.backend.gemm = [](const GemmShape&, const float*, const float*, const float*, float*,
                             cuda::Stream) {
        throw DeviceError("cublasLtMatmul fails: CUBLAS_STATUS_NOT_SUPPORTED");
    };
    OnGpu refused(tables, product);
    CHECK(refused.error({a, b}) == words + ": cublasLtMatmul fails: CUBLAS_STATUS_NOT_SUPPORTED");
    CHECK(!refused.gpu.context.is_broken());

    Tables broken;
    broken.runtime.cudaStreamQuery = [](cuda::Stream) { return cuda::Status{719}; };
    broken.backend.gemm = tables.backend.gemm;
    OnGpu fault(broken, product);
    CHECK_THAT(
        fault.error({a, b}),
        Catch::Matchers::StartsWith(words + " (cublasLtMatmul fails: CUBLAS_STATUS_NOT_SUPPORTED) fails: ") &&
            ContainsSubstring(", in product; launches=wait in BITALE_FLAGS"));
    CHECK(fault.gpu.context.is_broken());
}

TEST_CASE("a launch that does not end is named while it runs") {
    if (emulator_skipped()) return;
    const Waiting waiting;
    Tables tables;
    tables.runtime.cudaStreamSynchronize = [](cuda::Stream stream) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return cuda::emulated_runtime().cudaStreamSynchronize(stream);
    };
    OnGpu f(tables, sum_of_many());
    f.gpu.context.patience = std::chrono::milliseconds(1);
    std::string warnings;
    {
        const ScopedLog log([&](const std::string& line) { warnings += line + "\n"; });
        CHECK(f.error({many()}).empty());
    }
    CHECK_THAT(warnings,
               ContainsSubstring("still running after 0.0 s: kernel " +
                                 f.program().kernels.at(0).entries.at(0) + " of many (phase 1 of 2") &&
                   ContainsSubstring(sums_line));
}
