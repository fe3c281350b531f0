// cuDNN's functions as a test sees them: descriptors keep what was set, the heuristics propose what the test
// says, nothing is computed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/tables.h"

namespace bitale::test {

struct RecordedEngine {
    std::int64_t index = 0;
    std::vector<std::pair<int, std::int64_t>> knobs = {};
    std::vector<int> numerical = {}, behavior = {};
    std::int64_t workspace = 0;
    bool works = true;  // else no plan of it can be finalised
};

struct RecordedDescriptor {
    struct Value {
        int type = 0;
        std::int64_t count = 0;
        std::string bytes;
    };
    int kind = 0;
    bool finalized = false;
    std::map<int, Value> attributes;

    // Of one number; -1 where the attribute was not set.
    std::int64_t number(int attribute) const;
    const RecordedDescriptor* descriptor(int attribute) const;
};

struct RecordedCudnn {
    std::vector<RecordedEngine> engines;                   // as the heuristics propose them
    std::vector<std::unique_ptr<RecordedDescriptor>> all;  // the destroyed ones too
    std::vector<std::string> events;                       // "heuristics", "plan of 7", "run 7"
    std::vector<const RecordedDescriptor*> of_kind(int kind) const;
};

// Of this process; every call of recording_cudnn() empties it.
RecordedCudnn& recorded_cudnn();
const cuda::CudnnTable& recording_cudnn();

}  // namespace bitale::test
