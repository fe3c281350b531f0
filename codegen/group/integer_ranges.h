// Between which numbers the elements of computed integers lie: an index that is always in range is not
// checked.
#pragma once

#include <vector>

#include "codegen/group/values.h"

namespace bitale {

class IntegerRanges {
  public:
    explicit IntegerRanges(const Values& values);

    // Of a value; all numbers of its dtype where no more is known, and of floats all that there are.
    const IntRange& of(int value) const { return ranges_[static_cast<std::size_t>(value)]; }

  private:
    IntRange of_value(const Value& value) const;
    IntRange of_scalar(const ScalarNode& s, const Node& node) const;
    IntRange of_map(const ScalarNode& s, const Node& node) const;

    std::vector<IntRange> ranges_;  // of the values so far
};

}  // namespace bitale
