// Device: where functions run. Executable: a function prepared for one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "codegen/program.h"
#include "codegen/target.h"
#include "graph/ir/graph.h"
#include "runtime/exec/signature.h"

namespace bitale {

// Steps without the host between them: the first input takes the values one after another.
struct LoopCall {
    const std::int64_t* values = nullptr;  // of each step; null: first, first + 1, ...
    std::int64_t first = 0, steps = 0;
    std::span<const Array> arguments;  // of all inputs; the first one's value does not matter
    const std::atomic<bool>* stop = nullptr;
    std::optional<StopToken> token{};
    std::atomic<std::int64_t>* steps_done = nullptr;

    static LoopCall over(std::span<const std::int64_t> values) {
        static const std::int64_t none = 0;
        LoopCall call;
        call.values = values.empty() ? &none : values.data();
        call.steps = static_cast<std::int64_t>(values.size());
        return call;
    }
    std::int64_t value(std::int64_t step) const { return values ? values[step] : first + step; }
    bool stopped() const {
        return (stop && stop->load(std::memory_order_relaxed)) || (token && token->requested());
    }
};

// Calls are serialised by the device's mutex; see CallLock.
class Executable {
  public:
    Executable() = default;
    virtual ~Executable() = default;
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    // The results, fresh. Throws TypeError, ShapeError, IndexError; shared variables are then as before.
    virtual std::vector<Array> run(std::span<const Array> arguments) = 0;
    // Each result stacked as [steps, ...]. A failing step is named; the state is that of the last good one.
    // Throws ShapeError when a result's shape changes between steps.
    virtual std::vector<Array> loop(const LoopCall& call) = 0;

    virtual std::int64_t arena_bytes() const { return 0; }  // for the largest shapes so far
    virtual int compiler_runs() const { return 0; }
    // What the machine code of a kernel's entry takes, for the report; empty where the compiler does not say.
    virtual std::string resources(const std::string& /*entry*/) const { return {}; }
    // How a library computes a step, for the report: its algorithm or engine, workspace; empty: not known.
    virtual std::string library_choice(const Step& /*step*/) const { return {}; }
    virtual std::vector<Profile::Row> profile() const { return {}; }
    virtual std::string launches() const { return {}; }  // how steps reach the device, for the report
};

// What a device may prepare from.
struct Build {
    std::shared_ptr<const Graph> plain;  // as the user wrote it, givens replaced; with its checks
    Signature signature;
    std::shared_ptr<const Program> program;  // null on a device without a target
    bool profile = false;
    int threads = 0;  // of the cpu device; 0: as the options say
};

// For autotune=on.
struct Timing {
    // All that times depend on beside the program: processor, compiler, libraries.
    std::string identity;
    std::string why_not;  // why nothing is measured on this device; empty: it is
};

class Device {
  public:
    explicit Device(std::string name) : name_(std::move(name)) {}
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const std::string& name() const { return name_; }
    // What code generation may assume; nothing on a device that evaluates graphs as they are.
    virtual std::optional<Target> target() = 0;
    virtual std::unique_ptr<Executable> prepare(Build build) = 0;
    virtual Timing timing() = 0;
    virtual std::string summary() = 0;  // for bitale-info: what it is, or why it is limited
    // Throws DeviceError where functions are built for this device, but cannot be called; before a call has
    // touched anything.
    virtual void check_runs(const std::string& /*function*/, Where /*of_function*/) const {}
    std::mutex& mutex() { return mutex_; }

  private:
    std::string name_;
    std::mutex mutex_;
};

// By name; empty: the default device. Throws DeviceError for an unknown name, listing the known ones, and for
// a device that is not available here, saying why.
Device& device_named(const std::string& name);
struct DeviceStatus {
    std::string name;
    bool available = false;
    std::string text;
};
std::vector<DeviceStatus> device_list();

// Holds the device and the shared variables of a function, in one order for all callers, while a call runs.
class CallLock {
  public:
    // `shared` sorted by address, without duplicates.
    CallLock(Device& device, const std::vector<SharedPtr>& shared);
    ~CallLock();
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;

  private:
    void unlock();
    std::unique_lock<std::mutex> device_;
    const std::vector<SharedPtr>& shared_;
};

// Runs `step` (an error of step k is rethrown with the step's number and value), and stops when asked to.
template <class F>
std::int64_t for_each_step(const LoopCall& call, F&& step);

// The error of one step of a loop, as the same type.
[[noreturn]] void rethrow_in_step(std::int64_t step, std::int64_t value);

template <class F>
std::int64_t for_each_step(const LoopCall& call, F&& step) {
    std::int64_t done = 0;
    while (done < call.steps && !call.stopped()) {
        const std::int64_t value = call.value(done);
        try {
            step(done, value);
        } catch (const Error&) {
            rethrow_in_step(done, value);
        }
        ++done;
        if (call.steps_done) call.steps_done->store(done, std::memory_order_relaxed);
    }
    return done;
}

}  // namespace bitale
