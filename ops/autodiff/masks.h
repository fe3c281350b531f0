// Masks of cotangents: where a value counts only under a condition, so do all derivatives below it.
//
// The gradient of where(c, log(z), 0) is where(c, g / z, 0) and not where(c, g, 0) / z, which is 0 / 0 where
// z is 0. So a selection at the end of a cotangent is taken off and kept beside it, through maps, and made
// again after the last of them: derivatives outside are computed, as neighbours in a vector are, but never
// used.
#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

// Elements where the boolean `condition` is `wanted`.
struct Side {
    NodePtr condition;
    bool wanted = true;
    Where where{};           // of the statement that selects
    const Op* op = nullptr;  // whose gradient selects; null where sides became one condition
};

// A cotangent, of no half type. It is zero wherever one of the sides fails; of the pending ones only after
// apply(), before that the value there is arbitrary.
struct Flow {
    NodePtr value;
    std::vector<Side> pending{}, known{};
};

class Masks {
  public:
    // New nodes get the line of the statement that they stand for.
    using Settle = std::function<void(const NodePtr& root, Where where)>;

    // `forward`: the nodes that are differentiated, on whose values derivatives may depend in any way.
    Masks(const std::unordered_set<const Node*>& forward, Settle settle)
        : forward_(forward), settle_(std::move(settle)) {}

    // The value with all pending sides made zero where they fail; these are known then.
    NodePtr apply(Flow& flow, Where where);
    // The cotangent of an operand of a map, whose gradient made `part` from the value of `flow`.
    Flow through_map(const Flow& flow, const NodePtr& part, const NodePtr& node);
    // Of an operand of any other op; nothing of the flow is pending.
    Flow through(const Flow& flow, const NodePtr& part, const NodePtr& node);
    // What arrives from several users.
    Flow total(std::vector<Flow> parts, Where where);

  private:
    NodePtr selected(const NodePtr& value, const Side& side);
    bool is_zero_with(const NodePtr& part, const NodePtr& from) const;
    NodePtr moved(const NodePtr& part, const NodePtr& from, const NodePtr& indicator) const;
    static void bound(std::vector<Side>& sides, Where where);
    bool adds(const NodePtr& part, const NodePtr& from) const;
    NodePtr of_values(const NodePtr& condition);
    NodePtr without_selections(NodePtr part, std::vector<Side>& sides, const Node& node);

    const std::unordered_set<const Node*>& forward_;
    const Settle settle_;
    // One selection for each value and side.
    std::map<std::tuple<const Node*, const Node*, bool>, NodePtr> selections_;
    std::map<NodePtr, NodePtr> of_values_;
};

bool is_zero(const NodePtr& node);  // a constant, repeated or not, of zeros

}  // namespace bitale
