// The list of devices, and what their executables share.
#include "runtime/exec/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/offline_device.h"
#include "runtime/memory/plan.h"
#include "runtime/null/null_device.h"
#include "runtime/reference/reference_device.h"

namespace bitale {

namespace {

struct Devices {
    std::unique_ptr<Device> list[4] = {make_cpu_device(), make_reference_device(false),
                                       make_reference_device(true), make_null_device()};
};

// Leaked: functions in static variables may outlive main.
Devices& devices() {
    static Devices& d = *new Devices;
    return d;
}

// A GPU, real or emulated, or nothing and the reason. Opens libraries of CUDA: only for those who ask for it.
Device* gpu(const cuda::DeviceName& name, std::string& reason) {
    static TurnLock& turns = *new TurnLock;
    static std::map<std::string, std::unique_ptr<Device>>& made =
        *new std::map<std::string, std::unique_ptr<Device>>;
    const std::lock_guard lock(turns);
    if (const auto at = made.find(name.text()); at != made.end()) return at->second.get();
    reason = name.emulated ? cuda::why_not_emulated(name.index) : cuda::why_unavailable(name.index);
    if (!reason.empty()) return nullptr;
    std::unique_ptr<Device> device =
        name.emulated ? make_emulator_device(name.index) : make_cuda_device(name.index);
    const Running running;
    return (made[name.text()] = std::move(device)).get();
}

// Of a GPU that need not be there, as sm_90.
Device& offline(const std::string& architecture) {
    static ForkMutex& mutex = *new ForkMutex(ForkMutex::Rank::outer);
    static auto& made = *new std::map<std::string, std::unique_ptr<Device>>;
    {
        const std::lock_guard lock(mutex);
        if (const auto at = made.find(architecture); at != made.end()) return *at->second;
    }
    // It has locks of its own. Where another thread was faster this one goes, without the mutex as well.
    std::unique_ptr<Device> device = make_offline_device(architecture);
    const std::lock_guard lock(mutex);
    return *made.try_emplace(architecture, std::move(device)).first->second;
}

}  // namespace

Device& device_named(const std::string& name) {
    const std::string& wanted = name.empty() ? options().device : name;
    std::string known;
    for (const std::unique_ptr<Device>& d : devices().list) {
        if (d->name() == wanted) return *d;
        known += (known.empty() ? "" : ", ") + d->name();
    }
    if (const std::optional<cuda::DeviceName> parsed = cuda::parse_device_name(wanted)) {
        if (!parsed->architecture.empty()) return offline(parsed->architecture);
        std::string reason;
        if (Device* device = gpu(*parsed, reason)) return *device;
        throw DeviceError(fmt::format("device \"{}\" is not available: {}", wanted, reason));
    }
    std::set<std::string> names{"cuda", "cuda:1", "emulator", "emulator:1", "reference=wide"};
    for (const std::unique_ptr<Device>& d : devices().list) names.insert(d->name());
    std::string lower = wanted;
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const std::string meant = lower == "gpu" ? "; did you mean \"cuda\"?" : did_you_mean(lower, names);
    throw DeviceError(
        fmt::format("there is no device {}{} The devices are {}, emulator, cuda, or cuda:1 and "
                    "so on with more than one GPU",
                    in_quotes(wanted), meant.empty() ? "." : meant, known));
}

std::vector<DeviceStatus> device_list() {
    std::vector<DeviceStatus> r;
    for (const std::unique_ptr<Device>& d : devices().list) r.push_back({d->name(), true, d->summary()});
    for (const bool emulated : {true, false}) {
        // Without any, the first says why.
        const int count = std::max(1, emulated ? cuda::emulated_devices() : cuda::gpu_count());
        for (int i = 0; i < count; ++i) {
            const cuda::DeviceName name{emulated, i, ""};
            std::string reason;
            Device* device = gpu(name, reason);
            r.push_back({name.text(), device != nullptr, device ? device->summary() : reason});
        }
    }
    const std::string problem = cuda::nvrtc_problem();
    r.push_back(
        {"cuda:sm_NN", problem.empty(),
         problem.empty() ? offline("sm_90").summary() : "no NVRTC to compile kernels (" + problem + ")"});
    return r;
}

void CallLock::take() {
    alone_ = in_turns();
    for (;;) {
        if (!take_at_once()) wait_for_all();
        held_ = true;
        running_.emplace();
        try {
            if (bring_home()) return;
        } catch (...) {
            give_back();
            throw;
        }
        // What lies elsewhere is brought by one alone.
        give_back();
        alone_ = true;
    }
}

bool CallLock::take_at_once() {
    if (in_turns() && !device_.turns().try_lock()) return false;
    for (const SharedUse& use : shared_) {
        TurnLock& turns = use.variable->turns;
        if (is_alone(use) ? turns.try_lock() : turns.try_lock_shared()) continue;
        for (const SharedUse* had = shared_.data(); had != &use; ++had)
            is_alone(*had) ? had->variable->turns.unlock() : had->variable->turns.unlock_shared();
        if (in_turns()) device_.turns().unlock();
        return false;
    }
    return true;
}

void CallLock::wait_for_all() {
    std::vector<TurnLock::Wish> wishes;
    wishes.reserve(shared_.size() + 1);
    if (in_turns()) wishes.push_back({&device_.turns(), true});
    for (const SharedUse& use : shared_) wishes.push_back({&use.variable->turns, is_alone(use)});
    TurnLock::lock_all(wishes);
}

bool CallLock::bring_home() {
    for (const SharedUse& use : shared_) {
        SharedState& variable = *use.variable;
        if (!variable.fetch || variable.home == &device_) continue;  // it is where it is needed
        if (!is_alone(use)) return false;
        variable.bring_home();
    }
    return true;
}

void CallLock::give_back() {
    if (!held_) return;
    held_ = false;
    std::list<Array> replaced;  // ends after the locks
    for (const SharedUse& use : shared_)
        if (is_alone(use) && !use.variable->replaced.empty())
            replaced.splice(replaced.end(), use.variable->replaced);
    running_.reset();
    const auto unlock = [&](auto&& alone, auto&& shared) {
        for (const SharedUse& use : shared_)
            is_alone(use) ? alone(use.variable->turns) : shared(use.variable->turns);
        if (in_turns()) alone(device_.turns());
    };
    if (!TurnLock::any_wanted()) {
        unlock([](TurnLock& l) { l.unlock(); }, [](TurnLock& l) { l.unlock_shared(); });
        return;
    }
    TurnLock::GivingBack all;
    unlock([&](TurnLock& l) { all.unlock(l); }, [&](TurnLock& l) { all.unlock_shared(l); });
}

bool CallLock::is_wanted() const {
    if (Running::fork_waits()) return true;
    if (in_turns() && device_.turns().wanted()) return true;
    for (const SharedUse& use : shared_)
        if (use.variable->turns.wanted()) return true;
    return false;
}

OwnMemory Executable::own_memory(const Program& /*program*/, const Frame& /*frame*/,
                                 const Frame* /*before*/) const {
    return {};
}

void rethrow_with(const std::string& addition) {
    const auto text = [&](const Error& e) { return e.what() + addition; };
    try {
        throw;
    } catch (const IndexError& e) {
        throw IndexError(text(e));
    } catch (const ShapeError& e) {
        throw ShapeError(text(e));
    } catch (const TypeError& e) {
        throw TypeError(text(e));
    } catch (const DeviceError& e) {
        throw DeviceError(text(e));
    } catch (const MemoryRefusal& e) {
        throw MemoryRefusal(text(e));
    } catch (const OutOfMemory& e) {
        throw OutOfMemory(text(e));
    } catch (const Error& e) {
        throw Error(text(e));
    }
}

void rethrow_in_step(std::int64_t step, std::int64_t value) {
    rethrow_with(
        fmt::format(" (in step {} of the loop, whose first argument is {}; the steps before it are complete)",
                    step, value));
}

}  // namespace bitale
