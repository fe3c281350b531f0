// A launcher that takes notes.
#include "runtime/null/null_device.h"

#include <mutex>
#include <utility>

#include "graph/base/turns.h"
#include "runtime/exec/region_runner.h"

namespace bitale {

namespace {

struct Notes {
    ForkMutex mutex;
    std::vector<Launch> launches;
    void add(const Launch& launch) {
        constexpr std::size_t most = 1 << 16;  // nobody may ever ask for them
        const std::lock_guard lock(mutex);
        if (launches.size() < most) launches.push_back(launch);
    }
};

Notes& notes() {
    static Notes& n = *new Notes;
    return n;
}

class NullLauncher : public Launcher {
  public:
    void kernel(int kernel, int phase, void* const*, const std::int64_t*, std::int64_t tasks,
                const Shares*) override {
        Launch l;
        l.kernel = kernel;
        l.phase = phase;
        l.tasks = tasks;
        notes().add(l);
    }
    void gemm(const GemmShape& shape, const GemmData&, const SliceKernels&) override {
        Launch l;
        l.kind = Launch::Kind::gemm;
        l.gemm = shape;
        notes().add(l);
    }
    void conv(const ConvShape& shape, const ConvData&) override {
        Launch l;
        l.kind = Launch::Kind::conv;
        l.conv = shape;
        notes().add(l);
    }
    bool routine(const RoutineShape& shape, void* const*) override {
        Launch l;
        l.kind = Launch::Kind::routine;
        l.routine = shape;
        notes().add(l);
        return true;
    }
    void copy(void*, const void*, std::int64_t bytes) override {
        Launch l;
        l.kind = Launch::Kind::copy;
        l.bytes = bytes;
        notes().add(l);
    }
    bool computes() const override { return false; }
};

class NullDevice : public Device {
  public:
    NullDevice() : Device("null", Calls::at_once) {}
    // The plan of a CPU with AVX2, the same on every machine, so that it can be compared with one that was
    // kept.
    std::optional<Target> target() override {
        Target t;
        t.architecture = "null";
        t.has_gemm = true;
        t.local_bytes = std::int64_t{512} << 10;
        return t;
    }
    std::unique_ptr<Executable> prepare(Build build) override {
        return std::make_unique<RegionRunner>(
            std::move(build), [] { return std::make_unique<NullLauncher>(); }, 0);
    }
    Timing timing() override { return {"", "this device runs nothing"}; }
    std::string summary() override { return "compiles nothing and records launches"; }
};

}  // namespace

std::unique_ptr<Device> make_null_device() { return std::make_unique<NullDevice>(); }

std::vector<Launch> take_null_launches() {
    const std::lock_guard lock(notes().mutex);
    return std::exchange(notes().launches, {});
}

}  // namespace bitale
