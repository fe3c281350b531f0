// What NVIDIA's management library (NVML, of the driver) says of a GPU while times are taken: clocks, power,
// and what holds the clocks back.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "gpu/record.h"
#include "runtime/cuda/tables.h"

namespace bench {

class Clocks {
  public:
    // Of a GPU as the runtime counts them; null: of none. Where NVML is not there, or does not know the GPU,
    // there are no readings.
    Clocks(const bitale::cuda::RuntimeTable* runtime, int index);

    // Reads, but for what was read just now.
    void note();
    // The readings since the last call; null: there are none.
    Json take();

  private:
    bool read_number(int (*ask)(void*, int, unsigned*), int kind, unsigned& value) const;

    void* device_ = nullptr;
    int (*clock_)(void* device, int kind, unsigned* megahertz) = nullptr;
    int (*power_)(void* device, unsigned* milliwatts) = nullptr;
    int (*temperature_)(void* device, int kind, unsigned* degrees) = nullptr;
    int (*reasons_)(void* device, unsigned long long* reasons) = nullptr;

    std::chrono::steady_clock::time_point last_{};
    std::vector<unsigned> megahertz_, memory_megahertz_, degrees_;
    std::vector<double> watts_;
    std::set<std::string> held_back_by_;
};

// Of the GPU that a device of Bitale's is; of none for others.
Clocks clocks_of(const std::string& device);

}  // namespace bench
