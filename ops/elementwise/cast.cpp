// cast: the one elementwise op with an attribute, and the only one that takes the half types.
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/elementwise/rows.h"

namespace bitale {

namespace {

// In one step, also from integers, of which float64 does not hold all.
Array evaluate_cast(const Node& node, const std::vector<Array>& inputs) {
    const DType dtype = node.type.dtype;
    return is_float(dtype) ? inputs[0].as(dtype).as(DType::float64) : inputs[0].as(dtype);
}

Nodes cast_gradient(const NodePtr& node, const NodePtr& g) {
    const DType from = node->inputs[0]->type.dtype;
    if (!is_float(from) || !is_float(node->type.dtype)) return {nullptr};
    return {cast(wrap(g), wide_of(from), node->where).node()};
}

}  // namespace

const Op* cast_op() {
    static const Op* op = [] {
        MapInfo map;
        map.text = "a";
        map.maps_zero_to_zero = true;
        Op r;
        r.name = "cast";
        r.kind = OpKind::map;
        r.arity = 1;
        r.map = std::make_shared<const MapInfo>(std::move(map));
        r.infer = [](const Nodes& inputs, const Attributes& attributes, Where) {
            return Type{attributes.get<DType>("dtype"), inputs[0]->type.shape};
        };
        r.gradient = cast_gradient;
        r.evaluate = evaluate_cast;
        r.as_length = [](const Node& node, const std::vector<Int>& inputs) {
            return table_row::wrapped(inputs[0], node.type.dtype);
        };
        return register_op(std::move(r));
    }();
    return op;
}

Expr cast(const Expr& x, DType dtype, Where where) try {
    require_present("cast", {&x}, where);
    require_present("cast", {&x}, where);
    // A literal that is cast on purpose is a typed constant, whatever happens to its digits.
    if (x.is_weak()) return Expr(constant_value(x.node()).as(dtype), where);
    if (x.dtype() == dtype) return x;
    return apply(cast_op(), {x}, {{"dtype", dtype}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
