// The networks of networks.json as compiled functions.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Workload {
    bitale::Function step;    // one training step, or one chunk of an evaluation; input: its number
    std::int64_t steps = 0;   // in an epoch, or in the whole evaluation
    bool evaluation = false;  // a measurement then is one pass over the whole set
    std::int64_t batch = 0;
    std::vector<bitale::Shared> params;  // layer by layer: "w0", "b2"
};

// What a call and a step cost by themselves: a sum of two numbers, kept in a shared variable, or also
// returned.
Workload compile_tiny(bool output);
// Writes no shared variable, and is small enough for one thread: what several threads may call at once.
Workload compile_reading();

struct DataSet {
    bitale::Array images, labels;  // uint8
    std::string source;            // the folder of MNIST's files, or why the images are random bytes
};
// Of a workload; `most` images at most, 0: all. MNIST's files are looked for in `folder`, or where that is
// empty in $BITALE_DATA, then in the source tree; where there are none, or the data set is not MNIST, images
// are random bytes of the same shape. Throws bitale::FileError where `folder` is given and lacks them, and
// std::runtime_error for an unknown workload.
DataSet data_of(const std::string& workload, const std::string& folder = "", std::int64_t most = 0);
// As networks.json has it.
std::int64_t batch_of(const std::string& workload);

struct Setting {
    // How the images are kept on the device: uint8, int8 (pixel - 128), float32, or uint4, uint2 and uint1,
    // of as many levels; "normalised": float32 that the step does not normalise any more.
    std::string storage = "uint8";
    std::string device{};    // empty: as BITALE_FLAGS says
    std::int64_t batch = 0;  // 0: the workload's own
    std::uint64_t seed = 0;  // of the initial values
    double clip = 0;         // gradients are clipped to this global norm; 0: not
    bool profile = false;
    bitale::Precision precision = bitale::Precision::float32;
};
// Throws std::runtime_error for an unknown workload.
Workload compile(const std::string& name, const DataSet& data, const Setting& setting = {});

}  // namespace bench
