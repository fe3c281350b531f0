// Walks over graphs. Everything here is iterative and linear: graphs may be chains of any length.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

// Every node that the roots depend on, operands before users, each once, in a deterministic order.
Nodes topological(const Nodes& roots);

// The users of each node within topological(roots), in that order.
std::unordered_map<const Node*, Nodes> users_of(const Nodes& order);

using NodeMap = std::unordered_map<const Node*, NodePtr>;

// Rebuilds what depends on replaced nodes; the rest is kept as it is. Types are inferred anew; lengths that
// were symbols of a replaced input become those of its replacement, in attributes too.
Nodes replace(const Nodes& roots, const NodeMap& with);

// The same for one root after another, of which later ones depend on what took the place of nodes of earlier
// ones.
class Rebuilding {
  public:
    // `stays`: nodes that are kept with all that they depend on, unless something takes their place.
    explicit Rebuilding(std::function<bool(const Node&)> stays = {}, Substitution lengths = {});
    // Before any root that depends on the node.
    void replace(const Node& node, NodePtr by) { done_[&node] = std::move(by); }
    const NodePtr& at(const Node& node) const { return done_.at(&node); }  // of one that has been met
    NodePtr operator()(const NodePtr& root);

  private:
    NodePtr made(const NodePtr& node) const;

    const std::function<bool(const Node&)> stays_;
    const Substitution lengths_;
    NodeMap done_;
    Nodes roots_;  // an address in done_ must not be used again
};

// A copy of a node with other operands; name, line and origins stay. Lengths in attributes pass through
// `lengths`.
NodePtr with_inputs(const NodePtr& node, Nodes inputs, const Substitution& lengths = {});
// The same with other attributes.
NodePtr with_attributes(const NodePtr& node, Nodes inputs, Attributes attributes);
// The same for any function of a length; the node itself where nothing changes.
NodePtr with_lengths(const NodePtr& node, Nodes inputs, const std::function<Int(const Int&)>& lengths);

}  // namespace bitale
