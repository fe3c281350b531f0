// Fuzzing without help from the compiler: kept inputs, and what mutations make of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace bitale::fuzz {

struct Effort {
    double seconds = 1;            // of mutations, after the whole corpus
    std::uint64_t executions = 0;  // 0: as many as the time allows
    std::uint64_t seed = 1;
};
struct Finding {
    std::string input, what;
};
struct Outcome {
    std::uint64_t executions = 0;
    std::optional<Finding> finding;
};

// Each input of the corpus as it is, then mutations of them, until the effort is spent or something other
// than a refusal leaves the target. The same seed and number of executions give the same inputs.
Outcome fuzz(const Target& target, const std::vector<std::string>& corpus, const Effort& effort);

}  // namespace bitale::fuzz
