// Every op there is, for rules, tests and documentation that look ops up by name.
#pragma once

namespace bitale {

// One for each family; calling one again does nothing.
void register_elementwise_ops();
void register_shape_ops();
void register_reduce_ops();
void register_linear_ops();
void register_nn_ops();
void register_random_ops();
void register_autodiff_ops();

void register_all_ops();

}  // namespace bitale
