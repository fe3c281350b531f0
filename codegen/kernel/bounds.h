// Bounds of index expressions inside of loops, proven by the integer algebra.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

class Bounds {
  public:
    // Between the two, the variable of the loop has the values that the loop gives it; of lanes those whose
    // results are read.
    void enter(const Stmt& loop);
    void leave() { loops_.pop_back(); }
    // Between the two, the guards hold.
    void assume(const std::vector<Guard>& guards) {
        guards_.insert(guards_.end(), guards.begin(), guards.end());
    }
    void forget(const std::vector<Guard>& guards) { guards_.resize(guards_.size() - guards.size()); }

    // Whether x is none below 0, or is below the limit, in every iteration of the loops in which the guards
    // hold. False where it cannot be told.
    bool non_negative(const Int& x) const;
    bool below(const Int& x, const Int& limit) const { return non_negative(limit - 1 - x); }

  private:
    struct Known {
        Int variable, first, last;  // the last one is a bound where the loop has no step of 1
    };
    // Looks at the loops before number `loop` alone, from the inside out.
    bool never_negative(const Int& x, std::size_t loop) const;

    std::vector<Known> loops_;
    std::vector<Guard> guards_;
};

}  // namespace bitale
