// Names of devices that run CUDA kernels: "cuda", "cuda:1", "cuda:sm_90", "emulator", "emulator:1".
#pragma once

#include <optional>
#include <string>

namespace bitale::cuda {

struct DeviceName {
    bool emulated = false;
    int index = 0;             // of the GPU
    std::string architecture;  // as sm_90: of a GPU that need not be there; empty: of the GPU with the index

    // The shortest text with this meaning: "cuda" for "cuda:0".
    std::string text() const;
    bool operator==(const DeviceName&) const = default;
};

// Nothing for a name of another kind, such as "cpu". Throws DeviceError, with the valid forms, where "cuda:"
// or "emulator:" is followed by something else.
std::optional<DeviceName> parse_device_name(const std::string& text);

}  // namespace bitale::cuda
