// What machine code is made for on one GPU: its own architecture, or an older one where the compiler does not
// know it or the driver refuses it.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/types.h"

namespace bitale::cuda {

// What a GPU can run, the best first, of a compiler that knows these architectures (as 75, 80 ...;
// ascending): its own machine code (sm_90), that of an older architecture with the same major number, and PTX
// (compute_90), which the driver compiles. `architecture` as sm_90; alone where the list is empty or has
// nothing for it.
std::vector<std::string> targets_for(const std::string& architecture, const std::vector<int>& known);

// Whether the driver says of an image that it is not for this GPU or for this driver, as another image may
// be.
bool is_refusal(Status status);

class Targets {
  public:
    using Architectures = std::function<std::vector<int>()>;
    using Versions = std::function<std::string()>;
    // Asked when first needed: what the compiler knows; and for errors, "NVRTC 13.0, a driver for CUDA 12.8".
    Targets(Architectures known, Versions versions)
        : known_(std::move(known)), versions_(std::move(versions)) {}

    // From any thread, as what follows.
    std::string current(const std::string& architecture);
    // The driver refuses images for this target, in these words: the next one is tried from now on, if that
    // is not so already. Throws DeviceError where there is none.
    void refuse(const std::string& target, Status status, const std::string& words);
    // "compute_90, because the driver refuses sm_90: ..."; empty while nothing was refused.
    std::string note() const;

  private:
    const Architectures known_;
    const Versions versions_;
    mutable std::mutex mutex_;  // of what follows: functions are compiled side by side
    std::string architecture_;
    std::vector<std::string> list_;
    std::size_t at_ = 0;
    std::vector<std::string> refusals_;  // "sm_90 (words)"
};

}  // namespace bitale::cuda
