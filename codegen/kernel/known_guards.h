// What is known of guards in a branch: of values that differ by constants, one interval.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel/likely.h"
#include "graph/ir/nest.h"

namespace bitale {

class KnownGuards {
  public:
    // The guard's value lies on that side of it, or within.
    void assume(const Guard& guard, GuardSide side);
    // The guard does not hold; on which side is not known.
    void assume_not(const Guard& guard) { failed_.push_back(guard); }
    // Nothing where it cannot be told.
    std::optional<bool> holds(const Guard& guard) const;
    // What has been assumed by sides, as guards that all hold.
    std::vector<Guard> conditions() const;
    // A part without guards that hold; what it is otherwise where one of them does not.
    Scalar settled(const Scalar& s) const;

  private:
    std::vector<Guard> intervals_, failed_;
};

// Whether it does so anywhere, by the ranges of its symbols.
bool always_holds(const Guard& guard);
bool never_holds(const Guard& guard);

}  // namespace bitale
