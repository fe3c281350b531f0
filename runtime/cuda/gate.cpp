#include "runtime/cuda/gate.h"

#include <chrono>

#include "graph/base/options.h"

namespace bitale::cuda {

bool Gate::close(Context& context) {
    {
        const std::lock_guard lock(mutex_);
        if (given_up_ || options().wait_for_launches) return false;
        open_ = false;
    }
    context.check(context.runtime().cudaLaunchHostFunc(context.stream(), &Gate::wait, this),
                  "cudaLaunchHostFunc");
    return true;
}

void Gate::open() {
    {
        const std::lock_guard lock(mutex_);
        open_ = true;
    }
    opened_.notify_all();
}

// On a thread of the driver, which must not call CUDA. Whoever holds the stream may be waiting for it after
// all: a full queue, a kernel that is loaded, a tool that makes launches wait.
void Gate::wait(void* gate) {
    constexpr std::chrono::milliseconds most{200};
    Gate& g = *static_cast<Gate*>(gate);
    std::unique_lock lock(g.mutex_);
    if (!g.opened_.wait_for(lock, most, [&] { return g.open_; })) g.given_up_ = true;
}

}  // namespace bitale::cuda
