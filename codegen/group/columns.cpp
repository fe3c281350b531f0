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
#include "codegen/nest/channels.h"
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
        const std::optional<Nest> whole = composed();
        if (!whole || whole->parallel.empty() || is_matrix_product(*whole)) return found;
        const Nest& nest = *whole;
        if (has_interleaved_channels(nest, shapes())) return found;
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
            const bool wants = axis && evaluations >= often_read * typical_elements(of) &&
                               (evaluations >= many_elements || apart(s, *axis) > few_shuffles);
            const auto [at, is_new] =
                axes.emplace(s.operand.value(), wants ? axis : std::optional<std::size_t>());
            if (!is_new && at->second != axis) at->second.reset();
        });
        std::erase_if(axes, [](const auto& entry) { return !entry.second; });
        for (const auto& [operand, axis] : axes) found[{nodes_[operand].get(), *axis}] = readers_[operand];
        return found;
    }

    // The order of its sum; nothing where it is made of too much to tell.
    std::optional<ReductionTree> order() {
        if (!find_readers()) return {};
        const std::optional<Nest> nest = composed();
        return nest ? tree_of(*nest, shapes()) : std::optional<ReductionTree>();
    }

    // Those of the readers that are among what it is computed from.
    std::set<const Node*> readers() {
        find_readers();
        std::set<const Node*> all;
        for (const auto& [operand, by] : readers_) all.insert(by.begin(), by.end());
        return all;
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

    std::optional<Nest> composed() {
        const Nest nest = simplify(compose(own(0), [&](int operand) -> const Nest* {
            return is_inlined(*nodes_[static_cast<std::size_t>(operand)]) ? &own(operand) : nullptr;
        }));
        return count_statements(nest) > most_statements ? std::optional<Nest>() : nest;
    }

    // Who reads what is in memory; false where there are too many nodes.
    bool find_readers() {
        std::vector<NodePtr> stack{root_};
        std::set<const Node*> seen{root_.get()};
        while (!stack.empty()) {
            const NodePtr node = stack.back();
            stack.pop_back();
            for (const NodePtr& input : node->inputs) {
                if (!is_inlined(*input)) readers_[number(input)].insert(node.get());
                if (!seen.insert(input.get()).second || !is_inlined(*input)) continue;
                if (seen.size() > most_nodes) return false;
                stack.push_back(input);
            }
        }
        return true;
    }

    // Few nodes, and among what they read some matrix with far fewer elements than there are terms.
    bool may_want() {
        const double all =
            root_->op->kind == OpKind::map ? typical_elements(*root_) : typical_elements(*root_->inputs[0]);
        return find_readers() && std::any_of(readers_.begin(), readers_.end(), [&](const auto& entry) {
                   const Node& read = *nodes_[static_cast<std::size_t>(entry.first)];
                   return read.type.rank() >= 2 && all >= often_read * typical_elements(read);
               });
    }

    // The axis, not the last one, along which the read moves with the lanes by one, as nothing else does.
    std::optional<std::size_t> column_axis(const ScalarNode& s, const Int& lane) const {
        if (!s.guards.empty()) return {};
        const std::optional<std::size_t> found = axis_along(s, lane);
        return found && *found + 1 < s.at.size() && apart(s, *found) > 2 ? found : std::nullopt;
    }

    // How many elements lie between neighbours along the axis; 0: that is not known.
    std::int64_t apart(const ScalarNode& s, std::size_t axis) const {
        const Shape& shape = shapes()(s.operand);
        Int all = 1;
        for (std::size_t d = axis + 1; d < shape.size(); ++d) all = all * shape[d];
        return all.is_constant() ? all.constant() : 0;
    }

    NodePtr root_;
    std::vector<NodePtr> nodes_;
    std::deque<std::optional<Nest>> nests_;  // which stay where they are
    std::unordered_map<const Node*, int> numbers_;
    std::map<int, std::set<const Node*>> readers_;  // of what is in memory
};

NodePtr copy_of(const NodePtr& node, std::size_t last) {
    std::vector<std::int64_t> axes;
    for (std::size_t d = 0; d < node->type.shape.size(); ++d)
        if (d != last) axes.push_back(static_cast<std::int64_t>(d));
    axes.push_back(static_cast<std::int64_t>(last));
    const NodePtr copy = make_transposed_copy(node, axes, node->where);
    return make_permute(copy, inverse_axes(axes), node->where);
}

// By reader, then by what it reads: the axis that comes last in the copy.
using CopiesOfReaders = std::map<const Node*, std::map<const Node*, std::size_t>>;

NodeMap with_copies(const Nodes& order, const CopiesOfReaders& instead) {
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
    return now;
}

bool is_same_order(const ReductionTree& a, const ReductionTree& b) {
    return a.lanes == b.lanes && a.groups == b.groups && a.split == b.split && a.by_rows == b.by_rows &&
           a.finish_lanes == b.finish_lanes && (!a.split || a.chunk == b.chunk);
}

// The readers of copies that sums are made of which would then be added in another order than on devices
// without vectors. They may be other sums than those that ask for the copies.
std::set<const Node*> changing_orders(const Nodes& order, const NodeMap& now,
                                      const CopiesOfReaders& instead) {
    std::set<const Node*> readers;
    for (const NodePtr& node : order) {
        const auto fresh = now.find(node.get());
        if (fresh == now.end() || node->op->kind != OpKind::reduce) continue;
        TermsOfRoot before(node);
        const std::set<const Node*> own = before.readers();
        if (std::none_of(own.begin(), own.end(), [&](const Node* n) { return instead.contains(n); }))
            continue;
        const std::optional<ReductionTree> was = before.order(), is = TermsOfRoot(fresh->second).order();
        if (!was || !is || !is_same_order(*was, *is)) readers.insert(own.begin(), own.end());
    }
    return readers;
}

}  // namespace

void transpose_columns(Graph& graph, const Target& target) {
    if (!target.has_vectors()) return;
    const Nodes order = topological(graph.roots());
    std::set<const Node*> results;
    for (const NodePtr& root : graph.roots()) results.insert(root.get());
    CopiesOfReaders instead;
    for (const NodePtr& node : order) {
        const bool reduces = node->op->kind == OpKind::reduce && node->inputs.size() == 1;
        if (!reduces && !(node->op->kind == OpKind::map && results.contains(node.get()))) continue;
        for (const auto& [copy, readers] : TermsOfRoot(node).wanted())
            for (const Node* reader : readers) instead[reader].emplace(copy.first, copy.second);
    }
    while (!instead.empty()) {
        const NodeMap now = with_copies(order, instead);
        const std::set<const Node*> without = changing_orders(order, now, instead);
        if (std::erase_if(instead, [&](const auto& entry) { return without.contains(entry.first); }))
            continue;
        Nodes roots = graph.roots();
        for (NodePtr& root : roots)
            if (const auto at = now.find(root.get()); at != now.end()) root = at->second;
        graph.set_roots(roots);
        return;
    }
}

}  // namespace bitale
