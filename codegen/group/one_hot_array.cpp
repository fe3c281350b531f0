#include "codegen/group/one_hot_array.h"

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/nest/access.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/integers.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

constexpr int most_operations = 12;  // operations between an array and what is compared

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
        // A part of other numbers is numbers of its own.
        const bool is_part = node->op == slice_op() || node->op == rows_op();
        const bool opened = (node->op->kind == OpKind::view && !is_part) || node->op == cast_op() ||
                            node->op == eq_op() || node->op == iota_op();
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

}  // namespace

std::optional<OneHot> one_hot_of(const NodePtr& array, Where where) {
    const Surroundings around(array);
    const Nest nest = around.whole();
    if (nest.combine != Combine::none || !nest.lets.empty() || !nest.body) return {};
    const Scalar& equal = nest.body->kind == ScalarNode::Kind::cast ? nest.body->arguments[0] : nest.body;
    if (!applies(*equal, Opcode::eq)) return {};
    for (const std::size_t side : {0, 1}) {
        const ScalarNode &index = inside_casts(equal->arguments[side]),
                         &number = inside_casts(equal->arguments[1 - side]);
        if (index.kind != ScalarNode::Kind::index || !holds(index.dtype, index.index.range()) ||
            number.kind != ScalarNode::Kind::read || !number.guards.empty() || !is_integer(number.dtype) ||
            number.dtype == DType::uint64)
            continue;
        OneHot found;
        while (found.axis < nest.parallel.size() && !(index.index == nest.parallel[found.axis].variable))
            ++found.axis;
        if (found.axis == nest.parallel.size() || !nest.parallel[found.axis].variable.symbol_id()) continue;
        Shape others;
        Int there = 0, here = 0;
        for (std::size_t d = 0; d < nest.parallel.size(); ++d) {
            if (d == found.axis) continue;
            others.push_back(nest.parallel[d].extent);
            here = here * nest.parallel[d].extent + nest.parallel[d].variable;
        }
        const Node& from = around.at(number.operand);
        for (std::size_t d = 0; d < from.type.shape.size(); ++d)
            there = there * from.type.shape[d] + number.at[d];
        if (!(there == here) || !(count_of(from.type.shape) - count_of(others)).is(0)) continue;
        found.numbers = make_reshape(around.node(number.operand), others, where);
        return found;
    }
    return {};
}

}  // namespace bitale
