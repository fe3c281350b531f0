// Whether fusing pays: by times that the launch model predicts for a GPU, and by the work of the tasks on a
// CPU.
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

    // Whether the group with the value of `own` is predicted to take no longer than both by themselves, or
    // what the value reads is too large to be stored in between. `full`: the value's nest, fully composed.
    //
    // On a GPU: true where there is no product in either, where the group has many members, or where nothing
    // is known of the GPU. A group whose members walk the columns of a product in step has more blocks than
    // one that needs whole rows.
    //
    // On a CPU: asked for reductions of a convolution's results, as pooling is, of few rows. By itself the
    // convolution is cut into parts of an image's rows; with pooling, whose rows are not in step with them,
    // into parts of the channels, each of which copies the whole image.
    bool pays(const Group& own, const Nest& full, int group);

  private:
    bool pays_in_tasks(const Group& own, const Nest& full, const Group& other);
    double bytes_between(const Nest& full, int group) const;
    static Group joined(const Group& group, const Group& with);
    double time_of(const Group& group);
    bool leaves(int value, const std::set<int>& inside) const;

    const Values& values_;
    const Graph& graph_;
    const Target& target_;
    const Grouping& grouping_;
    std::map<std::vector<int>, double> times_;  // of groups of these values
};

}  // namespace bitale
