// What a Function holds.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "graph/ir/graph.h"
#include "runtime/exec/device.h"
#include "runtime/tune/autotuner.h"

namespace bitale {

struct Function::State {
    std::string name;
    Where where;
    Device* device = nullptr;
    std::shared_ptr<const Graph> plain;      // as the user wrote it, givens replaced
    std::shared_ptr<const Graph> optimised;  // null where graphs are evaluated as they are
    std::shared_ptr<const Program> program;  // likewise
    Signature signature;
    std::vector<InputInfo> inputs;
    std::vector<std::optional<Array>> defaults;
    std::vector<SharedUse> shared;  // all that a call reads or writes, sorted by address
    std::unique_ptr<Executable> executable, executable_before;  // calls may have begun on the latter
    std::atomic<Executable*> current{nullptr};                  // what calls use
    std::unique_ptr<const std::vector<Kernel>> kernels = std::make_unique<const std::vector<Kernel>>();
    double compile_seconds = 0;
    Precision precision = Precision::float32;
    bool profile = false;
    std::int64_t memory_limit = 0;
    bool strict_math = false;  // when it was built
    // With autotune=on. Choices that need the lengths of a call are made at the first one, and for good.
    bool autotune = false;
    TuningNotes tuning;
    std::atomic<bool> waits_for_lengths{false};
    TurnLock waiting;  // held while they are made, and by whoever looks at program, kernels or notes
    std::unique_ptr<const std::vector<Kernel>> kernels_before;  // users may look at them still
    std::string dump_folder;                                    // of BITALE_DUMP, or empty
    std::map<std::string, std::string>
        dumped;  // what machine code of a dump takes, by entry, where it was made

    std::atomic<std::uint64_t> stops{0};           // requests so far
    std::atomic<std::uint64_t> stops_answered{0};  // those that ended a loop
    std::atomic<std::int64_t> steps_done{0};
};

}  // namespace bitale
