// The networks of networks.json as compiled functions.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>

namespace bench {

struct Workload {
    bitale::Function step;    // one training step, or one chunk of an evaluation; input: its number
    std::int64_t steps = 0;   // in an epoch, or in the whole evaluation
    bool evaluation = false;  // a measurement then is one pass over the whole set
};

// What a call and a step cost by themselves: a sum of two numbers, kept in a shared variable, or also
// returned.
Workload compile_tiny(bool output);

// storage: uint8 or float32, how the images are kept on the device. Throws std::runtime_error for an unknown
// workload.
Workload compile(const std::string& name, const std::string& storage);

}  // namespace bench
