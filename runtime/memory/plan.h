// Makes the MemoryPlan of a call from a Program and numbers for its lengths.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bitale/memory_plan.h"
#include "runtime/exec/device.h"
#include "runtime/exec/frame.h"

namespace bitale {

// How an executable holds the buffers of a call, and what it takes beside them.
struct OwnMemory {
    enum class Place : std::uint8_t {
        host,
        gpu,          // each in a block of its own but for the arena's
        gpu_separate  // the arena's too
    };
    struct Piece {
        MemoryPlan::Kind kind = MemoryPlan::Kind::workspace;
        std::string name, reason;
        std::int64_t bytes = 0;
        bool on_host = false;
    };
    Place place = Place::host;
    std::vector<Piece> pieces;
    std::vector<std::string> notes;
};

// `symbols` as Frames::find gets them. `steps`: of a loop, whose results are stacked; 0: a call.
MemoryPlan make_memory_plan(const Build& build, const Frame& frame, std::span<const std::int64_t> symbols,
                            const OwnMemory& own, std::int64_t steps = 0);
// Of a function that is evaluated node by node: what goes in and comes out.
MemoryPlan make_memory_plan(const Build& build, std::span<const std::int64_t> symbols);

// Adds those lengths that must equal others which are known.
void infer_lengths(const std::vector<LengthCheck>& checks, std::map<std::uint64_t, std::int64_t>& values);

// Values of the symbols of a signature: those of `examples`, else of the last call where there was one.
// Throws GraphError naming inputs whose lengths are missing, ShapeError where an example cannot be.
std::vector<std::int64_t> symbols_of(const Build& build, const ExampleShapes& examples,
                                     const std::vector<std::int64_t>& last_call);

}  // namespace bitale
