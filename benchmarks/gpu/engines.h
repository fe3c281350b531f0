// What the libraries offer for the calls of a training step, beside what Bitale takes.
#pragma once

#include <bitale/bitale.h>

#include <string>

#include "gpu/machine.h"
#include "gpu/record.h"

namespace bench {

struct EngineSetting {
    std::string device, workload;  // b128, d, ...
    bitale::Precision precision = bitale::Precision::float32;
    bool reduced = false;
};
// For each product the first eight algorithms of cuBLASLt's heuristics, for each convolution every engine
// that cuDNN's heuristics propose, with its notes and whether it qualifies; those that do are timed, and
// checked against sums in float64. An engine that fails is in the result, the rest goes on; the record has
// each as soon as it is known. Throws Wrong in the end where some failed, and NotHere without the libraries.
Json probe_engines(Machine& machine, Record& record, const EngineSetting& setting);

}  // namespace bench
