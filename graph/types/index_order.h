// The order of atoms: by kind, then by number or operands.
#pragma once

#include <compare>

#include "graph/types/index.h"

namespace bitale {

std::strong_ordering compare(const AtomPtr& a, const AtomPtr& b);
std::strong_ordering compare(const Atoms& a, const Atoms& b);

}  // namespace bitale
