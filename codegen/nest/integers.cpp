#include "codegen/nest/integers.h"

namespace bitale {

const ScalarNode& inside_casts(const Scalar& scalar) {
    const ScalarNode* at = scalar.get();
    while (at->kind == ScalarNode::Kind::cast) {
        const ScalarNode& from = *at->arguments[0];
        const bool is_index = from.kind == ScalarNode::Kind::index;
        if (!holds(at->dtype, is_index ? from.index.range() : range_of(from.dtype))) break;
        at = &from;
    }
    return *at;
}

}  // namespace bitale
