// Whether fusing pays on a GPU whose facts are known: times predicted by the launch model.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "codegen/group/group.h"

namespace bitale {

class FusionScores {
  public:
    FusionScores(const Values& values, const Graph& graph, const Target& target, const Grouping& grouping)
        : values_(values), graph_(graph), target_(target), grouping_(grouping) {}

    // Whether one launch of the group with the value of `own` is predicted to take no longer than two, or
    // what the value reads is too large to be stored in between; true where there is no product in either,
    // where the group has many members, or where nothing is known of the GPU. `full`: the value's nest, fully
    // composed. A group whose members walk the columns of a product in step has more blocks than one that
    // needs whole rows.
    bool pays(const Group& own, const Nest& full, int group);

  private:
    double time_of(const Group& group);
    bool leaves(int value, const std::set<int>& inside) const;

    const Values& values_;
    const Graph& graph_;
    const Target& target_;
    const Grouping& grouping_;
    std::map<std::vector<int>, double> times_;  // of groups of these values
};

}  // namespace bitale
