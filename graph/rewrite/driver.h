// The driver: applies a list of rules until none matches.
#pragma once

#include <set>
#include <string>
#include <unordered_set>

#include "graph/rewrite/rule.h"
#include "graph/walk/interner.h"

namespace bitale {

struct RewriteOptions {
    Interner* interner = nullptr;  // merges what rewriting makes with what is there
    const std::unordered_set<const Node*>* barriers = nullptr;  // kept as they are, not looked through
    std::set<std::string>* held_back = nullptr;  // gets the rules that would apply but for math=strict
};

// The roots in normal form: no enabled rule of the set matches anywhere between them and the barriers.
//
// Operands are brought to normal form before their users, so a pattern always sees normal forms, and every
// node is visited once: work is linear in the graph plus what the rules make. Types are preserved. What a
// rule makes inherits the line, the statements and the rules of what it replaces, and the rule's name. A set
// whose rules never end is an InternalError that names the rule.
Nodes rewrite(const Nodes& roots, const RuleSet& set, const RewriteOptions& options = {});

// InternalError if an enabled rule of the set still applies.
void verify_normal_form(const Nodes& roots, const RuleSet& set, const RewriteOptions& options = {});

}  // namespace bitale
