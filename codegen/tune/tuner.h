// Choices that a measurement can settle: what code generation asks, and what it is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace bitale {

// How a value may be computed.
enum class Way : std::uint8_t {
    library,     // a call
    generated,   // among what surrounds it
    winners,     // a gradient of filters behind max-pooling: through the winners of its windows
    all_places,  // the same over all places of the convolution's result
};
const char* name_of(Way way);

struct Question {
    // The value with what would be fused with it: its inputs are what lies in memory whatever is chosen.
    Graph excerpt;
    std::vector<Way> ways;  // the first one is what estimates say
};

struct Answer {
    Way way;
    std::string why;  // for the report; empty where nobody measured
};

// Asked while code is generated. The same question has the same answer for one and the same tuner.
class Tuner {
  public:
    Tuner() = default;
    virtual ~Tuner() = default;
    Tuner(const Tuner&) = delete;
    Tuner& operator=(const Tuner&) = delete;
    virtual Answer choose(const Question& question) = 0;
};

// Gives one answer wherever it is possible: for code that is to be measured.
class FixedTuner : public Tuner {
  public:
    explicit FixedTuner(Way way) : way_(way) {}
    Answer choose(const Question& question) override;

  private:
    const Way way_;
};

}  // namespace bitale
