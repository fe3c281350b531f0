// Times of a machine that has just woken up: it raises its clocks for a while, and a GPU lowers them again
// when it has little to do.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/record.h"

namespace bench {

struct RoundLimits {
    std::int64_t first = 1;            // units of the first round, which estimates
    std::int64_t least = 1, most = 1;  // of every other
    int rounds = 7;
};

struct Rounds {
    std::vector<double> seconds;  // of a unit, in each round
    std::int64_t units = 0;       // of a round
    double warm_seconds = 0;      // that passed before the first round that counts
    bool settled = false;         // times did not change any more by then

    double median() const;
    Json warm_up() const;  // for the results
};

// A round lasts a tenth of a second, or as long as `most` units do. Before those that count, others run until
// two of them agree to 2 %: for 0.3 seconds at least, for two at most. `run` does so many units and returns
// their seconds; `after` is called after each round that counts.
Rounds settled_rounds(const RoundLimits& limits, const std::function<double(std::int64_t)>& run,
                      const std::function<void()>& after);
// One round that counts nothing, then those that do: where times say nothing.
Rounds few_rounds(std::int64_t units, int rounds, const std::function<double(std::int64_t)>& run);

}  // namespace bench
