// Kernels of a test's own on the emulator.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bitale/counts.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/blocks.h"
#include "tests/support/catch.h"

namespace bitale::test {

// Where ThreadSanitizer is on: it takes fibers for one thread.
inline bool emulator_skipped() {
    const std::string sanitizers = BITALE_SANITIZE;
    if (sanitizers.find("thread") == std::string::npos) return false;
    WARN("the emulator is not run under ThreadSanitizer");
    return true;
}

// Sanitizers slow the compiler down too: what another build shows as well is left out.
inline bool emulator_sanitized() { return !std::string_view(BITALE_SANITIZE).empty(); }

inline bool emulator_left_out() {
    if (emulator_skipped()) return true;
    if (emulator_sanitized()) WARN("left out: sanitizers slow the compiler down");
    return emulator_sanitized();
}

// The kernels of a processor and those of a GPU.
inline std::vector<std::string> cpu_and_emulator() {
    std::vector<std::string> list{"cpu"};
    if (!emulator_skipped()) list.emplace_back("emulator");
    return list;
}

class InOrder {
  public:
    explicit InOrder(cuda::ThreadOrder order) { cuda::set_thread_order(order, 7); }
    ~InOrder() { cuda::set_thread_order(cuda::ThreadOrder::ascending); }
    InOrder(const InOrder&) = delete;
    InOrder& operator=(const InOrder&) = delete;
};

// Every access of a kernel is watched while it lives.
class CheckedEmulator {
  public:
    CheckedEmulator() : scope_(checked()) {}

  private:
    static Options checked() {
        Options o = options();
        o.emulator_checks = true;
        return o;
    }
    ScopedOptions scope_;
};

// What kernels ask of memory is counted while it lives.
class CountedEmulator {
  public:
    explicit CountedEmulator(bool debug_kernels = false) : scope_(counted(debug_kernels)) {}

  private:
    static Options counted(bool debug_kernels) {
        Options o = options();
        o.emulator_counts = true;
        o.emulator_checks = false;
        o.debug_kernels = debug_kernels;
        return o;
    }
    ScopedOptions scope_;
};

// Ints in the memory of the emulated GPU: 0, 1, 2, ... With the tail that the executor leaves.
class DeviceInts {
  public:
    explicit DeviceInts(std::size_t count);
    ~DeviceInts();
    DeviceInts(const DeviceInts&) = delete;
    DeviceInts& operator=(const DeviceInts&) = delete;
    int* data() const { return data_; }

  private:
    int* data_ = nullptr;
};

// A kernel on `threads` threads of `blocks` blocks, with one int of each thread in `in` (its number) and in
// `out`: what the launch says, and what is in `out` then. In the body, t is the thread in its block, all in
// the grid; `more` is a pointer to ints of the caller's.
struct KernelOutcome {
    std::string problem;
    std::vector<int> values;
    LaunchCounts counts;  // under a CountedEmulator
};
KernelOutcome run_kernel(const std::string& body, unsigned blocks, unsigned threads, void* more = nullptr);

}  // namespace bitale::test
