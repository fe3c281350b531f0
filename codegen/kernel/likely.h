// How often guards hold at the points of the loops around them, by some of these points, lengths as they
// usually are: which side of a condition is worth code of its own. Decides nothing about values.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

// Where a guard's value lies.
enum class GuardSide : std::uint8_t { below, within, above };

class LikelyPoints {
  public:
    void enter(const Int& variable, const Int& begin, const Int& end) {
        loops_.push_back({variable, begin, end});
    }
    void leave() { loops_.pop_back(); }

    struct Likely {
        GuardSide side = GuardSide::within;  // the most frequent one
        double share = 0;                    // of the points that are left; 0 where none are
    };
    // Points that are in the loops now; those of other sides of guards are left out by keep().
    class Sample {
      public:
        Likely side_of(const Guard& guard) const;
        void keep(const Guard& guard, GuardSide side);
        double share_left() const;
        double mean_of(const Int& x) const;

      private:
        friend class LikelyPoints;
        using Point = std::map<std::uint64_t, std::int64_t>;
        std::vector<Point> points_;
        std::size_t drawn_ = 0;
    };
    Sample sample() const;

  private:
    struct Entered {
        Int variable, begin, end;
    };
    std::vector<Entered> loops_;
};

}  // namespace bitale
