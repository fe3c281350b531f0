// How long alternatives take, side by side.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bitale {

struct Candidate {
    std::string name;
    std::function<void()> run;  // once, on real data; throws what a call throws
};

// Seconds of one run of each: the median of a few, taken in turn, so that a change of the processor's speed
// meets all of them. In bounded time: few runs of what takes long.
std::vector<double> measure(const std::vector<Candidate>& candidates);

// Stands for `measure` in the whole process while it lives. For tests.
using Measure = std::function<std::vector<double>(const std::vector<Candidate>&)>;
class ScopedMeasure {
  public:
    explicit ScopedMeasure(Measure with);
    ~ScopedMeasure();
    ScopedMeasure(const ScopedMeasure&) = delete;
    ScopedMeasure& operator=(const ScopedMeasure&) = delete;

  private:
    const Measure mine_;
    const Measure* before_;
};

}  // namespace bitale
