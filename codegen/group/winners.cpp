#include "codegen/group/winners.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/library/conv.h"
#include "codegen/tune/excerpt.h"
#include "graph/base/options.h"
#include "graph/rewrite/driver.h"
#include "ops/linear/conv_gradients.h"
#include "ops/nn/pool_gradients.h"
#include "ops/nn/winner_gradients.h"
#include "ops/rules/rules.h"

namespace bitale {

namespace {

// Vector operations of an image, 16 lanes each.
struct Work {
    double all_places = 0, winners = 0;
};

// `g` is the gradient of the pooled map.
Work work_of(const Node& node, const Node& g, const PoolGeometry& pooling, const Shape& places) {
    constexpr double lanes = 16;
    // Finding out what won: for a vector of outputs at one place, and for one window.
    constexpr double comparisons = 3, addresses = 6;
    const auto length = [](const Shape& shape, std::size_t axis) { return typical(shape[axis]); };
    const auto registers = [](double elements) { return std::ceil(elements / lanes); };
    const ConvGeometry conv = ConvGeometry::of(node.attributes);
    const Shape &filters = node.type.shape, &windows = g.type.shape;
    const double outputs = length(filters, 0), channels = length(filters, 1), height = length(filters, 2),
                 width = length(filters, 3);
    double covering = 1;
    for (std::size_t i = 0; i < 2; ++i)
        covering *=
            std::ceil(static_cast<double>(pooling.window[i]) / static_cast<double>(pooling.stride[i]));
    Work work;
    work.all_places = length(places, 2) * length(places, 3) * registers(outputs) *
                      (channels * height * width + comparisons * covering);
    // Neighbours in a row of the image, channels innermost, fill the lanes.
    const double taps =
        height * (conv.dilation[1] == 1 ? registers(width * channels) : width * registers(channels));
    work.winners = length(windows, 2) * length(windows, 3) * outputs * (taps + addresses);
    return work;
}

Work work_over_all_places(const Node& node) {
    const Node& everywhere = *node.inputs[1];
    return work_of(node, *everywhere.inputs[0], PoolGeometry::of(everywhere.attributes),
                   everywhere.type.shape);
}

bool is_behind_pooling(const Node& node) {
    return node.op == conv_grad_w_op() && node.type.rank() == 4 && node.inputs[1]->op == unpool_op();
}

// Of a gradient over all places.
struct Decision {
    bool winners = false;
    std::string measured;  // how long each of them takes, where somebody measured
};

Graph surroundings(const NodePtr& over_all_places) {
    const NodePtr& everywhere = over_all_places->inputs[1];
    const auto in_memory = [&](const NodePtr& node) {
        return node != everywhere && node->op->kind == OpKind::reduce;
    };
    return excerpt_of(over_all_places, in_memory, Maps::channels_last);
}

Decision decide(const NodePtr& over_all_places, const Target& target, Tuner* tuner) {
    const Work work = work_over_all_places(*over_all_places);
    const bool less = work.winners < work.all_places;
    // Without vectors there is no schedule that gains from either: the work says it all.
    if (!tuner || !target.has_vectors()) return {less, ""};
    std::vector<Way> ways{Way::winners, Way::all_places};
    if (!less) std::swap(ways[0], ways[1]);
    const Answer answer = tuner->choose({surroundings(over_all_places), std::move(ways)});
    return {answer.way == Way::winners, answer.why};
}

// Places that a schedule can pass over, in a sum that is long enough for it, and with channels in its lanes.
bool passes_over_zeros(const Node& node, const Target& target) {
    constexpr std::int64_t most_taps = 25, fewest_places = 4;
    constexpr double fewest_channels = 8;
    const ConvGeometry conv = ConvGeometry::of(node.attributes);
    const PoolGeometry pooling = PoolGeometry::of(node.inputs[0]->attributes);
    const Shape& filters = node.inputs[1]->type.shape;
    if (filters.size() != 4) return false;
    const bool small = filters[2].is_constant() && filters[3].is_constant() && filters[2].constant() > 1 &&
                       filters[3].constant() > 1 &&
                       filters[2].constant() * filters[3].constant() <= most_taps;
    return small && conv.stride[0] == 1 && conv.stride[1] == 1 &&
           pooling.stride[0] * pooling.stride[1] >= fewest_places && typical(filters[0]) >= fewest_channels &&
           typical(filters[1]) >= fewest_channels && !library_computes(node, target);
}

std::string ratio(double more, double less) { return std::to_string(std::lround(more / less)); }

}  // namespace

void choose_winners(Graph& graph, const Target& target, Tuner* tuner) {
    // Where strict arithmetic holds the rule back, nothing depends on a measurement.
    Tuner* const asked = options().strict_math ? nullptr : tuner;
    const auto worth_it = [&](const Match& match) {
        return is_behind_pooling(*match.root()) && !library_computes(*match.root(), target) &&
               decide(match.root(), target, asked).winners;
    };
    const RuleSet rules =
        winner_rules(worth_it, [&](const Match& match) { return passes_over_zeros(*match.root(), target); });
    RewriteOptions noting;
    noting.held_back = &graph.held_back;
    graph.set_roots(rewrite(graph.roots(), rules, noting));
}

std::string why_winners(const NodePtr& node, const Target& target, Tuner* tuner) {
    const bool winners = node->op == conv_grad_w_winners_op();
    if (!winners && (!is_behind_pooling(*node) || library_computes(*node, target))) return "";
    if (!winners && options().strict_math)
        return "over all places, because math=strict leaves out no product with zero";
    const NodePtr over_all_places = winners ? through_all_places(node) : node;
    const Work work = work_over_all_places(*over_all_places);
    const std::string measured = decide(over_all_places, target, tuner).measured;
    const std::string estimate = winners ? "their winners need 1/" + ratio(work.all_places, work.winners) +
                                               " of the work of all places"
                                         : "the winners of the pooling would need " +
                                               ratio(100 * work.winners, work.all_places) + " % of that work";
    return (winners ? "over the windows of the pooling, " : "over all places, ") +
           (measured.empty() ? "because " + estimate : measured + " (estimate: " + estimate + ")");
}

}  // namespace bitale
