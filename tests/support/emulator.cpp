#include "tests/support/emulator.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/counted.h"
#include "runtime/cuda/emulator/table.h"

namespace bitale::test {

using namespace bitale::cuda;

DeviceInts::DeviceInts(std::size_t count) {
    REQUIRE(emulated_runtime().cudaSetDevice(0) == success);
    REQUIRE(emulated_runtime().cudaMalloc(reinterpret_cast<void**>(&data_),
                                          count * sizeof(int) + tail_bytes) == success);
    std::iota(data_, data_ + count, 0);
    std::fill_n(reinterpret_cast<char*>(data_ + count), tail_bytes, char{0});
    mark_written(data_, count * sizeof(int) + tail_bytes);
}

DeviceInts::~DeviceInts() { emulated_runtime().cudaFree(data_); }

KernelOutcome run_kernel(const std::string& body, unsigned blocks, unsigned threads, void* more) {
    // The body begins on the text's second line.
    const std::string text =
        "struct k_test_arguments { int* out; const int* in; int* more; }; "
        "extern \"C\" __global__ void k_test(const k_test_arguments arguments) { "
        "int* out = arguments.out; const int* in = arguments.in; int* more = arguments.more; (void)more; "
        "const int t = threadIdx.x, all = blockIdx.x * blockDim.x + t;\n" +
        body + "\n}\n";
    const EmulatedModules modules = compile_emulated({text});
    const RuntimeTable& runtime = emulated_runtime();
    Library library = nullptr;
    KernelFunction kernel = nullptr;
    REQUIRE(runtime.cudaLibraryLoadData(&library, modules.images[0].data(), nullptr, nullptr, 0, nullptr,
                                        nullptr, 0) == success);
    REQUIRE(runtime.cudaLibraryGetKernel(&kernel, library, "k_test") == success);
    const std::size_t count = static_cast<std::size_t>(blocks) * threads;
    const DeviceInts out(count), in(count);
    struct {
        int* out;
        const int* in;
        void* more;
    } pointers{out.data(), in.data(), more};
    void* arguments[] = {&pointers};
    LaunchConfig config;
    config.grid.x = blocks;
    config.block.x = threads;
    KernelOutcome outcome;
    const Status status = runtime.cudaLaunchKernelExC(&config, kernel, arguments);
    if (status != success) outcome.problem = runtime.cudaGetErrorString(status);
    outcome.values.assign(out.data(), out.data() + count);
    if (emulator_counts()) outcome.counts = emulated_counts(kernel).at(0);
    CHECK(runtime.cudaLibraryUnload(library) == success);
    return outcome;
}

}  // namespace bitale::test
