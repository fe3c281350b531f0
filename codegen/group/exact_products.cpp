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

// The input that is not the constant, where a whole number is added to it, as zero points of quantised values
// are; else null.
const NodePtr* shifted(const Node& node) {
    constexpr double most = 1 << 16;
    const auto is_whole = [](const NodePtr& x) {
        if (!is_constant(x) || x->type.rank() != 0) return false;
        const double value = constant_value(x).at(0);
        return std::fabs(value) <= most && std::trunc(value) == value;
    };
    if (node.op != add_op() && node.op != sub_op()) return nullptr;
    if (is_whole(node.inputs[1])) return &node.inputs[0];
    return node.op == add_op() && is_whole(node.inputs[0]) ? &node.inputs[1] : nullptr;
}

double shift_of(const Node& node) {
    const NodePtr& by = shifted(node) == &node.inputs[0] ? node.inputs[1] : node.inputs[0];
    return (node.op == sub_op() ? -1 : 1) * constant_value(by).at(0);
}

bool holds_sums(DType dtype, double most) {
    return most <= static_cast<double>(dtype == DType::uint64 ? IntRange::highest : range_of(dtype).high);
}

// A factor of the product: views of a cast of narrow integers, plus a whole number.
struct Factor {
    NodePtr source;   // before the cast
    double most = 0;  // of its magnitude
    double shift = 0;
};

// Conditions too, as those of one-hot rows are.
bool is_narrow(const NodePtr& x) {
    const DType dtype = x->type.dtype;
    return dtype == DType::boolean || (is_integer(dtype) && bytes_of(dtype) <= 2);
}

// Moves elements, and makes none: no padding.
bool is_move(const Node& node) {
    if (node.op->kind != OpKind::view || node.inputs.size() != 1) return false;
    const Nest nest = nest_of(node);
    return nest.body->kind == ScalarNode::Kind::read && nest.body->guards.empty() && nest.guards.empty();
}

std::optional<Factor> factor_of(const NodePtr& x) {
    std::vector<const Node*> chain;  // from the factor down to the first cast
    const Node* added = nullptr;
    for (const Node* at = x.get();
         chain.empty() || chain.back()->op != cast_op() || !is_narrow(chain.back()->inputs[0]);) {
        chain.push_back(at);
        const bool is_same = at->op == cast_op() || is_move(*at);
        const NodePtr* const below = is_same ? &at->inputs[0] : added ? nullptr : shifted(*at);
        if (!below) return {};
        if (!is_same) added = at;
        at = below->get();
    }
    const NodePtr& source = chain.back()->inputs[0];
    const double shift = added ? shift_of(*added) : 0;
    auto low = static_cast<double>(range_of(source->type.dtype).low),
         high = static_cast<double>(range_of(source->type.dtype).high);
    for (std::size_t i = chain.size(); i-- > 0;) {
        if (chain[i] == added) low += shift, high += shift;
        const DType dtype = chain[i]->type.dtype;
        if (dtype == DType::float32 || dtype == DType::float64) continue;
        if (!is_integer(dtype) || low < static_cast<double>(range_of(dtype).low) || !holds_sums(dtype, high))
            return {};
    }
    return Factor{source, std::max(-low, high), shift};
}

NodePtr number(double value, DType dtype, Where where) {
    return make_constant(Array(std::vector<double>{value}, {}).as(dtype), where);
}

NodePtr in_dtype(const NodePtr& x, DType dtype, Where where) {
    return x->type.dtype == dtype ? x : make_node(cast_op(), {x}, {{"dtype", dtype}}, where);
}

// The same views of the source in another dtype; in its own one without what is added.
NodePtr converted(const NodePtr& x, const NodePtr& source, DType dtype) {
    if (x == source) return in_dtype(x, dtype, x->where);
    const NodePtr* const below = shifted(*x);
    const NodePtr inner = converted(below ? *below : x->inputs[0], source, dtype);
    if (x->op == cast_op()) return inner;
    if (!below) return with_inputs(x, {inner});
    if (dtype == source->type.dtype) return inner;
    return make_node(add_op(), {inner, number(shift_of(*x), dtype, x->where)}, {}, x->where);
}

// The matrix that views repeat along an axis of the other factor, above the cast or below it, where it has
// the dtype of the source; null where they repeat something else.
NodePtr matrix_below(const NodePtr& factor, const NodePtr& source) {
    NodePtr at = factor;
    for (bool is_narrow = false; at->type.rank() != 2;) {
        is_narrow = is_narrow || at == source;
        const bool is_same = is_move(*at) || (at->op == cast_op() && !is_narrow);
        const NodePtr* const below = is_same ? &at->inputs[0] : is_narrow ? nullptr : shifted(*at);
        if (!below) return nullptr;
        at = NodePtr(*below);
    }
    return at;
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

std::optional<MatrixProduct> matrices_of(const Node& sum, const Factor& of_a, const Factor& of_b) {
    const NodePtr &product = sum.inputs[0], a = matrix_below(product->inputs[0], of_a.source),
                  b = matrix_below(product->inputs[1], of_b.source);
    if (!a || !b) return {};
    const Nest nest = nest_over(sum, a, b);
    const auto below_cast = [](const Scalar& s) -> const ScalarNode& {
        const ScalarNode* at = s.get();
        while (at->kind == ScalarNode::Kind::cast || applies(*at, Opcode::add) || applies(*at, Opcode::sub)) {
            const auto is_number = [&](std::size_t i) {
                return at->arguments[i]->kind == ScalarNode::Kind::constant;
            };
            if (at->arguments.size() == 2 && !is_number(0) && !is_number(1)) break;
            at = at->arguments[at->arguments.size() == 2 && is_number(0) ? 1 : 0].get();
        }
        return *at;
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

// A matrix of the factor's dtype, without what is added to it.
NodePtr narrow(const NodePtr& matrix, const Factor& of) {
    const DType own = of.source->type.dtype;
    return matrix->type.dtype == own ? matrix : converted(matrix, of.source, own);
}

NodePtr product_in_floats(DType dtype, const NodePtr& left, const Factor& a, const NodePtr& right,
                          const Factor& b, Where where) {
    const auto factor = [&](const NodePtr& matrix, const Factor& of) {
        const NodePtr wide = in_dtype(narrow(matrix, of), dtype, where);
        return of.shift == 0 ? wide : make_node(add_op(), {wide, number(of.shift, dtype, where)}, {}, where);
    };
    return make_node(dot_op(), {factor(left, a), factor(right, b)}, {}, where);
}

// In int32, which may wrap around on the way:
//     (a + s) . (b + t) = a . b + s * sums of b's columns + t * sums of a's rows + k s t
// or the transpose of b^T . a^T, where the library takes the factors in that order.
NodePtr product_in_integers(const NodePtr& left, const Factor& a, const NodePtr& right, const Factor& b,
                            Where where) {
    if (!takes_integers(a.source->type.dtype, b.source->type.dtype)) {
        const auto turned = [&](const NodePtr& x) { return make_permute(x, {1, 0}, where); };
        return turned(product_in_integers(turned(right), b, turned(left), a, where));
    }
    constexpr DType sums = DType::int32;
    const NodePtr x = in_dtype(narrow(left, a), sums, where), y = in_dtype(narrow(right, b), sums, where);
    NodePtr all = make_node(dot_op(), {x, y}, {}, where);
    const Shape shape = all->type.shape;
    const auto add = [&](const NodePtr& matrix, std::int64_t axis, double times) {
        if (times == 0) return;
        NodePtr sum = make_node(sum_op(), {matrix}, {{"axes", std::vector<std::int64_t>{axis}}}, where);
        sum = make_node(mul_op(), {in_dtype(sum, sums, where), number(times, sums, where)}, {}, where);
        if (axis == 1) sum = make_reshape(sum, {shape[0], 1}, where);
        all = make_node(add_op(), {all, make_expand(sum, shape, where)}, {}, where);
    };
    add(y, 0, a.shift);
    add(x, 1, b.shift);
    if (a.shift == 0 || b.shift == 0) return all;
    const double terms = static_cast<double>(x->type.shape[1].constant());
    return make_node(add_op(), {all, number(terms * a.shift * b.shift, sums, where)}, {}, where);
}

// Whether int32 holds the product, and a library multiplies such factors.
bool suits_integers(const Target& target, const Factor& left, const Factor& right, const Int& terms) {
    const DType a = left.source->type.dtype, b = right.source->type.dtype;
    return target.has_gemm_int8 && (takes_integers(a, b) || takes_integers(b, a)) &&
           (left.shift == 0 || right.shift == 0 || terms.is_constant()) &&
           static_cast<double>(terms.range().high) * left.most * right.most <=
               static_cast<double>(range_of(DType::int32).high);
}

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
    if (const std::optional<MatrixProduct> found = matrices_of(node, *a, *b)) {
        const Factor &left = found->swapped ? *b : *a, &right = found->swapped ? *a : *b;
        const bool integers = suits_integers(target, left, right, found->left->type.shape[1]);
        if (integers || single)
            return in_dtype(integers ? product_in_integers(found->left, left, found->right, right, node.where)
                                     : product_in_floats(DType::float32, found->left, left, found->right,
                                                         right, node.where),
                            node.type.dtype, node.where);
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
    if (!is_move(*x)) return false;
    const Nest nest = nest_of(*x);
    return std::none_of(nest.body->at.begin(), nest.body->at.end(), [&](const Int& at) {
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
    const Int& terms = node.inputs[1]->type.shape[0];
    if (!a || !b || terms.range().low < 1 || !suits_integers(target, *a, *b, terms)) return nullptr;
    NodePtr all = in_dtype(product_in_integers(left.matrix, *a, right.matrix, *b, node.where),
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
