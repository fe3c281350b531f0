#include "codegen/group/columns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"
#include "graph/walk/traverse.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

constexpr double often_read = 8, fewest_lanes = 16;
// Elements a few places apart are shuffled out of whole registers: that takes less than another kernel,
// unless there are many. Two places apart it always does.
constexpr double many_elements = 1 << 19;
constexpr std::int64_t few_shuffles = 4;
constexpr std::size_t most_nodes = 48;  // that a reduction and what it computes its terms from may have
constexpr int most_statements = 256;

bool is_inlined(const Node& node) {
    return node.op->kind == OpKind::map ||
           (node.op->kind == OpKind::view && node.inputs.size() == 1 && !node.op->is_stored);
}

double elements_of_operand(const Node& node) { return typical(count_of(node.type.shape)); }

// Copies by what they are of and by the axis that comes last.
using TransposedCopy = std::pair<const Node*, std::size_t>;

// One reduction, or one result that is no reduction, as a nest over what is in memory.
class TermsOfRoot {
  public:
    explicit TermsOfRoot(const NodePtr& root) : root_(root) { number(root); }

    // The copies that its lanes want, each with the nodes that read what is copied.
    std::map<TransposedCopy, std::set<const Node*>> wanted() {
        std::map<TransposedCopy, std::set<const Node*>> found;
        if (!may_want()) return found;
        const Nest nest = simplify(compose(own(0), [&](int operand) -> const Nest* {
            return is_inlined(*nodes_[static_cast<std::size_t>(operand)]) ? &own(operand) : nullptr;
        }));
        if (nest.parallel.empty() || is_matrix_product(nest) || count_statements(nest) > most_statements)
            return found;
        const ReductionTree tree = tree_of(nest, shapes());
        const Loop& lanes =
            tree.lanes > 1 && !nest.reduced.empty() ? nest.reduced.back() : nest.parallel.back();
        if (!lanes.variable.symbol_id() || typical(lanes.extent) < fewest_lanes) return found;
        const double evaluations = typical_count(nest.parallel) * typical_count(nest.reduced);
        std::map<int, std::optional<std::size_t>> axes;  // nothing: it is read in several ways
        for_each_read(nest, [&](const ScalarNode& s) {
            // One element for all lanes: it may come from the copy as well.
            if (s.guards.empty() && std::none_of(s.at.begin(), s.at.end(), [&](const Int& x) {
                    return depends_on(x, lanes.variable.symbol_id());
                }))
                return;
            const std::optional<std::size_t> axis = column_axis(s, lanes.variable);
            const Node& of = *nodes_[static_cast<std::size_t>(s.operand.value())];
            const bool wants = axis && evaluations >= often_read * elements_of_operand(of) &&
                               (evaluations >= many_elements || apart(s, *axis) > few_shuffles);
            const auto [at, is_new] =
                axes.emplace(s.operand.value(), wants ? axis : std::optional<std::size_t>());
            if (!is_new && at->second != axis) at->second.reset();
        });
        std::erase_if(axes, [](const auto& entry) { return !entry.second; });
        if (axes.empty() || !keeps_order(nest, tree, axes)) return found;
        for (const auto& [operand, axis] : axes) found[{nodes_[operand].get(), *axis}] = readers_[operand];
        return found;
    }

  private:
    int number(const NodePtr& node) {
        const auto [at, is_new] = numbers_.emplace(node.get(), static_cast<int>(nodes_.size()));
        if (is_new) {
            nodes_.push_back(node);
            nests_.emplace_back();
        }
        return at->second;
    }

    const Nest& own(int operand) {
        if (!nests_.at(operand)) {
            const NodePtr node = nodes_[static_cast<std::size_t>(operand)];
            nests_.at(operand) = renumber(nest_of(*node), [&](Operand of) {
                return Operand::of_value(number(node->inputs[of.input()]));
            });
        }
        return *nests_.at(operand);
    }

    ShapeOf shapes() const {
        return [&](Operand of) -> const Shape& {
            return nodes_[static_cast<std::size_t>(of.value())]->type.shape;
        };
    }

    // Few nodes, and among what they read some matrix with far fewer elements than there are terms.
    bool may_want() {
        const double all = root_->op->kind == OpKind::map ? elements_of_operand(*root_)
                                                          : elements_of_operand(*root_->inputs[0]);
        bool any = false;
        std::vector<NodePtr> stack{root_};
        std::set<const Node*> seen{root_.get()};
        while (!stack.empty()) {
            const NodePtr node = stack.back();
            stack.pop_back();
            for (const NodePtr& input : node->inputs) {
                if (!is_inlined(*input)) {
                    readers_[number(input)].insert(node.get());
                    any = any || (input->type.rank() >= 2 && all >= often_read * elements_of_operand(*input));
                }
                if (!seen.insert(input.get()).second || !is_inlined(*input)) continue;
                if (seen.size() > most_nodes) return false;
                stack.push_back(input);
            }
        }
        return any;
    }

    // The axis, not the last one, along which the read moves with the lanes by one, as nothing else does.
    std::optional<std::size_t> column_axis(const ScalarNode& s, const Int& lane) const {
        if (!s.guards.empty()) return {};
        std::optional<std::size_t> found;
        for (std::size_t d = 0; d < s.at.size(); ++d) {
            if (!depends_on(s.at[d], lane.symbol_id())) continue;
            const std::optional<Int> step = stride_of(s.at[d], lane);
            if (found || !step || !step->is(1)) return {};
            found = d;
        }
        return found && *found + 1 < s.at.size() && apart(s, *found) > 2 ? found : std::nullopt;
    }

    // How many elements lie between neighbours along the axis; 0: that is not known.
    std::int64_t apart(const ScalarNode& s, std::size_t axis) const {
        const Shape& shape = shapes()(s.operand);
        Int all = 1;
        for (std::size_t d = axis + 1; d < shape.size(); ++d) all = all * shape[d];
        return all.is_constant() ? all.constant() : 0;
    }

    // Whether sums are added in the order of before, which all devices share.
    bool keeps_order(const Nest& nest, const ReductionTree& tree,
                     const std::map<int, std::optional<std::size_t>>& axes) const {
        const Nest turned = map_reads(nest, [&](const Scalar& s) -> Scalar {
            const auto axis = axes.find(s->operand.value());
            if (axis == axes.end()) return s;
            auto r = std::make_shared<ScalarNode>(*s);
            std::rotate(r->at.begin() + static_cast<std::ptrdiff_t>(*axis->second),
                        r->at.begin() + static_cast<std::ptrdiff_t>(*axis->second) + 1, r->at.end());
            return r;
        });
        std::map<int, Shape> shapes_now;
        for (const auto& [operand, axis] : axes) {
            Shape& shape = shapes_now[operand] = nodes_[static_cast<std::size_t>(operand)]->type.shape;
            std::rotate(shape.begin() + static_cast<std::ptrdiff_t>(*axis),
                        shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, shape.end());
        }
        const ReductionTree now = tree_of(turned, [&](Operand of) -> const Shape& {
            const auto at = shapes_now.find(of.value());
            return at != shapes_now.end() ? at->second
                                          : nodes_[static_cast<std::size_t>(of.value())]->type.shape;
        });
        return now.lanes == tree.lanes && now.groups == tree.groups && now.split == tree.split &&
               now.by_rows == tree.by_rows && now.finish_lanes == tree.finish_lanes &&
               (!tree.split || now.chunk == tree.chunk);
    }

    NodePtr root_;
    std::vector<NodePtr> nodes_;
    std::deque<std::optional<Nest>> nests_;  // which stay where they are
    std::unordered_map<const Node*, int> numbers_;
    std::map<int, std::set<const Node*>> readers_;  // of what is in memory
};

NodePtr copy_of(const NodePtr& node, std::size_t last) {
    std::vector<std::int64_t> axes, back(node->type.shape.size());
    for (std::size_t d = 0; d < node->type.shape.size(); ++d)
        if (d != last) axes.push_back(static_cast<std::int64_t>(d));
    axes.push_back(static_cast<std::int64_t>(last));
    for (std::size_t d = 0; d < axes.size(); ++d)
        back[static_cast<std::size_t>(axes[d])] = static_cast<std::int64_t>(d);
    const NodePtr copy = make_transposed_copy(node, axes, node->where);
    return make_permute(copy, back, node->where);
}

}  // namespace

void transpose_columns(Graph& graph, const Target& target) {
    if (!target.has_vectors()) return;
    const Nodes order = topological(graph.roots());
    std::set<const Node*> results;
    for (const NodePtr& root : graph.roots()) results.insert(root.get());
    std::map<const Node*, std::map<const Node*, std::size_t>> instead;  // by reader, then by what it reads
    for (const NodePtr& node : order) {
        const bool reduces = node->op->kind == OpKind::reduce && node->inputs.size() == 1;
        if (!reduces && !(node->op->kind == OpKind::map && results.contains(node.get()))) continue;
        for (const auto& [copy, readers] : TermsOfRoot(node).wanted())
            for (const Node* reader : readers) instead[reader].emplace(copy.first, copy.second);
    }
    if (instead.empty()) return;
    NodeMap now;
    std::map<TransposedCopy, NodePtr> copies;
    for (const NodePtr& node : order) {
        Nodes inputs = node->inputs;
        bool changed = false;
        const auto own = instead.find(node.get());
        for (NodePtr& input : inputs) {
            const Node* const before = input.get();
            if (const auto at = now.find(before); at != now.end()) input = at->second, changed = true;
            if (own == instead.end()) continue;
            const auto axis = own->second.find(before);
            if (axis == own->second.end()) continue;
            NodePtr& copy = copies[{before, axis->second}];
            if (!copy) copy = copy_of(input, axis->second);
            input = copy;
            changed = true;
        }
        if (changed) now.emplace(node.get(), with_inputs(node, std::move(inputs)));
    }
    Nodes roots = graph.roots();
    for (NodePtr& root : roots)
        if (const auto at = now.find(root.get()); at != now.end()) root = at->second;
    graph.set_roots(roots);
}

}  // namespace bitale
