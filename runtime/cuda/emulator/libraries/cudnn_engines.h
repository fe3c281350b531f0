// The engines of the emulated cuDNN: what they can do, how exactly, and in which order the heuristics propose
// them. The tempting ones come first, so that whoever takes what comes first is found out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "runtime/cuda/emulator/libraries/cudnn_graph.h"
#include "runtime/cuda/emulator/libraries/rounding.h"

namespace bitale::emulated {

// How the numbers of an engine differ from those of float32 sums in a fixed order.
struct DnnArithmetic {
    int mantissa_bits = all_mantissa_bits;  // factors are rounded to them
    int sum_bits = all_mantissa_bits;       // and sums to these
    bool changes_from_run_to_run = false;
    std::int64_t transformed_tile = 0;  // a side of the tiles all over which a NaN or infinity spreads
};

struct DnnEngine {
    int index = 0;
    std::vector<int> numerical_notes{}, behavior_notes{};
    int least_capability = 0;
    std::int64_t workspace = 0;  // with the tile that the heuristics choose; twice that without
    bool runtime_compiled = false;
    DnnArithmetic arithmetic{};
};
constexpr int dnn_engine_count = 11;

// Null where there is none of that number.
const DnnEngine* dnn_engine_at(int index);
// Whether any engine computes such a graph on a GPU of that capability.
bool supports(const DnnEngine& engine, const DnnGraph& graph, int capability);
// cudnnBackendHeurMode_t.
std::vector<DnnChoice> proposals(const DnnGraph& graph, int mode, int capability);
std::int64_t workspace_of(const DnnChoice& choice);
// Throws Refusal where the engine cannot run here: code that is generated at run time needs a GPU, and NVRTC
// with its builtins, which nobody opens but the program.
void check_prerequisites(const DnnEngine& engine, bool has_device);

// Runs a graph; `data` has every tensor that is not virtual.
void compute(const DnnGraph& graph, const DnnArithmetic& arithmetic,
             const std::map<std::int64_t, void*>& data);

}  // namespace bitale::emulated
