// Interner: at most one node for each structure, so that equality within one function's graph is identity.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

// Two nodes have the same structure when op, operands (by identity), attributes and type are equal; line,
// name, origins and rules do not count. Input leaves are only equal to themselves.
class Interner {
  public:
    // The node that stands for this structure. A first one is adopted: `fresh` must not be held by anybody
    // who relies on its origins, since later equal nodes add theirs. Input leaves are returned as they are.
    NodePtr intern(const NodePtr& fresh);
    // The adopted node now stands for the statements and rewrites of another one too; nothing for a node that
    // is not adopted.
    void inherit(const NodePtr& node, const std::vector<Origin>& origins,
                 const std::vector<std::string>& rules);

  private:
    std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<Node>>> by_structure_;
};

// Joins sorted lists. A node that stands for a great many statements names only the first ones: otherwise a
// long chain that folds into one node would cost the square of its length.
void merge_origins(std::vector<Origin>& into, const std::vector<Origin>& more);
void merge_rules(std::vector<std::string>& into, const std::vector<std::string>& more);

std::uint64_t hash_of(const Attribute& x);
std::uint64_t structure_hash(const Node& node);  // operands by address
bool same_structure(const Node& a, const Node& b);
// Whether two nodes that were not merged compute the same value: equal constants, nodes of one shared
// variable, and equal ops over such. Looks at few nodes, then says no.
bool same_expression(const NodePtr& a, const NodePtr& b);

}  // namespace bitale
