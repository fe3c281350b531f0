// Crossentropies of softmax and sigmoid are computed from what these were applied to.
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

// The crossentropies read rows of the last axis.
Condition over_last_axis(const Pattern& probabilities) {
    return [probabilities](const Match& m) {
        const Node& node = *m[probabilities];
        return node.attributes.get<std::int64_t>("axis") == node.type.rank() - 1;
    };
}

}  // namespace

std::vector<Rule> stabilize_crossentropy_rules() {
    const Pattern z = any("z"), y = any("y"), p = softmax(z).again();
    return {
        {"crossentropy-labels-softmax", crossentropy_labels(p, y), softmax_crossentropy_labels(z, y),
         Tag::stabilizes, over_last_axis(p)},
        {"crossentropy-dense-softmax", crossentropy_dense(p, y), softmax_crossentropy_dense(z, y),
         Tag::stabilizes, over_last_axis(p)},
        // Not softplus(z) - z * y, which cancels where the prediction is right. As in the original, what a
        // target of 0 or 1 leaves out may be infinite.
        {"binary-crossentropy-sigmoid", binary_crossentropy(sigmoid(z).again(), y),
         where(eq(y, 0), 0, y * softplus(-z)) + where(eq(y, 1), 0, (1 - y) * softplus(z)), Tag::stabilizes},
    };
}

}  // namespace bitale
