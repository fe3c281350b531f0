// Gradients of several lookups in one table: one scatter.
#include "ops/elementwise/elementwise.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/gather.h"
#include "ops/shape/join.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

// Indices as one axis, and the rows that belong to them.
NodePtr in_one_axis(const NodePtr& indices, Where where) {
    const NodePtr flat = make_reshape(indices, {count_of(indices->type.shape)}, where);
    return flat->type.dtype == int64 ? flat : make_node(cast_op(), {flat}, {{"dtype", int64}}, where);
}

NodePtr rows_in_one_axis(const NodePtr& g, const NodePtr& indices, Where where) {
    const auto axes = static_cast<std::ptrdiff_t>(indices->type.shape.size());
    Shape shape(g->type.shape.begin() + axes, g->type.shape.end());
    shape.insert(shape.begin(), count_of(indices->type.shape));
    return make_reshape(g, shape, where);
}

NodePtr joined(const Nodes& parts, Where where) {
    return make_node(concat_op(), parts, {{"axis", std::int64_t{0}}}, where);
}

}  // namespace

std::vector<Rule> lookup_rules() {
    const Pattern a = any("a"), b = any("b"), i = any("i"), j = any("j");
    const Pattern first = scatter(a, i), second = scatter(b, j);
    return {
        {"scatters-added", first + second,
         [=](const Match& m) -> NodePtr {
             const Where where = m.root()->where;
             if (m[first]->type != m[second]->type) return nullptr;
             return make_node(
                 scatter_op(),
                 {joined({rows_in_one_axis(m[a], m[i], where), rows_in_one_axis(m[b], m[j], where)}, where),
                  joined({in_one_axis(m[i], where), in_one_axis(m[j], where)}, where)},
                 m[first]->attributes, where);
         },
         Tag::reassociates}};
}

}  // namespace bitale
