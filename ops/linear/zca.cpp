// Whitening: the rotation of data back onto itself that makes all directions vary alike.
#include <cmath>
#include <limits>
#include <string>

#include "graph/base/numbers.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/linear/eigh.h"

namespace bitale {

Zca zca(const Expr& x, double epsilon, Where where) try {
    require_present("zca", {&x}, where);
    if (x.rank() != 2)
        throw ShapeError(where, "zca of " + describe(*x.node()) +
                                    ": it takes data [n, d], an item a row; of images write flatten(x, 2)");
    if (!(epsilon >= 0) || std::isinf(epsilon))
        throw Error(where, "zca: epsilon is added to variances, so it is a number from 0 on, not " +
                               number_text(epsilon));
    const bool is_double = x.dtype() == float64;
    const DType dtype = is_double ? float64 : float32;
    const Expr data = x.dtype() == dtype ? x : cast(x, dtype, where);
    const Term count(cast(x.length(0, where), dtype, where), where);

    const Expr average = mean(data, {0}, {}, where);
    const Expr centred = (Term(data, where) - Term(average, where)).x;
    const Term covariance = Term(dot(transpose(centred, {}, where), centred, where), where) / count;
    const Eigh system = eigh(covariance.x, where);

    const Term values(system.values, where);
    const Term variance = compose(maximum_op(), {values.x, literal(0, where)}, where) + epsilon;
    // Less than what rounding makes of the largest one is no variance.
    constexpr double roundings = 16;
    const double least = roundings * (is_double ? std::numeric_limits<double>::epsilon()
                                                : static_cast<double>(std::numeric_limits<float>::epsilon()));
    const Term most(max(system.values, {}, {}, where), where);
    const Term kept = compose(gt_op(), {variance.x, (most * least).x}, where);
    const Term scale = compose(where_op(), {kept.x, (1.0 / sqrt(variance)).x, literal(0, where)}, where);
    const Expr scaled = (Term(system.vectors, where) * scale).x;
    return {average, dot(scaled, transpose(system.vectors, {}, where), where)};
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
