// explain: why a rule does not apply to a node.
#pragma once

#include <string>

#include "graph/rewrite/rule.h"

namespace bitale {

// "rule log-softmax applies", or the first part of the pattern that does not fit and what stands there
// instead.
std::string explain(const Rule& rule, const NodePtr& node, const MatchContext& context = {});
// The same for every node below the roots whose op the rule's pattern starts with, one line each.
std::string explain(const Rule& rule, const Nodes& roots);

}  // namespace bitale
