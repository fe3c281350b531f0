// The kernels that a loop on the GPU needs beside those of its function: written once, compiled once per
// device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/context.h"

namespace bitale::cuda {

// What the kernels read and write, in the memory of the GPU; the text has the same structs.
struct LoopResult {
    const void* from = nullptr;  // the step's value
    void* to = nullptr;          // that of the first step
    std::int64_t bytes = 0;
};
struct LoopState {
    const void* values =
        nullptr;  // int64: of the counted input, for each step; null: they count from `first`
    std::int64_t first = 0;
    std::int64_t position = 0;  // steps that are done; the next one's number
    std::int64_t end = 0;
    void* index = nullptr;  // the input's buffer; may be null
    std::int64_t index_bytes = 0;
    const void* errors = nullptr;  // the error word; may be null
    const void* stop = nullptr;    // host-visible: not zero, and the loop ends after this step
    void* progress = nullptr;      // host-visible: position
    std::int64_t results = 0;      // so many LoopResult follow
};
static_assert(sizeof(LoopResult) == 24 && sizeof(LoopState) == 80);

enum class LoopKernel : std::uint8_t {
    advance,  // the end of a step, one block: collects small results, sets up the next step
    repeat,   // the same, and says whether the WHILE node goes on
    collect,  // copies the results of a step to their places, many blocks
    commit,   // copies bytes unless the error word is set
};

struct AdvanceArguments {
    void* state = nullptr;
    ConditionalHandle handle = 0;
    std::int64_t collects = 0;  // whether advance or repeat copy the results
};
struct CommitArguments {
    const void* errors = nullptr;
    const void* from = nullptr;
    void* to = nullptr;
    std::int64_t bytes = 0;
};

// A program of nothing but these kernels; `repeating`: of `repeat`, which not every driver can load.
Program loop_program(const std::string& target, bool repeating);

class LoopKernels {
  public:
    // Compiles and loads when first asked. Throws CompileError, DeviceError.
    LoopKernels(Context& context, std::string target);

    // `words` and `note`: for whom, in errors.
    void launch(LoopKernel kernel, const void* arguments, unsigned blocks, Stream stream,
                const LaunchWords& words, LaunchNote note);
    void prepare(LoopKernel kernel);  // so that launching it loads nothing

    static constexpr unsigned threads = 256;

  private:
    Context& context_;
    const std::string target_;
    std::array<KernelFunction, 4> functions_{};
    bool watched_ = false;  // they were compiled to be
};

}  // namespace bitale::cuda
