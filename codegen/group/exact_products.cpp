#include "codegen/group/exact_products.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "codegen/library/gemm.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/integers.h"
#include "graph/base/options.h"
#include "graph/walk/traverse.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/contract.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

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

// The same views of the source in another dtype.
NodePtr converted(const NodePtr& x, const NodePtr& source, DType dtype) {
    if (x->op != cast_op()) return with_inputs(x, {converted(x->inputs[0], source, dtype)});
    return dtype == source->type.dtype ? source
                                       : make_node(cast_op(), {source}, {{"dtype", dtype}}, x->where);
}

// The matrix that views repeat along an axis of the other factor, cast or not yet; null where they repeat
// something else.
NodePtr matrix_below(const NodePtr& factor) {
    NodePtr at = factor;
    while (at->type.rank() != 2 && (at->op == cast_op() || at->op->kind == OpKind::view) &&
           at->inputs.size() == 1)
        at = NodePtr(at->inputs[0]);
    return at->type.rank() == 2 ? at : nullptr;
}

// The sum as a nest over two values below it, which are the numbers 0 and 1.
Nest nest_over(const Node& sum, const NodePtr& a, const NodePtr& b) {
    std::vector<NodePtr> nodes{a, b};
    std::vector<Nest> nests(nodes.size());
    const auto numbered = [&](const Node& node) {
        return renumber(nest_of(node), [&](Operand of) {
            const NodePtr& input = node.inputs[static_cast<std::size_t>(of.input())];
            const auto found = std::find(nodes.begin(), nodes.end(), input) - nodes.begin();
            if (found == std::ssize(nodes)) nodes.push_back(input);
            return Operand::of_value(static_cast<int>(found));
        });
    };
    const Nest whole = numbered(sum);
    for (std::size_t v = nests.size(); v < nodes.size(); ++v) nests.push_back(numbered(*NodePtr(nodes[v])));
    return simplify(compose(
        whole, [&](int v) -> const Nest* { return v < 2 ? nullptr : &nests[static_cast<std::size_t>(v)]; }));
}

// The product of two matrices whose factors are a and b, or b and a.
struct MatrixProduct {
    NodePtr left, right;
    bool swapped = false;
};

std::optional<MatrixProduct> matrices_of(const Node& sum) {
    const NodePtr &product = sum.inputs[0], a = matrix_below(product->inputs[0]),
                  b = matrix_below(product->inputs[1]);
    if (!a || !b) return {};
    const Nest nest = nest_over(sum, a, b);
    const auto below_cast = [](const Scalar& s) -> const ScalarNode& {
        return s->kind == ScalarNode::Kind::cast ? *s->arguments[0] : *s;
    };
    const ScalarNode& terms = below_cast(nest.body);
    if (!applies(terms, Opcode::mul)) return {};
    const auto shape_of = [&](Operand of) -> const Shape& { return (of.value() == 0 ? a : b)->type.shape; };
    const ScalarNode &x = below_cast(terms.arguments[0]), &y = below_cast(terms.arguments[1]);
    const auto turned = [&](const NodePtr& matrix, bool transposed) {
        return transposed ? make_permute(matrix, {1, 0}, sum.where) : matrix;
    };
    if (const auto call = match_matrices(nest, x, y, shape_of))
        return MatrixProduct{turned(a, call->transpose_a), turned(b, call->transpose_b), false};
    if (const auto call = match_matrices(nest, y, x, shape_of))
        return MatrixProduct{turned(b, call->transpose_a), turned(a, call->transpose_b), true};
    return {};
}

NodePtr in_dtype(const NodePtr& x, DType dtype, Where where) {
    return x->type.dtype == dtype ? x : make_node(cast_op(), {x}, {{"dtype", dtype}}, where);
}

// The product of both matrices, whose factors are converted to the dtype behind their views.
NodePtr dot_of(DType dtype, const NodePtr& left, const Factor& a, const NodePtr& right, const Factor& b,
               Where where) {
    const auto factor = [&](const NodePtr& matrix, const Factor& of) {
        const DType own = of.source->type.dtype;
        const NodePtr narrow = matrix->type.dtype == own ? matrix : converted(matrix, of.source, own);
        return make_node(cast_op(), {narrow}, {{"dtype", dtype}}, matrix->where);
    };
    return make_node(dot_op(), {factor(left, a), factor(right, b)}, {}, where);
}

bool holds_sums(DType dtype, double most) { return most <= static_cast<double>(range_of(dtype).high); }

// Of a sum of products in which each factor is repeated, so that it is a product of matrices.
NodePtr product_by_library(const Node& node, const Target& target) {
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
        if (!holds_sums(dtype, most)) return nullptr;
    const bool single = most <= exact_single && target.has_gemm;
    if (const std::optional<MatrixProduct> found = matrices_of(node)) {
        const Factor &left = found->swapped ? *b : *a, &right = found->swapped ? *a : *b;
        const auto product_in = [&](DType dtype) {
            return in_dtype(dot_of(dtype, found->left, left, found->right, right, node.where),
                            node.type.dtype, node.where);
        };
        if (target.has_gemm_int8 && holds_sums(DType::int32, most) &&
            takes_integers(left.source->type.dtype, right.source->type.dtype))
            return product_in(DType::int32);
        if (single) return product_in(DType::float32);
    }
    const auto sum_of = [&](const NodePtr& x, const NodePtr& y) {
        const NodePtr floats = make_node(mul_op(), {x, y}, {}, product->where);
        return in_dtype(make_node(sum_op(), {floats}, node.attributes, node.where), node.type.dtype,
                        node.where);
    };
    const auto factors = [&](DType dtype) {
        return std::pair(converted(product->inputs[0], a->source, dtype),
                         converted(product->inputs[1], b->source, dtype));
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

// A factor of a product, and what scales it by its own rows or columns: the same along the summed axis.
struct Scaled {
    struct By {
        const Op* op;  // mul or div
        NodePtr scale;
    };
    NodePtr matrix;
    std::vector<By> scales;
};

bool is_repeated(const NodePtr& x, std::size_t axis) {
    if (x->type.rank() == 0) return true;
    if (x->op->kind != OpKind::view) return false;
    const Nest nest = nest_of(*x);
    return nest.body->kind == ScalarNode::Kind::read && nest.body->guards.empty() &&
           std::none_of(nest.body->at.begin(), nest.body->at.end(), [&](const Int& at) {
               return depends_on(at, nest.parallel[axis].variable.symbol_id());
           });
}

// `axis`: that is summed over.
Scaled without_scales(NodePtr x, std::size_t axis) {
    Scaled r;
    for (bool found = true; found;) {
        found = false;
        if (x->op == permute_op()) {
            const auto turned = [&](const NodePtr& of) {
                return of->type.rank() == 0 ? of : with_inputs(x, {of});
            };
            const auto& axes = x->attributes.get<std::vector<std::int64_t>>("axes");
            Scaled inner = without_scales(x->inputs[0], static_cast<std::size_t>(axes[axis]));
            for (const Scaled::By& by : inner.scales) r.scales.push_back({by.op, turned(by.scale)});
            r.matrix = turned(inner.matrix);
            return r;
        }
        if (x->op != mul_op() && x->op != div_op()) break;
        for (const std::size_t side : {1, 0}) {
            if (found || (side == 0 && x->op == div_op()) || !is_repeated(x->inputs[side], axis)) continue;
            r.scales.push_back({x->op, x->inputs[side]});
            x = NodePtr(x->inputs[1 - side]);
            found = true;
        }
    }
    r.matrix = x;
    return r;
}

// Of a product of floats whose factors are bytes, but for scales: their exact sum, rounded once, takes a
// quarter of the time.
NodePtr product_of_bytes(const Node& node, const Target& target) {
    if (node.op != dot_op() || !is_float(node.type.dtype) || node.type.rank() != 2 || !target.has_gemm_int8)
        return nullptr;
    const Scaled left = without_scales(node.inputs[0], 1), right = without_scales(node.inputs[1], 0);
    const std::optional<Factor> a = factor_of(left.matrix), b = factor_of(right.matrix);
    if (!a || !b || !takes_integers(a->source->type.dtype, b->source->type.dtype)) return nullptr;
    const IntRange terms = node.inputs[1]->type.shape[0].range();
    if (terms.low < 1 || !holds_sums(DType::int32, static_cast<double>(terms.high) * a->most * b->most))
        return nullptr;
    NodePtr all = in_dtype(dot_of(DType::int32, left.matrix, *a, right.matrix, *b, node.where),
                           node.type.dtype, node.where);
    for (const auto& [scaled, axis] : {std::pair(&left, 1), {&right, 0}})
        for (const Scaled::By& by : scaled->scales) {
            NodePtr scale = by.scale;
            if (scale->type.rank() != 0)
                scale =
                    make_expand(make_slice(scale, axis, 0, 1, 1, node.where), node.type.shape, node.where);
            all = make_node(by.op, {all, scale}, {}, node.where);
        }
    return all;
}

}  // namespace

void multiply_integers(Graph& graph, const Target& target) {
    // Where a product is a launch of its own, it is no call in this form, and might be rounded to fewer bits.
    if (!target.library_in_tasks || !options().enabled("exact-products")) return;
    const bool may_round_less = !options().strict_math;
    replace_nodes(graph, [&](const NodePtr& node) {
        NodePtr product = product_by_library(*node, target);
        return product || !may_round_less ? product : product_of_bytes(*node, target);
    });
}

}  // namespace bitale
