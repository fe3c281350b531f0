#include "codegen/group/exact_products.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "codegen/nest/integers.h"
#include "graph/base/options.h"
#include "graph/walk/traverse.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/slice.h"

namespace bitale {

namespace {

// A factor of the product: views of a cast of narrow integers.
struct Factor {
    NodePtr source;   // before the cast
    double most = 0;  // of its magnitude
};

std::optional<Factor> factor_of(const NodePtr& x) {
    const Node* at = x.get();
    while (at->op->kind == OpKind::view && at->inputs.size() == 1) at = at->inputs[0].get();
    if (at->op != cast_op()) return {};
    const NodePtr& source = at->inputs[0];
    const DType dtype = source->type.dtype;
    if (!is_integer(dtype) || bytes_of(dtype) > 2) return {};
    const IntRange range = range_of(dtype);
    return Factor{source, static_cast<double>(std::max(-range.low, range.high))};
}

// The same views of the source as floats.
NodePtr as_floats(const NodePtr& x, const NodePtr& source, DType dtype) {
    if (x->op == cast_op()) return make_node(cast_op(), {source}, {{"dtype", dtype}}, x->where);
    return with_inputs(x, {as_floats(x->inputs[0], source, dtype)});
}

// Of a sum of products in which each factor is repeated, so that it is a product of matrices.
NodePtr product_of_floats(const Node& node, const Target& target) {
    constexpr double repeated = 8, exact_single = 1 << 24, exact_double = 9007199254740992.0, most_parts = 4;
    constexpr std::int64_t shortest_part = 128;
    if (node.op != sum_op() || !is_integer(node.type.dtype)) return nullptr;
    const NodePtr& product = node.inputs[0];
    if (product->op != mul_op()) return nullptr;
    const std::optional<Factor> a = factor_of(product->inputs[0]), b = factor_of(product->inputs[1]);
    if (!a || !b) return nullptr;
    const double all = typical_elements(*product);
    if (all < repeated * typical_elements(*a->source) || all < repeated * typical_elements(*b->source))
        return nullptr;
    double terms = 1;
    for (const Loop& l : nest_of(node).reduced) terms *= static_cast<double>(l.extent.range().high);
    const double most = terms * a->most * b->most;
    for (const DType dtype : {product->type.dtype, node.type.dtype})
        if (most > static_cast<double>(range_of(dtype).high)) return nullptr;
    const bool single = most <= exact_single && target.has_gemm;
    const auto sum_of = [&](const NodePtr& x, const NodePtr& y) {
        const NodePtr floats = make_node(mul_op(), {x, y}, {}, product->where);
        return make_node(cast_op(), {make_node(sum_op(), {floats}, node.attributes, node.where)},
                         {{"dtype", node.type.dtype}}, node.where);
    };
    const auto factors = [&](DType dtype) {
        return std::pair(as_floats(product->inputs[0], a->source, dtype),
                         as_floats(product->inputs[1], b->source, dtype));
    };
    if (single) {
        const auto [x, y] = factors(DType::float32);
        return sum_of(x, y);
    }
    // A few sums of as many terms as float32 holds take half the time of one in float64.
    const auto& axes = node.attributes.get<std::vector<std::int64_t>>("axes");
    const double parts = std::ceil(most / exact_single);
    if (target.has_gemm && axes.size() == 1 && parts <= most_parts) {
        const auto axis = static_cast<std::size_t>(axes[0]);
        const Int& extent = product->type.shape[axis];
        const auto [x, y] = factors(DType::float32);
        if (const auto length = static_cast<std::int64_t>(std::floor(exact_single / (a->most * b->most)));
            extent.is_constant() && length >= shortest_part) {
            NodePtr all;
            for (std::int64_t first = 0; first < extent.constant(); first += length) {
                const auto part = [&](const NodePtr& factor) {
                    return make_slice(factor, static_cast<int>(axis), first,
                                      std::min(length, extent.constant() - first), 1, node.where);
                };
                const NodePtr own = sum_of(part(x), part(y));
                all = all ? make_node(add_op(), {all, own}, {}, node.where) : own;
            }
            return all;
        }
    }
    if (!(most <= exact_double && target.has_gemm_f64)) return nullptr;
    const auto [x, y] = factors(DType::float64);
    return sum_of(x, y);
}

}  // namespace

void multiply_as_floats(Graph& graph, const Target& target) {
    // Where a product is a launch of its own, it is no call in this form, and might be rounded to fewer bits.
    if (!target.library_in_tasks || !options().enabled("exact-products")) return;
    replace_nodes(graph, [&](const NodePtr& node) { return product_of_floats(*node, target); });
}

}  // namespace bitale
