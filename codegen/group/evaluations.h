// How often values are computed where they are inlined into what reads them: at each place once, by however
// many ways a kernel comes there (compose.h). k of num = sum(k * s) / sum(k) is computed once for a result,
// of exp(x) + flip(exp(x)) the exponential twice.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "codegen/group/values.h"

namespace bitale {

// Inlining more than this many values into one body makes kernels that compile slowly.
constexpr std::size_t longest_chain = 64;

class Evaluations {
  public:
    // What several ways lead to is not shared where a value is `apart`; an empty list: none.
    explicit Evaluations(std::size_t values, std::vector<bool> apart = {})
        : of_(values), apart_(std::move(apart)) {}

    double of(int value) const;
    // The stored value `user` has a loop over so many points of its nest.
    void add_reads(int user, const Nest& nest, double points);
    // Likewise of an inlined value, wherever that is computed; its users are known already.
    void pass_on(int user, const Nest& nest);
    void add(int value, double points) { of_[static_cast<std::size_t>(value)].others += points; }

  private:
    // A place of a stored value's loops at which a value is computed.
    struct Place {
        int root;
        std::vector<Int> at;
        std::vector<Guard> guards;
        double points;
    };
    struct OfValue {
        std::vector<Place> places;
        double others = 0;  // at places that are not kept apart
    };

    std::vector<OfValue> of_;
    const std::vector<bool> apart_;

    void add(int value, Place place);
};

// Inlined values whose kernels would compile slowly with one more value, of each such chain the first ones;
// and all values of these chains.
struct LongChains {
    std::vector<int> ends;
    std::vector<bool> members;
};
LongChains long_chains(const Values& values);

}  // namespace bitale
