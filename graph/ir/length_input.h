// An input that is a length: an int64 scalar whose value is 0 or more.
#pragma once

#include <string>

#include "graph/ir/node.h"

namespace bitale {

NodePtr make_length_input(std::string name, Where where);

}  // namespace bitale
