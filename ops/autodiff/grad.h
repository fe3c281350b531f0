// Reverse-mode differentiation of graphs.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// d cost / d wrt[k] for each k, as nodes that carry the lines of the forward nodes. The cost is canonicalized
// and stabilized first, with the wrt as barriers, so that what is differentiated is the form that does not
// overflow. A shared variable is matched by its storage, anything else by identity. Throws as bitale::grad
// does.
Nodes gradients(const NodePtr& cost, const Nodes& wrt, Where where);

}  // namespace bitale
