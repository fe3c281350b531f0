// Phases of results: nests that visit only the points of a sum at which an index can be divided, as the
// gradient of a convolution with a stride does. Results with the same remainder by the stride visit the same
// terms, so each phase of them is a dense sum over those, which asks nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

// A guard that lets through where x is a multiple of the divisor.
struct Multiple {
    Int x;
    std::int64_t divisor = 1;
};
std::optional<Multiple> asks_for_multiple(const Guard& guard);
// Whether some guard of the nest does, of an x that moves with the variable.
bool asks_for_multiple(const Nest& nest, const Int& variable);

// How far apart results of a loop are that visit the same terms: parts of so many of them, or a multiple,
// need not ask at run time.
std::int64_t results_alike(const Nest& nest, const Int& variable);

struct ResultPhase {
    Nest nest;
    Substitution results;  // what the loops over results of the whole nest are in this one
};

// What all results of a sum are made of. Each phase visits its terms in the order in which the whole nest
// does; phases that differ in where they begin alone are one nest with a loop over them, and those without
// terms are a map to 0. Nothing where the nest has no such guards, or would be too many pieces.
std::vector<ResultPhase> phases_of(const Nest& nest);

// How many points of the reduced loops a result visits, about.
double terms_of_result(const Nest& nest);

}  // namespace bitale
