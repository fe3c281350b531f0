#include "codegen/group/layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/nest/product.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/scatter.h"

namespace bitale {

namespace {

// The loop whose iterations run next to each other: in vector lanes, or in neighbouring threads.
Int innermost(const Nest& nest, const ShapeOf& shape_of) {
    if (nest.combine != Combine::none && !nest.reduced.empty()) {
        const int lanes = tree_of(nest, shape_of).lanes > 1 ? -1 : vector_loop(nest, shape_of);
        return lanes < 0 ? nest.reduced.back().variable : nest.parallel[lanes].variable;
    }
    return nest.parallel.empty() ? Int(0) : nest.parallel.back().variable;
}

// 1 where the index moves by one with the variable, less where it moves otherwise (a stride, a quotient): its
// elements are near each other all the same.
double nearness(const Int& at, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    if (!id || !depends_on(at, id)) return 0;
    constexpr double elsewhere = 0.5;
    return substitute(at, {{id, variable + 1}}) - at == Int(1) ? 1 : elsewhere;
}

Nest permuted(Nest nest, const std::vector<std::size_t>& order) {
    std::vector<Loop> loops;
    loops.reserve(order.size());
    for (const std::size_t axis : order) loops.push_back(nest.parallel[axis]);
    nest.parallel = std::move(loops);
    return nest;
}

class LayoutChooser {
  public:
    LayoutChooser(Values& values, const Graph& graph) : values_(values), stored_users_(values.list.size()) {
        for (const Check& check : graph.checks) fixed_.insert(values.number.at(check.value.get()));
        for (std::size_t v = 0; v < values.list.size(); ++v) {
            const Value& value = values.list[v];
            if (value.storage != Value::Storage::stored || value.by_library) continue;
            for_each_read(fully_composed_nest(values, static_cast<int>(v)), [&](const ScalarNode& s) {
                std::vector<int>& users = stored_users_[s.operand.value()];
                if (users.empty() || users.back() != static_cast<int>(v))
                    users.push_back(static_cast<int>(v));
            });
            channels_last(static_cast<int>(v));
        }
    }

    // Readers first, so that each is asked in the order that it has got itself.
    void run() {
        for (int v = static_cast<int>(values_.list.size()) - 1; v >= 0; --v) {
            if (!free(v)) continue;
            const auto channels = channels_.find(v);
            if (channels != channels_.end() && values_.list[v].storage == Value::Storage::staged)
                hand_on(v, channels->second);
            if (channels == channels_.end() && values_.list[v].storage != Value::Storage::stored) continue;
            const bool wanted = values_.list[v].wanted_order == Value::Order::channel_last;
            const std::size_t last = values_.list[v].shape.size() - 1, best = wanted ? last - 2
                                                                              : channels != channels_.end()
                                                                                  ? channels->second
                                                                                  : best_last_axis(v);
            if (best != last) move_last(v, best);
        }
    }

  private:
    bool free(int v) const {
        const Value& value = values_.list[v];
        const bool exists =
            value.storage == Value::Storage::stored || value.storage == Value::Storage::staged;
        // The last loop of an order numbers the elements.
        return exists && !value.required && !is_order(value.nest.combine) &&
               value.wanted_order != Value::Order::plain && value.shape.size() >= 3 && !fixed_.contains(v);
    }

    // Convolutions and their gradients run with neighbouring channels in neighbouring lanes: so does what
    // they compute lie in memory, and what they read by them.
    void channels_last(int v) {
        const std::optional<ChannelAxis> axis = channel_axis(composed_nest(values_, v));
        if (!axis) return;
        if (axis->loop > 0) channels_[v] = axis->loop;
        for (const auto& [operand, d] : axis->reads)
            if (d > 0) channels_[operand.value()] = d;
        // What is passed over is found by the channels of a place.
        const Nest nest = composed_nest(values_, v);
        if (const std::optional<ScatterForm> form = scatter_form(nest); form && form->channels > 0) {
            const ScalarNode &sparse = *nest.body->arguments[static_cast<std::size_t>(form->factor)],
                             &other = *nest.body->arguments[static_cast<std::size_t>(1 - form->factor)];
            if (other.at.back() == nest.parallel[form->lanes].variable)
                channels_.try_emplace(sparse.operand.value(), form->channels);
        }
    }

    // What a copy is made of has its channels last too.
    void hand_on(int v, std::size_t axis) {
        const Nest nest = composed_nest(values_, v);
        const Int& channel = nest.parallel[axis].variable;
        for_each_read(nest, [&](const ScalarNode& s) {
            for (std::size_t d = 1; d < s.at.size(); ++d)
                if (s.at[d] == channel && s.at.size() >= 3) channels_.try_emplace(s.operand.value(), d);
        });
    }

    std::size_t best_last_axis(int v) const {
        const Value& value = values_.list[v];
        std::vector<double> votes(value.shape.size(), 0);
        for (const int user : stored_users_[v]) {
            const Nest nest = fully_composed_nest(values_, user);
            const Int fast = innermost(nest, values_.shapes());
            const double weight = typical_count(nest.parallel) * typical_count(nest.reduced);
            for_each_read(nest, [&](const ScalarNode& s) {
                for (std::size_t d = 1; s.operand.value() == v && d < votes.size(); ++d)
                    votes[d] += weight * nearness(s.at[d], fast);
            });
        }
        const Nest own = fully_composed_nest(values_, v);
        const double weight = typical_count(own.parallel) * typical_count(own.reduced);
        for_each_read(own, [&](const ScalarNode& s) {
            if (s.at.size() < 2) return;  // a vector or a scalar is in the cache anyway
            for (std::size_t d = 1; d < votes.size(); ++d)
                votes[d] += weight * nearness(s.at.back(), own.parallel[d].variable);
        });
        std::size_t best = votes.size() - 1;
        for (std::size_t d = 1; d < votes.size(); ++d)
            if (votes[d] > votes[best]) best = d;
        return best;
    }

    void move_last(int v, std::size_t axis) {
        Value& value = values_.list[v];
        std::vector<std::size_t> order;
        for (std::size_t d = 0; d < value.shape.size(); ++d)
            if (d != axis) order.push_back(d);
        order.push_back(axis);
        value.nest = permuted(std::move(value.nest), order);
        Shape shape;
        std::string text;
        for (const std::size_t d : order) {
            shape.push_back(value.shape[d]);
            text += " " + std::to_string(d);
        }
        value.shape = std::move(shape);
        value.order = order;
        value.reason += "; axes in the order" + text;
        for (const int user : value.users) {
            Value& reader = values_.list[user];
            reader.nest = map_reads(reader.nest, [&](const Scalar& s) -> Scalar {
                if (s->operand.value() != v) return s;
                auto r = std::make_shared<ScalarNode>(*s);
                for (std::size_t d = 0; d < order.size(); ++d) r->at[d] = s->at[order[d]];
                return r;
            });
        }
    }

    Values& values_;
    std::vector<std::vector<int>> stored_users_;
    std::set<int> fixed_;
    std::map<int, std::size_t> channels_;  // of values: the axis to come last
};

}  // namespace

void choose_layouts(Values& values, const Graph& graph) { LayoutChooser(values, graph).run(); }

}  // namespace bitale
