#include "codegen/group/winners.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/library/conv.h"
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
    return node.op == conv_grad_w_op() && node.inputs[1]->op == unpool_op();
}

bool worth_it(const Node& node, const Target& target) {
    const Work work = work_over_all_places(node);
    return work.winners < work.all_places && !library_computes(node, target);
}

std::string ratio(double more, double less) { return std::to_string(std::lround(more / less)); }

}  // namespace

void choose_winners(Graph& graph, const Target& target) {
    const RuleSet rules = winner_rules([&](const Match& match) { return worth_it(*match.root(), target); });
    graph.set_roots(rewrite(graph.roots(), rules));
}

std::string why_winners(const Node& node, const Target& target) {
    if (node.op == conv_grad_w_winners_op()) {
        const Work work = work_over_all_places(*through_all_places(std::make_shared<Node>(node)));
        return "over the windows of the pooling, because their winners need 1/" +
               ratio(work.all_places, work.winners) + " of the work of all places";
    }
    if (!is_behind_pooling(node) || library_computes(node, target)) return "";
    const Work work = work_over_all_places(node);
    return work.winners < work.all_places
               ? ""
               : "over all places, because the winners of the pooling would need " +
                     ratio(100 * work.winners, work.all_places) + " % of that work";
}

}  // namespace bitale
