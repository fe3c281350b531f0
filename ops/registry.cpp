// Calls every family, so that a static library loses none of them.
#include "ops/registry.h"

#include "graph/ir/node.h"
#include "ops/autodiff/modifiers.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/contract.h"
#include "ops/linear/conv.h"
#include "ops/linear/eigh.h"
#include "ops/nn/average_pooling.h"
#include "ops/nn/dropout.h"
#include "ops/nn/logsumexp.h"
#include "ops/nn/losses.h"
#include "ops/nn/pick.h"
#include "ops/nn/pooling.h"
#include "ops/nn/root.h"
#include "ops/nn/softmax.h"
#include "ops/random/distributions.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/along.h"
#include "ops/shape/triangle.h"
#include "ops/shape/view.h"
#include "ops/train/schedules.h"

namespace bitale {

void register_all_ops() {
    input_op();
    shared_op();
    constant_op();
    register_elementwise_ops();
    register_shape_ops();
    diagonal_op();
    register_along_ops();
    register_reduce_ops();
    register_scan_ops();
    register_contract_ops();
    register_conv_ops();
    register_eigh_ops();
    register_softmax_ops();
    register_logsumexp_ops();
    register_root_ops();
    register_loss_ops();
    register_pick_ops();
    register_pooling_ops();
    average_pool_op();
    register_dropout_ops();
    register_random_ops();
    register_autodiff_ops();
    register_training_ops();
}

}  // namespace bitale
