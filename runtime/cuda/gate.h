// Holds a stream back until all that is put into it meanwhile is there, so that times between events are
// those of a GPU that waits for nobody.
#pragma once

#include <condition_variable>
#include <mutex>

#include "runtime/cuda/context.h"

namespace bitale::cuda {

class Gate {
  public:
    // False where the stream cannot be held: launches are waited for, or something waited while it was held,
    // as tools do that make every launch wait. Then nothing is in the stream.
    bool close(Context& context);
    void open();

  private:
    static void wait(void* gate);

    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = true, given_up_ = false;
};

// Opens it, however its scope ends.
class ClosedGate {
  public:
    ClosedGate(Gate& gate, Context& context, bool wanted)
        : gate_(gate), held_(wanted && gate.close(context)) {}
    ~ClosedGate() { gate_.open(); }
    ClosedGate(const ClosedGate&) = delete;
    ClosedGate& operator=(const ClosedGate&) = delete;
    bool held() const { return held_; }

  private:
    Gate& gate_;
    const bool held_;
};

}  // namespace bitale::cuda
