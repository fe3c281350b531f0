// What slices and rows, and their transposes, demand of the lengths they meet.
#pragma once

#include <string>
#include <vector>

#include "ops/shape/slice.h"

namespace bitale {

// Appends that a place exists, needed <= there: an IndexError where it does not.
void demand_place(std::vector<Equality>& into, const Int& needed, const Int& there, std::string sentence);
// Likewise for the attribute "places" of the node, which cuts `whole`.
void demand_places(std::vector<Equality>& into, const Node& node, const Node& whole);
// With the "places" of the slice: what is made from its part alone demands them, too.
Attributes with_places(Attributes attributes, const Node& slice);

}  // namespace bitale
