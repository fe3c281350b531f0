#include "gpu/settle.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double round_seconds = 0.1, least_warm_up = 0.3, most_warm_up = 2, agreement = 0.02;

}  // namespace

double Rounds::median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Json Rounds::warm_up() const { return {{"seconds", warm_seconds}, {"settled", settled}}; }

Rounds settled_rounds(const RoundLimits& limits, const std::function<double(std::int64_t)>& run,
                      const std::function<void()>& after) {
    Rounds r;
    const Clock::time_point start = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const auto round = [&](std::int64_t units) { return run(units) / static_cast<double>(units); };
    double before = round(limits.first);
    for (;;) {
        // What the last round took: a machine that gets faster is given more.
        r.units = std::clamp(static_cast<std::int64_t>(std::ceil(round_seconds / std::max(before, 1e-8))),
                             limits.least, limits.most);
        const double now = round(r.units);
        r.settled = std::abs(now - before) <= agreement * now;
        before = now;
        r.warm_seconds = passed();
        if (r.warm_seconds >= most_warm_up || (r.settled && r.warm_seconds >= least_warm_up)) break;
    }
    for (int k = 0; k < limits.rounds; ++k) {
        r.seconds.push_back(round(r.units));
        after();
    }
    return r;
}

Rounds few_rounds(std::int64_t units, int rounds, const std::function<double(std::int64_t)>& run) {
    Rounds r;
    r.units = units;
    run(units);
    for (int k = 0; k < rounds; ++k) r.seconds.push_back(run(units) / static_cast<double>(units));
    return r;
}

}  // namespace bench
