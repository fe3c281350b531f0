// Times of a profile: taken in a stream that is held until all is there, without what an empty pair of events
// takes. On emulated GPUs whose functions the tests change; no time is a real one.
#include <memory>
#include <string>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// What is asked of the GPU: h, a function of the host; e, an event; k, a kernel; w, somebody waits.
std::string asked;

struct Profiled {
    cuda::RuntimeTable table = cuda::emulated_runtime();
    cuda::Backend backend = cuda::emulator_backend();
    Function f;
    std::unique_ptr<cuda::Gpu> gpu;
    std::unique_ptr<cuda::CudaRunner> runner;

    Profiled() : f(sum_of_many()) {
        backend.runtime = &table;
        table.cudaLaunchHostFunc = [](cuda::Stream s, cuda::HostFunction function, void* data) {
            return asked += 'h', cuda::emulated_runtime().cudaLaunchHostFunc(s, function, data);
        };
        table.cudaEventRecord = [](cuda::Event event, cuda::Stream s) {
            return asked += 'e', cuda::emulated_runtime().cudaEventRecord(event, s);
        };
        table.cudaLaunchKernelExC = [](const cuda::LaunchConfig* config, const void* kernel, void** a) {
            return asked += 'k', cuda::emulated_runtime().cudaLaunchKernelExC(config, kernel, a);
        };
        table.cudaStreamSynchronize = [](cuda::Stream s) {
            return asked += 'w', cuda::emulated_runtime().cudaStreamSynchronize(s);
        };
    }
    static Function sum_of_many() {
        const Expr x = vector("x");
        return function({x}, sum(exp(x)), {.name = "many", .device = "emulator"});
    }
    // What a call asks for, up to where it waits.
    std::string call() {
        if (!runner) {
            gpu = std::make_unique<cuda::Gpu>(backend, this, "profiled", "sm_90");
            runner = std::make_unique<cuda::CudaRunner>(
                Build{f.state().plain, f.state().signature, f.state().program, true}, *gpu);
        }
        asked.clear();
        const Array x(std::vector<float>(100'000, 0.5F));
        CHECK(runner->run({&x, 1})[0].at(0) == Approx(164872.127));
        return asked.substr(0, asked.find('w') + 1);
    }
};

// The events of eight empty pairs, then those around the two phases of the kernel.
const std::string timed = "eeeeeeeeeekkew";

}  // namespace

TEST_CASE("all launches of a profiled step are there before the first begins, but for the first call") {
    if (emulator_skipped()) return;
    Profiled p;
    CHECK(p.call() == timed);
    for (int again = 0; again < 3; ++again) CHECK(p.call() == "h" + timed);
    CHECK(p.runner->profile().at(0).calls == 4);
}

TEST_CASE("an empty pair of events is subtracted") {
    if (emulator_skipped()) return;
    Profiled p;
    p.table.cudaEventElapsedTime = [](float* milliseconds, cuda::Event, cuda::Event) {
        return *milliseconds = 8, cuda::success;
    };
    p.call();
    CHECK(p.runner->profile().at(0).seconds == Approx(8e-3));
    p.call();
    CHECK(p.runner->profile().at(0).seconds == Approx(8e-3 + 7e-3));
}

TEST_CASE("a stream that cannot be held is held no more") {
    if (emulator_skipped()) return;
    Profiled p;
    p.table.cudaLaunchHostFunc = [](cuda::Stream, cuda::HostFunction function, void* data) {
        return asked += 'h', function(data), cuda::success;
    };
    p.call();
    CHECK(p.call() == "h" + timed);
    CHECK(p.call() == timed);
}

TEST_CASE("where launches are waited for the stream is not held") {
    if (emulator_skipped()) return;
    Options waiting = options();
    waiting.wait_for_launches = true;
    const ScopedOptions scope(waiting);
    Profiled p;
    p.call();
    CHECK(p.call().find('h') == std::string::npos);
}
