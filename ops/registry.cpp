// Calls every family, so that a static library loses none of them.
#include "ops/registry.h"

#include "graph/ir/node.h"

namespace bitale {

void register_all_ops() {
    input_op();
    shared_op();
    constant_op();
    register_elementwise_ops();
    register_shape_ops();
    register_reduce_ops();
    register_linear_ops();
    register_nn_ops();
    register_random_ops();
    register_autodiff_ops();
}

}  // namespace bitale
