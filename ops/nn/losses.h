// Losses as composites, so that rules and gradients see them whole. None of them averages.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// [n, classes] and integer labels [n], or a distribution [n, classes]; the result is [n].
const Op* crossentropy_labels_op();  // probabilities, labels: -log p[label]
const Op* crossentropy_dense_op();   // probabilities, targets: -sum(t * log(p)), where 0 * log(0) is 0
// The same of softmax(logits), by way of log-sum-exp: finite for every finite logit. What stabilize makes of
// the above.
const Op* softmax_crossentropy_labels_op();
const Op* softmax_crossentropy_dense_op();

// predicted, targets of one float dtype and one shape (or rank 0): -(t * log(p) + (1 - t) * log(1 - p)),
// elementwise, where 0 * log(0) is 0.
const Op* binary_crossentropy_op();

void register_loss_ops();

}  // namespace bitale
