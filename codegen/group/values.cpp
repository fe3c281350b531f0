#include "codegen/group/values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "codegen/group/chain.h"
#include "codegen/group/changed_rows.h"
#include "codegen/group/complete.h"
#include "codegen/group/joined.h"
#include "codegen/group/known_places.h"
#include "codegen/group/one_hot.h"
#include "codegen/group/share.h"
#include "codegen/group/together.h"
#include "codegen/group/windows.h"
#include "codegen/library/choose.h"
#include "codegen/library/routine.h"
#include "codegen/nest/arithmetic.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/puts.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"
#include "graph/walk/traverse.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

double iterations(const Nest& nest) {
    if (is_prefix(nest)) return typical_count(nest.parallel);
    if (is_order(nest.combine))
        return typical_count({nest.parallel.begin(), nest.parallel.end() - 1}) * typical_count(nest.reduced);
    const double points = typical_count(nest.parallel) * typical_count(nest.reduced);
    if (const std::optional<PutForm> puts = put_form(nest))
        return points / std::max(1.0, typical(nest.parallel[puts->place].extent));
    return sums_runs(nest) ? points / std::max(1.0, typical(nest.parallel[0].extent)) : points;
}

namespace {

// Inlining more than this many values into one body makes kernels that compile slowly.
constexpr std::size_t most_guarded = 128;
// Recomputing a function costs more than a store and loads if it happens twice or more.
constexpr int expensive = cost_of_a_function;
constexpr double many = 32, often = 8, twice = 1.5, staged_from = 4, staged_gather_from = 2,
                 staged_with_border_from = 1.2;

// Why a reduction is stored, for people: what reads it in another kernel needs it complete.
std::string reason_of_reduction(const Value& value) {
    const std::string& own = value.node->op->result;
    if (value.nest.combine == Combine::argmax || value.nest.combine == Combine::argmin)
        return own.empty() ? "places of extremes, read once they are complete" : own;
    const auto what = [&]() -> std::string {
        if (!own.empty()) return own;
        if (value.by_library) return "a product";
        switch (value.nest.combine) {
            case Combine::sum: return "a sum";
            case Combine::max: return "a maximum";
            case Combine::min: return "a minimum";
            default: return "a reduction";
        }
    };
    return what() + ", read once it is complete";
}

std::string reason_of_saved(const Node& node) {
    if (node.op == transposed_copy_op()) return "a transposed copy, for vector lanes";
    if (node.op == repeated_copy_op()) return "repeated along one axis of two, for vector lanes along both";
    const DType dtype = node.type.dtype;
    return dtype == DType::boolean ? "a condition, saved for gradients in a byte"
                                   : "saved for gradients as " + std::string(name_of(dtype));
}

class Decider {
  public:
    Decider(const Graph& graph, const Target& target, Tuner* tuner, const Waits& waits)
        : graph_(graph), target_(target), tuner_(tuner) {
        values_.waits = waits;
        for (const NodePtr& node : in_order(graph)) {
            const int packed = pack_filters(*node);
            const int number = static_cast<int>(values_.list.size());
            values_.number[node.get()] = number;
            Value value;
            value.node = node;
            value.shape = node->type.shape;
            if (node->op->kind == OpKind::leaf) {
                value.storage = Value::Storage::leaf;
            } else if (node->op->kind == OpKind::opaque) {
                make_opaque(value);
            } else {
                value.nest = simplify(renumber(nest_of(*node), [&](Operand of) {
                    const auto k = static_cast<std::size_t>(of.input());
                    return Operand::of_value(values_.number.at(node->inputs[k].get()));
                }));
                if (packed >= 0) read_packed(value.nest, packed);
                value.storage = Value::Storage::inlined;
            }
            values_.list.push_back(std::move(value));
            for (const NodePtr& input : node->inputs) {
                int operand = values_.number.at(input.get());
                if (packed >= 0 && values_.list[packed].node->inputs[0] == input) operand = packed;
                std::vector<int>& users = values_.list[operand].users;
                if (users.empty() || users.back() != number) users.push_back(number);
            }
        }
        for (const Value& value : values_.list)
            if (const std::optional<RunForm> runs =
                    value.nest.body ? run_form(value.nest) : std::optional<RunForm>())
                values_.list[runs->keys.value()].searched = true;
        require(graph);
    }

    Values run() {
        inline_constants();
        numbers_ = name_known_places(values_);
        look_up_one_hot(values_);
        keep_rows_of_changed_tables(values_, graph_);
        choose_libraries(values_, graph_, target_, tuner_);
        decide_backward();
        limit_chains();
        return std::move(values_);
    }

  private:
    // No kernel computes it: a step of its own, from memory to memory, with every axis where the op has it.
    void make_opaque(Value& value) {
        const Node& node = *value.node;
        std::vector<int> operands;
        for (const NodePtr& input : node.inputs) {
            operands.push_back(values_.number.at(input.get()));
            Value& operand = values_.list[static_cast<std::size_t>(operands.back())];
            operand.feeds_product = true;
            operand.wanted_order = Value::Order::plain;
            if (operand.reason.empty()) operand.reason = "operand of " + title_of(node);
        }
        for (const Int& n : node.type.shape) value.nest.parallel.push_back(make_loop("i", n));
        value.nest.dtype = node.type.dtype;
        value.storage = Value::Storage::stored;
        value.wanted_order = Value::Order::plain;
        value.reason = "result of " + title_of(node);
        value.by_library = routine_call(node, target_, std::move(operands));
    }

    // Filters whose channels are not neighbours in memory, where they are wanted in vector lanes: a
    // transposed copy, as a value of its own before the convolution. -1: none.
    int pack_filters(const Node& node) {
        if (!target_.has_vectors() || node.op->kind != OpKind::reduce) return -1;
        const Nest nest = nest_of(node);
        const std::optional<ChannelAxis> axis = filters_axis(nest);
        const auto shape_of = [&](Operand of) -> const Shape& {
            return node.inputs[static_cast<std::size_t>(of.input())]->type.shape;
        };
        if (!axis || tree_of(nest, shape_of).lanes > 1) return -1;
        const NodePtr& filters = node.inputs[static_cast<std::size_t>(axis->reads[0].first.input())];
        const std::size_t rank = filters->type.shape.size(), channels = axis->reads[0].second;
        if (channels + 1 == rank) return -1;
        std::vector<std::int64_t> axes;
        for (std::size_t d = 0; d < rank; ++d)
            if (d != channels) axes.push_back(static_cast<std::int64_t>(d));
        axes.push_back(static_cast<std::int64_t>(channels));
        const NodePtr copy = make_node(permute_op(), {filters}, {{"axes", axes}}, node.where);
        const int number = static_cast<int>(values_.list.size()), from = values_.number.at(filters.get());
        Value value;
        value.node = copy;
        value.shape = copy->type.shape;
        value.nest = simplify(renumber(nest_of(*copy), [&](Operand) { return Operand::of_value(from); }));
        value.reason = "filters with their channels side by side, for vector lanes";
        value.packed = true;
        value.storage = Value::Storage::inlined;
        values_.list[from].users.push_back(number);
        values_.list.push_back(std::move(value));
        values_.number[copy.get()] = number;
        return number;
    }

    void read_packed(Nest& nest, int packed) const {
        const Node& copy = *values_.list[packed].node;
        const int from = values_.number.at(copy.inputs[0].get());
        const auto& axes = copy.attributes.get<std::vector<std::int64_t>>("axes");
        nest = map_reads(nest, [&](const Scalar& s) -> Scalar {
            if (s->operand.value() != from) return s;
            auto r = std::make_shared<ScalarNode>(*s);
            r->operand = Operand::of_value(packed);
            for (std::size_t d = 0; d < axes.size(); ++d) r->at[d] = s->at[static_cast<std::size_t>(axes[d])];
            return r;
        });
    }

    // Operands before users; a relu as soon as what it is of, so that whoever reads that may read it instead.
    Nodes in_order(const Graph& graph) const {
        Nodes nodes = topological(graph.roots());
        if (!values_.waits.empty()) nodes = after_waits(nodes);
        std::unordered_map<const Node*, Nodes> relus;
        for (const NodePtr& node : nodes)
            if (opcode_of(*node->op) == Opcode::relu) relus[node->inputs[0].get()].push_back(node);
        if (relus.empty()) return nodes;
        Nodes order;
        std::unordered_set<const Node*> done;
        for (const NodePtr& node : nodes) {
            if (!done.insert(node.get()).second) continue;
            order.push_back(node);
            for (std::size_t last = order.size() - 1; last < order.size(); ++last)
                if (const auto at = relus.find(order[last].get()); at != relus.end())
                    for (const NodePtr& relu : at->second)
                        if (done.insert(relu.get()).second) order.push_back(relu);
        }
        return order;
    }

    // The nodes, each behind its operands and what it waits for.
    Nodes after_waits(const Nodes& nodes) const {
        std::unordered_set<const Node*> seen, wanted;
        for (const NodePtr& node : nodes) wanted.insert(node.get());
        Nodes order;
        std::vector<std::pair<NodePtr, bool>> stack;
        for (auto root = nodes.rbegin(); root != nodes.rend(); ++root) stack.emplace_back(*root, false);
        while (!stack.empty()) {
            const auto [node, is_ready] = stack.back();
            stack.pop_back();
            if (is_ready) {
                if (wanted.contains(node.get())) order.push_back(node);
                continue;
            }
            if (!seen.insert(node.get()).second) continue;
            stack.emplace_back(node, true);
            for (auto x = node->inputs.rbegin(); x != node->inputs.rend(); ++x) stack.emplace_back(*x, false);
            if (const auto at = values_.waits.find(node.get()); at != values_.waits.end())
                for (const NodePtr& after : at->second) stack.emplace_back(after, false);
        }
        return order;
    }

    void require(const Graph& graph) {
        const auto mark = [&](const NodePtr& node, const char* reason) {
            Value& value = values_.list[values_.number.at(node.get())];
            value.required = true;
            if (value.reason.empty()) value.reason = reason;
        };
        for (const NodePtr& node : graph.outputs) mark(node, "output");
        for (const SharedUpdate& update : graph.updates) mark(update.value, "new value of a shared variable");
    }

    // A literal belongs into the text of the kernel, and so does a sequence.
    void inline_constants() {
        for (Value& value : values_.list) {
            if (!is_constant(value.node) || value.required) continue;
            const Array& array = constant_value(value.node);
            if (std::optional<Nest> sequence = sequence_of(array)) {
                value.nest = *std::move(sequence);
                value.storage = Value::Storage::inlined;
            }
            if (value.node->type.rank() != 0) continue;
            value.nest.dtype = array.dtype();
            value.nest.body = is_float(array.dtype())
                                  ? scalar_constant(array.dtype(), array.at(0))
                                  : scalar_integer(array.dtype(), array.to_vector<std::int64_t>()[0]);
            value.storage = Value::Storage::inlined;
        }
    }

    // One after another in memory.
    bool places_lie_along(const Nest& nest, const Int& variable) const {
        bool all = true;
        for (const Let& let : nest.lets)
            for_each_read(let.value, [&](const ScalarNode& s) {
                const std::optional<Int> step = stride_of(offset_of(s, values_.shapes()), variable);
                const bool is_view = values_.list[s.operand.value()].node->op->kind == OpKind::view;
                all = all && !is_view && step && (step->is(1) || step->is(0));
            });
        return all;
    }

    // From places that are looked up one by one: no run of neighbours is worth a register.
    bool gathers_elements(const Nest& nest) const {
        constexpr double shortest_run = 8;
        if (nest.lets.empty() || nest.combine != Combine::none || !target_.has_vectors()) return false;
        double run = 1;
        for (std::size_t d = nest.parallel.size(); d-- > 0;) {
            const Loop& l = nest.parallel[d];
            const bool found_by = std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& let) {
                return varies(nest, let.value, l.variable);
            });
            if (found_by) return run < shortest_run && d > 0 && places_lie_along(nest, l.variable);
            run *= typical(l.extent);
        }
        return false;
    }

    // Users first: how often a value would be recomputed follows from how often its inlined users are.
    void decide_backward() {
        std::vector<double> evaluations(values_.list.size(), 0);
        std::vector<int> cost = composed_costs();
        for (int i = static_cast<int>(values_.list.size()) - 1; i >= 0; --i) {
            Value& value = values_.list[i];
            if (value.storage == Value::Storage::leaf || !value.nest.body) continue;
            if (is_constant(value.node) || value.absorbed) continue;
            const double elements = typical_count(value.nest.parallel);
            const double times = evaluations[i] / std::max(elements, 1.0);
            const bool saved = value.node->op->is_stored;
            if (value.required || value.packed || value.searched || value.feeds_product || saved ||
                is_reduction(value.nest) || value.by_library) {
                value.storage = Value::Storage::stored;
                if (saved) value.reason = reason_of_saved(*value.node);
                if (value.searched) value.reason = "sorted keys, among which tasks look for their own";
                if (value.reason.empty()) value.reason = reason_of_reduction(value);
            } else if (!value.made_in_pieces && cost[i] >= expensive && times >= 1.5 &&
                       !(generated_[i] && times < often && !is_cheap_to_keep(value))) {
                // What only moves elements is left to what it moves, which is asked for as often.
                if (!moves_elements(value) && !is_left_to_sums(i)) {
                    value.storage = Value::Storage::stored;
                    value.reason = "costs too much to compute more than once";
                }
            } else if (generated_[i] && cost[i] >= 1 && times >= many && has_quotients(i)) {
                value.storage = Value::Storage::stored;
                value.reason = "a quotient of places, read many times";
            } else if (!value.made_in_pieces && cost[i] >= 1 && times >= often && !value.shape.empty() &&
                       ends_reduction(value, values_)) {
                value.storage = Value::Storage::stored;
                value.reason = "read many times, and stored in place of the reduction that it ends";
            } else if (!value.made_in_pieces && times >= twice && joins_reduction(value, values_)) {
                value.storage = Value::Storage::stored;
                value.reason = "read more than once, and a sum of several arrays that ends a reduction";
            } else if (pays_kernel(cost[i], evaluations[i]) && times >= often && ends_long_reduction(value)) {
                // A view with an axis of length 1 more is no second value: what it views is stored.
                if (!only_adds_ones(value)) {
                    value.storage = Value::Storage::stored;
                    value.reason = "read many times, and much less than the reduction that it ends has read";
                }
            } else if (const char* why = why_stored_for_vectors(values_, i, times, target_)) {
                value.storage = Value::Storage::stored;
                value.reason = why;
            } else if ((((cost[i] >= 1 && !moves_elements(value)) ||
                         is_copied_for_windows(values_, i, looked_up_[i], target_)) &&
                        times >= staged_from) ||
                       (times >= staged_gather_from && gathers_elements(value.nest)) ||
                       (cost[i] >= 1 && times >= staged_with_border_from &&
                        is_copied_with_border(values_, i, target_))) {
                value.storage = Value::Storage::staged;
            } else if (is_least_of_chain(values_, i, [&](int v) { return is_kept(v, i, cost); })) {
                value.storage = Value::Storage::stored;
                value.reason = "smaller than the reductions it is computed from";
            }
            const bool once = value.storage != Value::Storage::inlined || shared_by_sums_.contains(i);
            const double mine = once ? iterations(value.nest) : evaluations[i];
            std::map<int, double> read;  // with the share of the points
            if (value.by_library)
                for (const int operand : value.by_library->operands) read[operand] = 1;
            else
                for_each_read(value.nest, [&](const ScalarNode& s) {
                    double& share = read[s.operand.value()];
                    share = std::max(share, share_of_points(value.nest, s));
                });
            for (const auto& [operand, share] : read) {
                const bool pieces = value.by_library && values_.list[operand].made_in_pieces;
                evaluations[operand] +=
                    pieces ? typical_count(values_.list[operand].nest.parallel) : share * mine;
            }
        }
    }

    // Reductions that one loop computes share the value there.
    bool is_left_to_sums(int number) {
        const std::vector<int> sums =
            target_.has_vectors() ? summed_together(values_, number) : std::vector<int>();
        if (sums.empty()) return false;
        const int known = values_.list[static_cast<std::size_t>(sums[0])].together;
        if (known >= 0 && shared_by_sums_.at(known) != sums) return false;
        for (const int sum : sums)
            if (values_.list[static_cast<std::size_t>(sum)].together != known) return false;
        for (const int sum : sums)
            values_.list[static_cast<std::size_t>(sum)].together = known >= 0 ? known : number;
        shared_by_sums_[number] = sums;
        return true;
    }

    // So few bytes an element that it is read faster than a random number is drawn again.
    bool is_cheap_to_keep(const Value& value) const {
        return bytes_of(value.node->type.dtype) <= target_.bytes_of_draw;
    }

    // Of integers, for which there are no vectors.
    bool has_quotients(int number) const {
        constexpr int quotient = 8;
        const Value& value = values_.list[number];
        return !value.shape.empty() && !moves_elements(value) &&
               any_part(fully_composed_nest(values_, number).body, [](const ScalarNode& s) {
                   return s.kind == ScalarNode::Kind::apply && !is_float(s.dtype) &&
                          s.op->map->cost >= quotient;
               });
    }

    // A division for each element of a matrix takes longer than one more small kernel.
    bool pays_kernel(int cost, double evaluations) const {
        constexpr int division = 4;
        return cost >= division && evaluations >= target_.divisions_of_launch;
    }

    // Of many terms, by way of maps of its results, as the mean of each column does; not a product, and no
    // pooling, whose results are large.
    bool ends_long_reduction(const Value& value) const {
        constexpr double many_terms = 64;
        bool found = false;
        for_each_read(value.nest, [&](const ScalarNode& s) {
            const Value& operand = values_.list[s.operand.value()];
            if (found || operand.by_library || !operand.nest.body || value.shape.empty() ||
                without_ones(operand.shape) != without_ones(value.shape))
                return;
            const Nest& nest = operand.nest;
            found = is_reduction(nest) ? !adds_products(nest) && typical_count(nest.reduced) >= many_terms
                                       : ends_long_reduction(operand);
        });
        return found;
    }

    bool only_adds_ones(const Value& value) const {
        if (!moves_elements(value)) return false;
        const Shape& shape = values_.list[value.nest.body->operand.value()].shape;
        return !(shape == value.shape) && without_ones(shape) == without_ones(value.shape);
    }

    // All of what it reads, about: padding and cutting off borders included.
    bool moves_elements(const Value& value) const {
        constexpr double most_more = 1.5;
        const Nest& nest = value.nest;
        if (is_reduction(nest) || !nest.lets.empty() || nest.body->kind != ScalarNode::Kind::read ||
            (nest.body->otherwise && nest.body->otherwise->kind != ScalarNode::Kind::constant))
            return false;
        const Value& operand = values_.list[nest.body->operand.value()];
        const double own = count_of(value), all = count_of(operand);
        return operand.storage != Value::Storage::leaf && all <= most_more * own && own <= most_more * all;
    }

    // A smaller value that costs too much to be computed for each element of one that reads it, by itself or
    // by way of others.
    bool is_kept(int number, int reader, const std::vector<int>& cost) const {
        const Value& value = values_.list[number];
        return cost[number] >= expensive && !generated_[number] &&
               2 * count_of(value) <= count_of(values_.list[reader]);
    }

    // Cycles to recompute a value from what is certainly in memory; also finds values that read no array at
    // all (random bits, iota): recomputing those saves the memory.
    std::vector<int> composed_costs() {
        std::vector<int> cost(values_.list.size(), 0);
        generated_.assign(values_.list.size(), false);
        looked_up_.assign(values_.list.size(), false);
        for (std::size_t i = 0; i < values_.list.size(); ++i) {
            const Value& value = values_.list[i];
            if (value.storage == Value::Storage::leaf) {
                generated_[i] = value.node->type.rank() == 0;
                continue;
            }
            if (!value.nest.body) continue;
            bool generated = true;
            if (!is_reduction(value.nest)) cost[i] = cost_of(value.nest);
            looked_up_[i] = !value.nest.lets.empty();
            for_each_read(value.nest, [&](const ScalarNode& s) {
                const Value& operand = values_.list[s.operand.value()];
                if (!is_reduction(operand.nest) && looked_up_[static_cast<std::size_t>(s.operand.value())])
                    looked_up_[i] = true;
                generated = generated && generated_[s.operand.value()];
                // A scalar is computed once, outside the loops over its reader's points; what is much smaller
                // than its reader and costs much will be stored.
                const bool scalar = operand.node->type.rank() == 0 && value.node->type.rank() > 0;
                const bool smaller = cost[s.operand.value()] >= expensive && !generated_[s.operand.value()] &&
                                     2 * typical_count(operand.nest.parallel) <=
                                         share_of_points(value.nest, s) * typical_count(value.nest.parallel);
                if (!is_reduction(operand.nest) && !is_reduction(value.nest) && !scalar && !smaller)
                    cost[i] += cost[s.operand.value()];
            });
            cost[i] = numbers_[i] ? 0 : std::min(cost[i], 1 << 20);
            generated_[i] = generated && !is_reduction(value.nest);
        }
        return cost;
    }

    void limit_chains() {
        std::vector<std::vector<int>> inside(values_.list.size());
        std::vector<std::size_t> guarded(values_.list.size(), 0);  // reads of its body, in other values' too
        for (std::size_t i = 0; i < values_.list.size(); ++i) {
            Value& value = values_.list[i];
            if (value.storage == Value::Storage::leaf) continue;
            std::vector<int> all{static_cast<int>(i)};
            for_each_read(value.nest, [&](const ScalarNode& s) {
                guarded[i] += s.guards.empty() ? 0 : 1;
                if (values_.list[s.operand.value()].storage == Value::Storage::stored) return;
                guarded[i] += guarded[s.operand.value()];
                std::vector<int> merged;
                std::set_union(all.begin(), all.end(), inside[s.operand.value()].begin(),
                               inside[s.operand.value()].end(), std::back_inserter(merged));
                all = std::move(merged);
            });
            if (value.storage != Value::Storage::stored &&
                (all.size() > longest_chain || guarded[i] > most_guarded)) {
                value.storage = Value::Storage::stored;
                value.reason = "one more value in the kernel would make it compile slowly";
            }
            if (value.storage == Value::Storage::stored) all.clear(), guarded[i] = 0;
            inside[i] = std::move(all);
        }
    }

    const Graph& graph_;
    const Target& target_;
    Tuner* const tuner_;
    Values values_;
    std::vector<bool> generated_, looked_up_, numbers_;
    std::map<int, std::vector<int>> shared_by_sums_;  // inlined all the same, and computed once
};

const Scalar& without_casts(const Scalar& s) {
    const Scalar* at = &s;
    while ((*at)->kind == ScalarNode::Kind::cast && is_integer((*at)->dtype) &&
           is_integer((*at)->arguments[0]->dtype))
        at = &(*at)->arguments[0];
    return *at;
}

Nest composed(const Values& values, int value, bool keep_staged);

Nest composed(const Values& values, const Nest& nest, bool keep_staged) {
    return simplify(compose(nest, [&](int operand) -> const Nest* {
        const Value& v = values.list[operand];
        const bool in =
            v.storage == Value::Storage::inlined || (v.storage == Value::Storage::staged && !keep_staged);
        return in ? &v.nest : nullptr;
    }));
}

Nest in_own_rows(const Nest& nest, const Values& values, bool keep_staged) {
    const std::optional<RunForm> runs = run_form(nest);
    if (!runs || !values.list[runs->keys.value()].nest.body) return nest;
    const Nest keys = composed(values, runs->keys.value(), keep_staged);
    if (is_reduction(keys) || keys.parallel.size() != 1) return nest;
    Substitution same;
    if (const std::uint64_t id = keys.parallel[0].variable.symbol_id()) same[id] = nest.reduced[0].variable;
    for (const Let& let : keys.lets) {
        const Scalar value = substitute(let.value, same);
        for (const Let& other : nest.lets)
            if (same_scalars(value, other.value)) same[let.symbol.symbol_id()] = other.symbol;
    }
    const Scalar key = without_casts(substitute(keys.body, same));
    // Of a list of one element, another read may name the first one.
    const bool single = nest.reduced[0].extent.is(1);
    const auto is_element = [&](const Scalar& s) {
        return single && s->kind == ScalarNode::Kind::read && s->operand == runs->keys && s->guards.empty() &&
               s->at.size() == 1 && s->at[0].is(0);
    };
    Substitution rows;
    for (const Let& let : nest.lets) {
        const Scalar value = without_casts(let.value);
        if (let.symbol.symbol_id() != runs->key && (same_scalars(value, key) || is_element(value)))
            rows[let.symbol.symbol_id()] = nest.parallel[0].variable;
    }
    if (rows.empty()) return nest;
    Nest r = nest;
    std::erase_if(r.lets, [&](const Let& let) { return rows.contains(let.symbol.symbol_id()); });
    for (Let& let : r.lets) let.value = substitute(let.value, rows);
    r.body = substitute(r.body, rows);
    return r;
}

Nest composed(const Values& values, int value, bool keep_staged) {
    std::vector<std::optional<Nest>>& kept = keep_staged ? values.composed : values.fully_composed;
    const bool settled = !kept.empty();
    if (settled && kept[value]) return *kept[value];
    Nest r = in_own_rows(composed(values, values.list[value].nest, keep_staged), values, keep_staged);
    // Symbols of lets are bound where they are printed: each composition has its own.
    if (settled && r.lets.empty()) kept[value] = r;
    return r;
}

}  // namespace

Values decide_storage(const Graph& graph, const Target& target, Tuner* tuner, const Waits& waits) {
    return Decider(graph, target, tuner, waits).run();
}

Nest composed_nest(const Values& values, int value) { return composed(values, value, true); }
Nest fully_composed_nest(const Values& values, int value) { return composed(values, value, false); }
Nest fully_composed_nest(const Values& values, const Nest& nest) { return composed(values, nest, false); }
Nest in_own_rows(const Values& values, const Nest& nest) { return in_own_rows(nest, values, false); }

}  // namespace bitale
