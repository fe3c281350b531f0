#include "codegen/group/one_hot_rows.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bitale/ops.h"
#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "codegen/nest/access.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/integers.h"
#include "graph/base/options.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/contract.h"
#include "ops/shape/gather.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

constexpr int most_operations = 12;  // operations between a product and what is compared
// Fewer rows of the result are a product that takes less time than a sort, and than rows in another order.
constexpr double fewest_rows = 512;

// A node and what it is made of by views, casts and comparisons, as one nest.
class Surroundings {
  public:
    explicit Surroundings(const NodePtr& node) { add(node, most_operations); }

    const Node& at(Operand operand) const { return *nodes_[static_cast<std::size_t>(operand.value())]; }
    const NodePtr& node(Operand operand) const { return nodes_[static_cast<std::size_t>(operand.value())]; }

    Nest whole() const {
        return simplify(compose(nests_[0], [&](int k) -> const Nest* {
            const Nest& nest = nests_[static_cast<std::size_t>(k)];
            return nest.body ? &nest : nullptr;
        }));
    }

  private:
    int add(const NodePtr& node, int depth) {
        const auto [known, fresh] = number_.try_emplace(node.get(), static_cast<int>(nodes_.size()));
        if (!fresh) return known->second;
        const int own = known->second;
        nodes_.push_back(node);
        nests_.emplace_back();
        const bool opened = node->op->kind == OpKind::view || node->op == cast_op() || node->op == eq_op() ||
                            node->op == iota_op();
        if (depth == 0 || !opened) return own;
        std::vector<int> inputs;
        for (const NodePtr& input : node->inputs) inputs.push_back(add(input, depth - 1));
        nests_[static_cast<std::size_t>(own)] = renumber(nest_of(*node), [&](Operand of) {
            return Operand::of_value(inputs[static_cast<std::size_t>(of.input())]);
        });
        return own;
    }

    std::vector<NodePtr> nodes_;
    std::vector<Nest> nests_;
    std::unordered_map<const Node*, int> number_;
};

// Inside of casts that change no number: of those that an index takes, or that the dtype has.
const ScalarNode& inside_casts(const Scalar& s) {
    const ScalarNode* at = s.get();
    while (at->kind == ScalarNode::Kind::cast) {
        const ScalarNode& from = *at->arguments[0];
        const bool is_index = from.kind == ScalarNode::Kind::index;
        if (!holds(at->dtype, is_index ? from.index.range() : range_of(from.dtype))) break;
        at = &from;
    }
    return *at;
}

// The numbers k [rows] of a matrix that is one where the index along `axis` is k, else zero.
NodePtr numbers_of(const NodePtr& matrix, std::size_t axis, Where where) {
    const Surroundings around(matrix);
    const Nest nest = around.whole();
    if (nest.combine != Combine::none || !nest.lets.empty() || !nest.body ||
        nest.body->kind != ScalarNode::Kind::cast)
        return nullptr;
    const Scalar& equal = nest.body->arguments[0];
    if (!applies(*equal, Opcode::eq)) return nullptr;
    const Int &column = nest.parallel[axis].variable, &row = nest.parallel[1 - axis].variable;
    for (const std::size_t side : {0, 1}) {
        const ScalarNode &index = inside_casts(equal->arguments[side]),
                         &number = inside_casts(equal->arguments[1 - side]);
        if (index.kind != ScalarNode::Kind::index || !(index.index == column) ||
            !holds(index.dtype, index.index.range()) || number.kind != ScalarNode::Kind::read ||
            !number.guards.empty() || !is_integer(number.dtype) || number.dtype == DType::uint64)
            continue;
        const Shape& shape = around.at(number.operand).type.shape;
        Int offset = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + number.at[d];
        if (!(offset == row) || !(count_of(shape) - nest.parallel[1 - axis].extent).is(0)) continue;
        return make_reshape(around.node(number.operand), {matrix->type.shape[1 - axis]}, where);
    }
    return nullptr;
}

// Each row of g, added to the row of the result that has its number.
NodePtr added(const NodePtr& g, const NodePtr& numbers, const Int& rows, Where where) {
    const Expr k = cast(wrap(numbers), int64, where), last(rows.constant() - 1),
               in_range = logical_and(ge(k, 0), le(k, last)),
               terms = bitale::where(expand_dims(in_range, 1), wrap(g), 0);
    return make_node(scatter_op(), {terms.node(), minimum(maximum(k, 0), last).node()}, {{"extent", rows}},
                     where);
}

// dot(a, b), where one of the factors is such a matrix along the axis that the other one lacks.
NodePtr scatter_of(const Node& node, const Target& target) {
    if (node.op != dot_op() || node.inputs[0]->type.rank() != 2 || node.inputs[1]->type.rank() != 2)
        return nullptr;
    for (const std::size_t side : {0, 1}) {
        const NodePtr &matrix = node.inputs[side], &other = node.inputs[1 - side];
        const Int& rows = node.type.shape[side];
        if (!rows.is_constant() || typical(rows) < fewest_rows ||
            typical(rows) * typical(other->type.shape[side]) < target.looks_of_sort)
            continue;
        const NodePtr numbers = numbers_of(matrix, side, node.where);
        if (!numbers) continue;
        const Expr terms = wrap(other), all = side == 0 ? terms : transpose(terms);
        const NodePtr sums = added(all.node(), numbers, rows, node.where);
        return side == 0 ? sums : transpose(wrap(sums)).node();
    }
    return nullptr;
}

}  // namespace

void add_one_hot_rows(Graph& graph, const Target& target) {
    if (std::isinf(target.looks_of_sort) || options().strict_math || !options().enabled("one-hot-sums"))
        return;
    replace_nodes(graph, [&](const NodePtr& node) { return scatter_of(*node, target); });
}

}  // namespace bitale
