#include "codegen/split/exact_totals.h"

#include "graph/base/options.h"
#include "ops/dsl/build.h"
#include "ops/reduce/reduce.h"

namespace bitale {

std::optional<ExactTotal> exact_total(const NodePtr& sum, const Int& count) {
    if (!is_float(sum->type.dtype)) return {};
    const std::optional<IntegerSum> terms = IntegerSum::of(*sum, count);
    if (!terms || (!terms->is_plain() && options().strict_math)) return {};
    const Expr wide = cast(wrap(terms->integers()), int64, sum->where);
    return ExactTotal{make_node(sum_op(), {wide.node()}, sum->attributes, sum->where), *terms};
}

}  // namespace bitale
