#include "codegen/group/boundary.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// Images are [n, channels, height, width], or [n, groups, channels, height, width].
constexpr std::size_t fewest_axes = 4, most_axes = 5;
constexpr double fewest_channels = 8;
// Sums that each element of an image has a part in; elements that a result is the sum of.
constexpr double fewest_uses = 8, shortest_sum = 64, shortest_apart = 16;

bool is_image(std::size_t axes) { return axes >= fewest_axes && axes <= most_axes; }

std::size_t channels_of(std::size_t axes) { return axes - 3; }

// The loop that runs over images: of results, or in a gradient of filters of what is summed.
std::optional<Loop> loop_over_images(const Nest& nest) {
    if (nest.parallel.empty() || nest.reduced.empty()) return {};
    const auto leads = [&](const Loop& l) {
        bool any = false;
        for_each_read(nest, [&](const ScalarNode& s) {
            any = any || (is_image(s.at.size()) && l.variable.symbol_id() && s.at[0] == l.variable);
        });
        return any;
    };
    if (leads(nest.parallel[0])) return nest.parallel[0];
    if (leads(nest.reduced[0])) return nest.reduced[0];
    return {};
}

bool contains(const std::vector<Loop>& loops, const Int& variable) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& l) { return l.variable == variable; });
}

// Short sums run in lanes of neighbouring results where these read neighbours. With a stride they do not.
bool runs_along_width(const Nest& nest) {
    const std::vector<Scalar>& factors = nest.body->arguments;
    return std::any_of(factors.begin(), factors.end(),
                       [&](const Scalar& factor) { return runs_along_last(nest, factor); });
}

class Reorderer {
  public:
    Reorderer(Values& values, const Graph& graph, const Target& target)
        : values_(values), target_(target), given_(values.list.size()) {
        std::iota(given_.begin(), given_.end(), 0);
        for (const Check& check : graph.checks) fixed_.insert(values.number.at(check.value.get()));
    }

    void run() {
        const int count = static_cast<int>(values_.list.size());
        for (int v = 0; v < count; ++v) {
            const Value& value = values_.list[v];
            if (value.storage != Value::Storage::stored || value.by_library || value.absorbed) continue;
            if (!adds_products(value.nest) || value.nest.parallel.size() < fewest_axes - 1) continue;
            const std::optional<Loop> images = loop_over_images(value.nest);
            if (!images) continue;
            copy_operands(v, *images);
            if (is_read_by_windows(v)) at(v).wanted_order = Value::Order::plain;
            move_result(v, *images);
        }
        if (given_.size() > static_cast<std::size_t>(count)) renumber_all();
    }

  private:
    Value& at(int v) { return values_.list[static_cast<std::size_t>(v)]; }
    const Value& at(int v) const { return values_.list[static_cast<std::size_t>(v)]; }

    bool lies_as_given(int v) const {
        const Value& value = at(v);
        return value.storage == Value::Storage::leaf ||
               (value.storage == Value::Storage::stored &&
                (value.required || fixed_.contains(v) || value.wanted_order == Value::Order::plain));
    }

    // Channels are summed where images are results, and results where images are summed.
    static bool reads_channels(const Nest& nest, const Loop& images, const ScalarNode& s) {
        if (!is_image(s.at.size()) || !(s.at[0] == images.variable)) return false;
        const Int& channel = s.at[channels_of(s.at.size())];
        const bool of_results = contains(nest.parallel, images.variable);
        return channel.symbol_id() && contains(of_results ? nest.reduced : nest.parallel, channel);
    }

    // What is read with its channels apart in memory: directly, or through views.
    bool has_channels_apart(int v) const {
        Nest nest;
        std::vector<Int> index;
        for (const Int& n : at(v).shape) {
            nest.parallel.push_back(make_loop("i", n));
            index.push_back(nest.parallel.back().variable);
        }
        nest.body = scalar_read(at(v).node->type.dtype, Operand::of_value(v), index);
        nest.dtype = at(v).node->type.dtype;
        nest = compose(nest, [&](int operand) -> const Nest* {
            return at(operand).storage == Value::Storage::inlined ? &at(operand).nest : nullptr;
        });
        const Int& channel = index[channels_of(index.size())];
        if (!channel.symbol_id()) return false;
        bool apart = false, given = true;
        for_each_read(nest, [&](const ScalarNode& s) {
            if (s.at.size() < fewest_axes) return;
            given = given && lies_as_given(s.operand.value());
            apart = apart || !(s.at.back() == channel);
        });
        return given && apart;
    }

    // What runs in lanes, as the maps' gradients do in that of filters; of images whose elements are taken
    // one by one a copy as it is, in which they are nearer to each other.
    void copy_operands(int v, const Loop& images) {
        std::set<int> wanted;
        const Nest& nest = at(v).nest;
        const std::optional<ChannelAxis> axis = channel_axis(nest);
        if (!axis) return;
        const double sums = typical_count(nest.parallel) * typical_count(nest.reduced);
        for_each_read(nest, [&](const ScalarNode& s) {
            const Value& operand = at(s.operand.value());
            if (!reads_channels(nest, images, s)) return;
            const Int& channels = operand.shape[channels_of(operand.shape.size())];
            if (!channels.is_constant()) return;
            const bool in_lanes = std::any_of(axis->reads.begin(), axis->reads.end(),
                                              [&](const auto& read) { return read.first == s.operand; });
            if (!in_lanes && !contains(nest.parallel, images.variable)) return;
            if (typical(channels) < fewest_channels) return;
            double elements = 1;
            for (const Int& n : operand.shape) elements *= typical(n);
            if (sums < fewest_uses * elements) return;
            if (operand.storage != Value::Storage::inlined && !lies_as_given(s.operand.value())) return;
            if (has_channels_apart(s.operand.value())) wanted.insert(s.operand.value());
        });
        for (const int operand : wanted) {
            auto [copy, fresh] = copies_.try_emplace(operand, 0);
            if (fresh) copy->second = insert_copy(operand, v);
            read_instead(v, operand, copy->second);
        }
    }

    int insert(Value value, int before) {
        const int number = static_cast<int>(values_.list.size());
        values_.list.push_back(std::move(value));
        given_.push_back(before);
        return number;
    }

    int insert_copy(int from, int before) {
        const NodePtr& node = at(from).node;
        std::vector<std::int64_t> axes(node->type.shape.size());
        std::iota(axes.begin(), axes.end(), 0);
        Value copy;
        copy.node = make_node(permute_op(), {node}, {{"axes", axes}}, node->where);
        copy.shape = copy.node->type.shape;
        copy.nest = map_of(copy.node, from);
        copy.storage = Value::Storage::staged;
        const int number = insert(std::move(copy), before);
        at(from).users.push_back(number);
        return number;
    }

    static Nest map_of(const NodePtr& node, int operand) {
        Nest nest;
        nest.dtype = node->type.dtype;
        std::vector<Int> index;
        for (const Int& n : node->type.shape) {
            nest.parallel.push_back(make_loop("i", n));
            index.push_back(nest.parallel.back().variable);
        }
        nest.body = scalar_read(nest.dtype, Operand::of_value(operand), index);
        return nest;
    }

    void read_instead(int v, int from, int copy) {
        at(v).nest = map_reads(at(v).nest, [&](const Scalar& s) -> Scalar {
            if (s->operand.value() != from) return s;
            auto r = std::make_shared<ScalarNode>(*s);
            r->operand = Operand::of_value(copy);
            return r;
        });
        std::erase(at(from).users, v);
        at(copy).users.push_back(v);
    }

    // Whether windows over the last axes that overlap read it, and no product does: they read an element
    // several times, neighbours of a row at once.
    bool is_read_by_windows(int v) const {
        const std::size_t axes = at(v).shape.size();
        if (!target_.has_vectors() || !is_image(axes) || at(v).storage != Value::Storage::stored ||
            at(v).wanted_order != Value::Order::free)
            return false;
        bool windows = false;
        for (int u = v + 1; u < static_cast<int>(values_.list.size()); ++u) {
            const Value& reader = at(u);
            if (reader.storage != Value::Storage::stored && reader.storage != Value::Storage::staged)
                continue;
            if (reader.by_library || !reader.nest.body) continue;
            const Nest nest = composed_nest(values_, u);
            bool products = false;
            for_each_read(nest, [&](const ScalarNode& s) {
                if (s.operand.value() != v) return;
                products = products || adds_products(nest);
                // Maxima run in lanes of channels, one window after another.
                windows = windows || (nest.combine == Combine::sum && overlap_along(nest, s.at[axes - 1]) &&
                                      overlap_along(nest, s.at[axes - 2]));
            });
            if (products) return false;
        }
        return windows;
    }

    // Windows of neighbouring results share elements, unlike those of a mean over 2 x 2.
    static bool overlap_along(const Nest& nest, const Int& place) {
        const auto step_of = [&](const Loop& l) {
            const std::uint64_t id = l.variable.symbol_id();
            return id ? substitute(place, {{id, l.variable + 1}}) - place : Int(0);
        };
        Int reach = 0;
        for (const Loop& l : nest.reduced) reach = reach + step_of(l) * (l.extent - 1);
        return !reach.is(0) && std::any_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& l) {
            const Int step = step_of(l);  // a quotient's is none that is known
            return !step.is(0) && !(step - reach - 1).non_negative();
        });
    }

    // The convolution as a value of its own, and its result a map of it.
    void move_result(int v, const Loop& images) {
        const Value& result = at(v);
        if (!target_.has_vectors() || !is_image(result.shape.size())) return;
        if (!lies_as_given(v) || !contains(result.nest.parallel, images.variable)) return;
        const std::optional<ChannelAxis> axis = channel_axis(result.nest);
        if (!axis || axis->loop != channels_of(result.shape.size()) ||
            typical_count(result.nest.reduced) <
                (runs_along_width(result.nest) ? shortest_sum : shortest_apart))
            return;
        Value inner;
        const Node& node = *result.node;
        inner.node = make_node(node.op, node.inputs, node.attributes, node.where);
        inner.shape = result.shape;
        inner.nest = result.nest;
        inner.storage = Value::Storage::stored;
        inner.wanted_order = Value::Order::channel_last;
        inner.reason = "a convolution whose result has another order in memory";
        inner.why_generated = result.why_generated;
        const int number = insert(std::move(inner), v);
        for (Value& operand : values_.list)
            for (int& user : operand.users)
                if (user == v) user = number;
        at(number).users = {v};
        at(v).nest = map_of(at(v).node, number);
    }

    // Puts what was inserted before its first reader.
    void renumber_all() {
        std::vector<int> order(given_.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return std::pair(given_[a], given_[a] == a) < std::pair(given_[b], given_[b] == b);
        });
        std::vector<int> number(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<int>(i);
        const auto renumbered = [&](std::vector<int>& list) {
            for (int& v : list) v = number[v];
            std::sort(list.begin(), list.end());
        };
        std::vector<Value> list;
        list.reserve(order.size());
        for (const int old : order) {
            Value value = std::move(at(old));
            if (value.nest.body)
                value.nest = renumber(value.nest, [&](Operand of) {
                    return Operand::of_value(number[static_cast<std::size_t>(of.value())]);
                });
            renumbered(value.users);
            if (value.by_library) {
                for (int& v : value.by_library->operands) v = number[v];
                for (int& v : value.by_library->absorbed) v = number[v];
            }
            list.push_back(std::move(value));
        }
        values_.list = std::move(list);
        for (auto& [node, v] : values_.number) v = number[v];
        for (std::size_t i = 0; i < order.size(); ++i)
            if (given_[order[i]] != order[i])
                values_.number[values_.list[i].node.get()] = static_cast<int>(i);
    }

    Values& values_;
    const Target& target_;
    std::vector<int> given_;  // of each value: the one it comes before, itself for those that were there
    std::set<int> fixed_;
    std::map<int, int> copies_;
};

}  // namespace

void reorder_boundary(Values& values, const Graph& graph, const Target& target) {
    Reorderer(values, graph, target).run();
}

}  // namespace bitale
