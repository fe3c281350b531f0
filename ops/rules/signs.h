// Which values are never below 0, by the expressions that they are.
#pragma once

#include <cstdint>

#include "graph/rewrite/rule.h"

namespace bitale {

enum class Sign : std::uint8_t { any, not_below_zero, above_zero };

// Of all values, or of those alone whose derivatives are 0 wherever they are 0: sqrt(x) has none there, and
// exponentials, which reach 0 by rounding, have rules of their own.
enum class Zeros : std::uint8_t { any, least };

class Signs {
  public:
    Signs(const Match& match, Zeros zeros) : match_(match), zeros_(zeros) {}
    Sign of(const NodePtr& x);

  private:
    Sign least_of(const Nodes& nodes);

    const Match& match_;
    const Zeros zeros_;
    int visited_ = 0;
};

// Views whose elements are all elements of the first operand.
bool only_moves(const NodePtr& node);

}  // namespace bitale
