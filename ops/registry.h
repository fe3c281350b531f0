// Every op there is, for rules, tests and documentation that look ops up by name.
#pragma once

namespace bitale {

void register_all_ops();

}  // namespace bitale
