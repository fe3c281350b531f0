// The kernels that a loop on the GPU needs beside those of its function: written once, compiled once per
// device, when its first function is built. A step waits for no compiler.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/cuda/loading.h"

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
    std::int64_t results = 0;  // so many LoopResult follow
};
static_assert(sizeof(LoopResult) == 24 && sizeof(LoopState) == 56);

enum class LoopKernel : std::uint8_t {
    advance,  // the end of a step, one block: collects small results, sets up the next step, tells the host
    go_on,    // the same within a turn of a WHILE node: the host is told nothing
    repeat,   // the end of a turn: as advance, and says whether there is another one
    collect,  // copies the results of a step to their places, many blocks
    commit,   // copies bytes unless the error word is set
};

// What a captured graph holds is the same in each loop of a function; the rest is in the state.
struct AdvanceArguments {
    void* state = nullptr;
    const void* errors = nullptr;  // the error word; may be null
    const void* stop = nullptr;    // host-visible: not zero, and the loop ends after this turn
    void* progress = nullptr;      // host-visible: position
    ConditionalHandle handle = 0;
    std::int64_t collects = 0;  // whether this kernel copies the results
    std::int64_t steps = 1;     // of a turn: there is no other turn where fewer are left
};
static_assert(sizeof(AdvanceArguments) == 56);
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
    explicit LoopKernels(Context& context) : context_(context) {}

    // Compiles and loads what is not there yet. Where that cannot be compiled, require() says why, and the
    // next function tries again. Throws DeviceError.
    void prepare(const std::string& target, Turn* turn);
    // Throws CompileError where they are not there, but for `repeat`.
    void require() const;
    const std::string& why_no_repeat() const { return why_no_repeat_; }

    // `words` and `note`: for whom, in errors. Compiles and loads nothing.
    void launch(LoopKernel kernel, const void* arguments, unsigned blocks, Stream stream,
                const LaunchWords& words, LaunchNote note) const;

    static constexpr unsigned threads = 256;

  private:
    struct Loaded {
        std::vector<OwnedLibrary> libraries;
        std::array<KernelFunction, 5> functions{};
        std::string why_no_repeat;  // empty where it is there
        KernelFunction& function(LoopKernel kernel) { return functions[static_cast<std::size_t>(kernel)]; }
    };
    Loaded load(const std::string& target, Turn* turn);
    void load_repeat(Loaded& loaded, const std::string& target, Turn* turn);

    Context& context_;
    Loaded loaded_;
    bool ready_ = false;
    std::string why_not_, why_no_repeat_ = "its kernel is not compiled yet";
};

// Of one GPU: those that are watched by the emulator's checks, and the others. A kernel that is not watched
// would hide what it writes from these checks.
class AllLoopKernels {
  public:
    AllLoopKernels(Context& context, std::string target);

    // Those for a function that is built with the options in force.
    const LoopKernels& prepare(Turn* turn);
    const LoopKernels& latest() const { return kernels_[latest_]; }

  private:
    const Backend& backend_;
    const std::string target_;
    std::array<LoopKernels, 2> kernels_;
    std::size_t latest_ = 0;
};

}  // namespace bitale::cuda
