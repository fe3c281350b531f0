// launches=compare: every launch of a generated kernel and every call of a library is repeated on the host,
// from a copy of what the GPU's memory held before it, and the results are held against each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bitale/array.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/emulator/module.h"
#include "runtime/cuda/nvrtc.h"

namespace bitale::cuda {

// A buffer of a step: where it is on the GPU, and its name in errors.
struct ComparedBuffer {
    void* there = nullptr;
    std::int64_t count = 0;
    DType dtype = DType::float32;
    std::string name;
    bool is_error_word = false;
};

// Of one function. Kernels run on the emulator, whose memory and faults have no part in it, and must give the
// same bits. Calls of libraries have a bound (library_bounds.h).
class Comparison {
  public:
    // For the emulator. Throws CompileError, also where there is no host compiler.
    static std::vector<std::string> compiled(const Program& program, const std::vector<CudaUnit>& units);
    // Of these images. Throws CompileError.
    Comparison(Context& context, std::shared_ptr<const Program> program,
               const std::vector<std::string>& images);

    // Before a call or a loop: what its shared variables are if a launch of it turns out to be wrong.
    void remember();
    // Before a launch, with the buffers of its step in their order.
    void before(std::vector<ComparedBuffer> buffers);
    // After it. Throws DeviceError with the first difference. `arguments` as the kernel got them: the
    // pointers of the buffers come first.
    void kernel(const std::string& entry, const LaunchConfig& config, std::vector<char> arguments,
                const LaunchWords& words);
    void product(const GemmShape& shape, const LaunchWords& words);
    void convolution(const ConvShape& shape, const LaunchWords& words);

  private:
    struct Copy {
        ComparedBuffer buffer;
        Array here;
    };
    Array download(const ComparedBuffer& buffer);
    Array& operand(std::size_t i) { return copies_[places_[i]].here; }
    const float* floats(std::size_t i) { return static_cast<const float*>(operand(i).data()); }
    void within(const std::vector<double>& bounds, const LaunchWords& words);
    [[noreturn]] void fail(const std::string& text);

    Context& context_;
    std::shared_ptr<const Program> program_;
    std::vector<std::unique_ptr<Module>> modules_;
    std::vector<Copy> copies_;         // of the step's memory, as it was before the launch
    std::vector<std::size_t> places_;  // among them, of each of its buffers
    std::vector<std::pair<void*, Array>> remembered_;
};

}  // namespace bitale::cuda
