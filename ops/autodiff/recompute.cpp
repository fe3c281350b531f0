#include "ops/autodiff/recompute.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/ir/nest.h"
#include "graph/walk/traverse.h"
#include "ops/autodiff/modifiers.h"
#include "ops/autodiff/saved.h"

namespace bitale {

namespace {

double typical(const Int& length) {
    constexpr double unknown = 128;
    constexpr std::int64_t most_known = 1 << 16;
    const std::int64_t high = length.range().high;
    return length.is_constant() || high <= most_known ? std::max(1.0, static_cast<double>(high)) : unknown;
}

double elements_of(const Node& node) {
    double count = 1;
    for (const Int& length : node.type.shape) count *= typical(length);
    return count;
}

// Rewrites hand origins on, so a value of both passes has those of both.
bool is_made_by_grad(const Node& node) {
    bool any_of_line = false, all = true;
    for (const Origin& origin : node.origins) {
        if (origin.where.line == node.where.line) {
            any_of_line = true;
            if (!origin.of_gradient) return false;
        }
        all = all && origin.of_gradient;
    }
    return any_of_line || (node.origins.empty() ? node.of_gradient : all);
}

// Whether it takes much longer than to read its operands: a product, a convolution, an order.
bool takes_long(const Node& node) {
    if (is_small(node)) return false;
    if (node.op->kind == OpKind::opaque) return true;
    if (node.op->kind != OpKind::reduce) return false;
    const Nest nest = nest_of(node);
    if (is_order(nest.combine) || nest.combine == Combine::affine) return true;
    constexpr double as_pooling = 3;
    double points = 1, moved = elements_of(node);
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& l : *loops) points *= typical(l.extent);
    for (const NodePtr& x : node.inputs) moved += elements_of(*x);
    return points > as_pooling * moved;
}

class Recomputing {
  public:
    explicit Recomputing(const Graph& graph)
        : roots_(graph.roots()),
          order_(topological(roots_)),
          rebuilt_([this](const Node& node) { return !infos_[place_.at(&node)].is_backward; }) {
        for (const NodePtr& root : roots_) is_root_.insert(root.get());
        for (std::size_t i = 0; i < order_.size(); ++i) place_.emplace(order_[i].get(), i);
        infos_.resize(order_.size());
        for (std::size_t i = 0; i < order_.size(); ++i) look_at(i);
        for (std::size_t i = order_.size(); i-- > 0;) look_back_at(i);
    }

    int stages() const { return last_stage_ + 1; }

    Nodes run(const Recomputation& how, std::size_t& copied) {
        cut(how.segments == 0 ? stages() : std::min(how.segments, stages()));
        keep(how.segments == 0);
        find_copied();
        copied = copied_.size();
        if (copied_.empty()) return roots_;
        find_depths();
        for (int segment = last_segment_ - 1; segment >= 0; --segment) copy(segment);
        Nodes r;
        for (const NodePtr& root : roots_) r.push_back(rebuilt_(root));
        return r;
    }

  private:
    struct Info {
        bool is_backward = false, is_long = false, is_read_by_gradient = false;
        int stage = 0;        // of the forward pass: products before it, and itself
        int last_reader = 0;  // its stage, by way of views
        int last_map = 0;     // likewise; a product, which is kept, reads as late as what it follows
        // Of the backward pass: the segments of what it depends on; of the forward pass: its own
        int first = 0, last = -1;
        bool is_fixed = false;  // read as it is
    };

    Info& info(const NodePtr& node) { return infos_[place_.at(node.get())]; }
    const Info& info(const NodePtr& node) const { return infos_[place_.at(node.get())]; }

    void look_at(std::size_t i) {
        const Node& node = *order_[i];
        Info& own = infos_[i];
        own.is_backward =
            std::any_of(node.inputs.begin(), node.inputs.end(),
                        [&](const NodePtr& x) { return info(x).is_backward; }) ||
            (node.op->kind != OpKind::leaf && is_float(node.type.dtype) && is_made_by_grad(node));
        for (const NodePtr& x : node.inputs) {
            if (own.is_backward) info(x).is_read_by_gradient = true;
            own.stage = std::max(own.stage, info(x).stage);
        }
        if (own.is_backward) return;
        own.is_long = takes_long(node);
        if (own.is_long) ++own.stage;
        own.last_reader = own.last_map = own.stage;
        last_stage_ = std::max(last_stage_, own.stage);
    }

    void look_back_at(std::size_t i) {
        const Node& node = *order_[i];
        const Info& own = infos_[i];
        if (own.is_backward) return;
        const bool is_view = node.op->kind == OpKind::view;
        for (const NodePtr& x : node.inputs) {
            Info& of = info(x);
            of.last_reader = std::max(of.last_reader, is_view ? own.last_reader : own.stage);
            of.last_map = std::max(of.last_map, is_view ? own.last_map : own.stage - (own.is_long ? 1 : 0));
        }
    }

    // Segments are alike in their number of stages, or nearly so where little is handed on then.
    void cut(int segments) {
        std::vector<double> handed_on(static_cast<std::size_t>(last_stage_) + 1, 0);
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const Info& own = infos_[i];
            if (own.is_backward || order_[i]->op->kind == OpKind::leaf || order_[i]->op->kind == OpKind::view)
                continue;
            const double bytes = elements_of(*order_[i]) * bytes_of(order_[i]->type.dtype);
            for (int stage = own.stage; stage < own.last_reader; ++stage)
                handed_on[static_cast<std::size_t>(stage)] += bytes;
        }
        std::vector<int> segment_of(handed_on.size(), 0);
        const double length = static_cast<double>(stages()) / segments;
        int before = -1, segment = 0;
        for (int k = 1; k <= segments; ++k) {
            int at = last_stage_;
            if (k < segments) {
                const double ideal = k * length - 1;
                at = -1;
                const int low = std::max(before + 1, static_cast<int>(std::ceil(ideal - length / 2)));
                const int high = std::min(last_stage_ - 1, static_cast<int>(std::floor(ideal + length / 2)));
                for (int stage = low; stage <= high; ++stage) {
                    const auto bytes = [&](int s) { return handed_on[static_cast<std::size_t>(s)]; };
                    const bool is_nearer = at < 0 || std::abs(stage - ideal) < std::abs(at - ideal);
                    if (at < 0 || bytes(stage) < bytes(at) || (bytes(stage) == bytes(at) && is_nearer))
                        at = stage;
                }
                if (at < 0) continue;
            }
            for (int stage = before + 1; stage <= at; ++stage)
                segment_of[static_cast<std::size_t>(stage)] = segment;
            before = at;
            ++segment;
        }
        last_segment_ = segment_of.back();
        for (Info& own : infos_) {
            if (own.is_backward) continue;
            own.first = own.last = segment_of[static_cast<std::size_t>(own.stage)];
            for (int* stage : {&own.last_reader, &own.last_map})
                *stage = segment_of[static_cast<std::size_t>(*stage)];
        }
    }

    void keep(bool products) {
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const Node& node = *order_[i];
            Info& own = infos_[i];
            if (own.is_backward) continue;
            const bool is_view = node.op->kind == OpKind::view && node.op != saved_op();
            const bool of_fixed = is_view && std::all_of(node.inputs.begin(), node.inputs.end(),
                                                         [&](const NodePtr& x) { return info(x).is_fixed; });
            // What goes around a product would be needed at every later stage.
            const bool is_handed_on =
                !is_view && (products ? own.is_long || node.op == saved_op() || own.last_map > own.last
                                      : own.last_reader > own.last);
            own.is_fixed = of_fixed || is_handed_on || own.stage == 0 || own.last == last_segment_ ||
                           is_small(node) || node.op->kind == OpKind::leaf || is_root_.contains(&node);
        }
    }

    void find_copied() {
        for (std::size_t i = order_.size(); i-- > 0;) {
            const Info& own = infos_[i];
            if (own.is_backward || own.is_fixed) continue;
            const bool is_wanted = own.is_read_by_gradient || copied_.contains(order_[i].get());
            if (!is_wanted) continue;
            copied_.insert(order_[i].get());
            for (const NodePtr& x : order_[i]->inputs)
                if (!info(x).is_fixed) copied_.insert(x.get());
        }
    }

    // The segments that values of the backward pass depend on: the first one of those that are copied, and
    // the last of all.
    void find_depths() {
        for (std::size_t i = 0; i < order_.size(); ++i) {
            Info& own = infos_[i];
            if (!own.is_backward) continue;
            own.first = last_segment_;
            for (const NodePtr& x : order_[i]->inputs) {
                const Info& of = info(x);
                if (of.is_backward || copied_.contains(x.get())) own.first = std::min(own.first, of.first);
                if (x->op->kind != OpKind::leaf) own.last = std::max(own.last, of.last);
            }
        }
    }

    // The cotangent that the backward pass brings into a segment, of several the one that comes last; or
    // null.
    NodePtr brought_into(int segment) const {
        NodePtr found;
        std::size_t last = 0;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            if (!infos_[i].is_backward) continue;
            const Nodes& inputs = order_[i]->inputs;
            const bool reads = std::any_of(inputs.begin(), inputs.end(), [&](const NodePtr& x) {
                return copied_.contains(x.get()) && info(x).last == segment;
            });
            if (!reads) continue;
            for (const NodePtr& x : inputs) {
                const Info& of = info(x);
                if (!of.is_backward || of.first <= segment || of.last <= segment || is_small(*x)) continue;
                if (const std::size_t at = place_.at(x.get()); !found || at > last) {
                    found = x;
                    last = at;
                }
            }
        }
        return found;
    }

    void copy(int segment) {
        std::optional<NodePtr> after;
        std::unordered_map<const Node*, NodePtr> begun;
        for (const NodePtr& node : order_) {
            if (!copied_.contains(node.get()) || info(node).last != segment) continue;
            if (!after) {
                const NodePtr brought = brought_into(segment);
                after = brought ? rebuilt_(brought) : nullptr;
            }
            Nodes operands = node->inputs;
            std::size_t begin = operands.size();
            bool has_begun = false;
            for (std::size_t k = 0; k < operands.size(); ++k) {
                const NodePtr& x = node->inputs[k];
                const bool is_copied = copied_.contains(x.get());
                if (is_copied) operands[k] = rebuilt_.at(*x);
                has_begun = has_begun || is_copied;
                if (begin == operands.size() && x->op->kind != OpKind::leaf) begin = k;
            }
            if (!has_begun) {
                if (begin == operands.size()) begin = 0;
                NodePtr& x = operands.at(begin);
                NodePtr& again = begun[x.get()];
                if (!again)
                    again = of_gradient(
                        make_node(again_op(), *after ? Nodes{x, *after} : Nodes{x}, {}, node->where));
                x = again;
            }
            rebuilt_.replace(*node, of_gradient(with_inputs(node, std::move(operands))));
        }
    }

    static NodePtr of_gradient(NodePtr made) {
        auto* fresh = const_cast<Node*>(made.get());  // not shared yet
        fresh->of_gradient = true;
        for (Origin& origin : fresh->origins) origin.of_gradient = true;
        return made;
    }

    const Nodes roots_, order_;
    std::unordered_set<const Node*> is_root_, copied_;
    std::unordered_map<const Node*, std::size_t> place_;
    std::vector<Info> infos_;  // by place
    int last_stage_ = 0, last_segment_ = 0;
    Rebuilding rebuilt_;  // nodes of the backward pass, which read copies
};

}  // namespace

bool is_small(const Node& node) {
    const auto longer = [](const Int& length) { return !length.is(1); };
    return std::count_if(node.type.shape.begin(), node.type.shape.end(), longer) < 2;
}

std::vector<Recomputation> recomputations(const Graph& graph) {
    const int stages = Recomputing(graph).stages();
    std::set<int> segments{0};
    for (const int count :
         {2, static_cast<int>(std::lround(std::sqrt(static_cast<double>(stages)))), stages / 2, stages})
        if (count >= 2) segments.insert(count);
    std::vector<Recomputation> worth;
    for (const int count : segments) {
        std::size_t copied = 0;
        Recomputing(graph).run({count}, copied);
        if (copied > 0) worth.push_back({count});
    }
    return worth;
}

std::size_t recompute(Graph& graph, const Recomputation& how) {
    std::size_t copied = 0;
    graph.set_roots(Recomputing(graph).run(how, copied));
    return copied;
}

}  // namespace bitale
