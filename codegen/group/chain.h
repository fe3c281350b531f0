// Chains of maps between reductions: which of their values is stored.
#pragma once

#include <cstddef>
#include <functional>

#include "codegen/group/values.h"

namespace bitale {

// Values that one nest is composed of: more would make its kernel compile slowly.
constexpr std::size_t longest_chain = 64;

// Whether the value is the least that a chain has to pass on: only smaller reductions read it, and inlined,
// it would read two reductions or more, which with what else it would read are no less than it is. A product
// that is broadcast is more than its factors. `is_kept`: values on the way that are stored by themselves, and
// read as the reductions that they are made of would be.
bool is_least_of_chain(const Values& values, int number, const std::function<bool(int)>& is_kept);

}  // namespace bitale
