// Device: where functions run. Executable: a function prepared for one.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "codegen/program.h"
#include "codegen/target.h"
#include "graph/base/memory.h"
#include "graph/base/turns.h"
#include "graph/ir/graph.h"
#include "runtime/exec/frame.h"
#include "runtime/exec/signature.h"

namespace bitale {

class CallLock;
struct OwnMemory;  // runtime/memory/plan.h

// An OutOfMemory whose text says where the memory goes.
class MemoryRefusal : public OutOfMemory {
    using OutOfMemory::OutOfMemory;
};

// Steps without the host between them: the first input takes the values one after another.
struct LoopCall {
    const std::int64_t* values = nullptr;  // of each step; null: first, first + 1, ...
    std::int64_t first = 0, steps = 0;
    std::span<const Array> arguments;  // of all inputs; the first one's value does not matter
    const std::atomic<std::uint64_t>* stops = nullptr;  // requests to stop so far; the loop ends by the next
    std::uint64_t stops_before = 0;
    std::optional<StopToken> token{};
    std::atomic<std::int64_t>* steps_done = nullptr;  // of the function's loop that told last
    std::int64_t* own_steps_done = nullptr;
    std::int64_t told = 0;     // steps before the first of these
    CallLock* lock = nullptr;  // that of the call; a loop lets others have it between steps

    static LoopCall over(std::span<const std::int64_t> values) {
        static const std::int64_t none = 0;
        LoopCall call;
        call.values = values.empty() ? &none : values.data();
        call.steps = static_cast<std::int64_t>(values.size());
        return call;
    }
    // What is left of it after so many steps.
    LoopCall rest(std::int64_t done) const {
        LoopCall call = *this;
        if (values)
            call.values += done;
        else
            call.first += done;
        call.steps -= done;
        call.told += done;
        return call;
    }
    std::int64_t value(std::int64_t step) const { return values ? values[step] : first + step; }
    void tell(std::int64_t done) const {
        if (steps_done) steps_done->store(told + done, std::memory_order_relaxed);
        ended(done);
    }
    // Also where it ends before its first step.
    void ended(std::int64_t done) const {
        if (own_steps_done) *own_steps_done = told + done;
    }
    bool stopped() const {
        return (stops && stops->load(std::memory_order_relaxed) != stops_before) ||
               (token && token->requested());
    }
};

// A CallLock is held during run() and loop(). They are called by several threads at once unless calls take
// turns on the device.
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

    // Gives back the memory that it keeps from call to call. Within a CallLock.
    virtual void drop_arena() {}
    virtual std::int64_t arena_bytes() const { return 0; }  // for the largest shapes so far
    // How a call of these sizes holds the buffers of a program for this device, its own or another, and what
    // it takes beside them; after a call of the sizes `before`, whose memory is kept, where they are given.
    virtual OwnMemory own_memory(const Program& program, const Frame& frame,
                                 const Frame* before = nullptr) const;
    // Of the workspace that products of the program need, one for the device, what is there already.
    virtual std::int64_t workspace_alive(const Program& /*program*/) const { return 0; }
    // That of its device's memory, where it is counted.
    virtual MemoryLedger* ledger() const { return nullptr; }
    // Those of the call whose sizes were new last; empty before the first.
    virtual std::vector<std::int64_t> last_symbols() const { return {}; }
    virtual int compiler_runs() const { return 0; }
    // What the machine code of a kernel's entry takes, for the report; empty where the compiler does not say.
    virtual std::string resources(const std::string& /*entry*/) const { return {}; }
    // How a library computes a step, for the report: its algorithm or engine, workspace; empty: not known.
    virtual std::string library_choice(const Step& /*step*/) const { return {}; }
    virtual std::vector<Profile::Row> profile() const { return {}; }
    virtual std::vector<LaunchCounts> counts() const { return {}; }  // where the emulator counts
    virtual std::string launches() const { return {}; }  // how steps reach the device, for the report
};

// What a device may prepare from.
struct Build {
    std::shared_ptr<const Graph> plain;  // as the user wrote it, givens replaced; with its checks
    Signature signature;
    std::shared_ptr<const Program> program;  // null on a device without a target
    bool profile = false;
    int threads = 0;                // of the cpu device; 0: as the options say
    std::string device{};           // its name, for people
    Where where{};                  // of the function
    std::int64_t memory_limit = 0;  // of a call, by its memory plan; 0: none
};

// For autotune=on.
struct Timing {
    // All that times depend on beside the program: processor, compiler, libraries.
    std::string identity;
    std::string why_not;  // why nothing is measured on this device; empty: it is
};

// The most that a device does, as measured.
struct Roof {
    double bytes_per_second = 0, flops_per_second = 0;
};

class Device {
  public:
    enum class Calls : std::uint8_t { in_turns, at_once };
    Device(std::string name, Calls calls) : name_(std::move(name)), calls_(calls) {}
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const std::string& name() const { return name_; }
    // What code generation may assume; nothing on a device that evaluates graphs as they are.
    virtual std::optional<Target> target() = 0;
    // Says what the device has for opaque ops: asked for graphs that have some, as it may open libraries.
    virtual void find_routines(Target&) {}
    virtual std::unique_ptr<Executable> prepare(Build build) = 0;
    virtual Timing timing() = 0;
    virtual std::optional<Roof> roof() { return std::nullopt; }  // measured when it is asked for first
    virtual std::string summary() = 0;  // for bitale-info: what it is, or why it is limited
    // Throws DeviceError where functions are built for this device, but cannot be called; before a call has
    // touched anything.
    virtual void check_runs(const std::string& /*function*/, Where /*of_function*/) const {}
    virtual bool runs() const { return true; }
    Calls calls() const { return calls_; }
    // Of a device on which calls take turns, and of who measures or looks at what calls change.
    TurnLock& turns() { return turns_; }

  private:
    std::string name_;
    Calls calls_;
    TurnLock turns_;
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

// A shared variable of a function, and whether its calls write it.
struct SharedUse {
    SharedPtr variable;
    bool written = false;
};

// Holds the shared variables of a function, and the device where calls take turns on it, while a call runs:
// those that it writes alone, the others together with whoever reads them. It gets them all at once: a call
// that waits holds none. A fork of the process waits meanwhile.
class CallLock {
  public:
    // `shared` without duplicates.
    CallLock(Device& device, const std::vector<SharedUse>& shared) : device_(device), shared_(shared) {
        take();
    }
    ~CallLock() { give_back(); }
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;

    // Whether others wait for any of it, or a fork does.
    bool wanted() const { return TurnLock::any_wanted() && is_wanted(); }
    // Lets all go first who wait. Variables may have other values afterwards. Holds nothing any more where it
    // throws.
    void let_others() {
        give_back();
        take();
    }

  private:
    void take();
    bool take_at_once();
    void wait_for_all();
    void give_back();
    bool bring_home();
    bool is_wanted() const;
    bool is_alone(const SharedUse& use) const { return use.written || alone_; }
    bool in_turns() const { return device_.calls() == Device::Calls::in_turns; }

    Device& device_;
    const std::vector<SharedUse>& shared_;
    bool alone_ = false;  // with variables that it only reads, too
    bool held_ = false;
    std::optional<Running> running_;
};

// Runs `step` (an error of step k is rethrown with the step's number and value), and stops when asked to.
// Between steps, where others wait for the call's lock, `pause` lets them have it.
template <class F, class P>
std::int64_t for_each_step(const LoopCall& call, F&& step, P&& pause);

// The error that is being handled, as the same type, with more text.
[[noreturn]] void rethrow_with(const std::string& addition);
// The error of one step of a loop, as the same type.
[[noreturn]] void rethrow_in_step(std::int64_t step, std::int64_t value);

// What belongs to one of the steps: its error names the step.
template <class F>
auto in_step(const LoopCall& call, std::int64_t step, F&& f) {
    try {
        return f();
    } catch (const Error&) {
        rethrow_in_step(call.told + step, call.value(step));
    }
}

template <class F, class P>
std::int64_t for_each_step(const LoopCall& call, F&& step, P&& pause) {
    std::int64_t done = 0;
    while (done < call.steps && !call.stopped()) {
        const bool goes_on = in_step(call, done, [&] {
            if (TurnLock::any_wanted() && call.lock && done > 0 && call.lock->wanted()) {
                pause();
                if (call.stopped()) return false;
            }
            step(done, call.value(done));
            return true;
        });
        if (!goes_on) break;
        ++done;
        call.tell(done);
    }
    call.ended(done);
    return done;
}

}  // namespace bitale
