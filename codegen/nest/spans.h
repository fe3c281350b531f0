// Bounds of indices in the loops of a nest, whose lengths need not be known.
#pragma once

#include <map>
#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

// Least and greatest of some numbers, in the lengths that a call brings.
struct Span {
    Int low, high;
};

class Spans {
  public:
    explicit Spans(const Nest& nest);

    // Bounds of an index, both of which it takes where no loop occurs twice in it. Nothing where they cannot
    // be told, or where they move with a loop or with what is looked up.
    std::optional<Span> of(const Int& x) const;

  private:
    std::optional<Span> walk(const Int& x) const;
    std::optional<Span> walk(const Atom& a) const;  // that moves
    bool moves(const Atom& a) const;

    Substitution last_;    // the last number of each loop
    Substitution moving_;  // all variables of the nest
};

// Whether a is never less than b: by ranges, or by those of either operand of a maximum in a or a minimum in
// b. False where it cannot be told.
bool at_least(const Int& a, const Int& b);

}  // namespace bitale
