#include "codegen/nest/product.h"

#include <algorithm>

#include "codegen/group/values.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

constexpr double shortest_sum = 32, fewest_results = 4096, fewest_rows = 32, fewest_columns = 24;

}  // namespace

bool adds_products(const Nest& nest) {
    const Scalar& body = nest.body;
    return nest.combine == Combine::sum && is_float(nest.accumulator) && body->dtype == nest.accumulator &&
           applies(*body, Opcode::mul) && !sums_runs(nest);
}

bool is_element(const Nest& nest, const Scalar& factor) {
    return factor->kind == ScalarNode::Kind::read && factor->guards.empty() &&
           factor->dtype == nest.accumulator;
}

std::vector<Let> lets_of(const Nest& nest, const Scalar& body) {
    std::vector<Let> needed;
    const std::vector<Let> latest_first(nest.lets.rbegin(), nest.lets.rend());
    for (const Let& l : latest_first) {
        const std::uint64_t id = l.symbol.symbol_id();
        if (depends_on(body, id) || std::any_of(needed.begin(), needed.end(), [&](const Let& other) {
                return depends_on(other.value, id) || depends_on(other.extent, id);
            }))
            needed.insert(needed.begin(), l);
    }
    return needed;
}

bool varies(const Nest& nest, const Scalar& scalar, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    if (!id) return false;
    const std::vector<Let> lets = lets_of(nest, scalar);
    return depends_on(scalar, id) || std::any_of(lets.begin(), lets.end(), [&](const Let& l) {
               return depends_on(l.value, id) || depends_on(l.extent, id);
           });
}

ProductAxes product_axes(const Nest& nest) {
    ProductAxes axes;
    for (const Loop& l : nest.parallel) {
        const bool a = varies(nest, nest.body->arguments[0], l.variable),
                   b = varies(nest, nest.body->arguments[1], l.variable);
        (a && b ? axes.common : b ? axes.columns : axes.rows).push_back(l);
    }
    return axes;
}

bool runs_along_last(const Nest& nest, const Scalar& factor) {
    const Int& last = nest.parallel.back().variable;
    bool runs = last.symbol_id() != 0;
    for_each_read(factor, [&](const ScalarNode& s) {
        const std::optional<Int> step = s.at.empty() ? std::nullopt : stride_of(s.at.back(), last);
        runs = runs && step && step->is(1);
    });
    return runs;
}

std::optional<ChannelAxis> channel_axis(const Nest& nest) {
    constexpr std::size_t fewest_axes = 3;
    constexpr double fewest_channels = 8, fewest_neighbours = 32;  // the latter fill registers
    if (!adds_products(nest) || nest.parallel.size() < fewest_axes) return {};
    const bool wide = typical(nest.parallel.back().extent) >= fewest_neighbours;
    std::optional<ChannelAxis> best;
    double most = 0;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        const std::uint64_t id = l.variable.symbol_id();
        if (!id || !l.extent.is_constant() || typical(l.extent) < fewest_channels) continue;
        const int f = varies(nest, nest.body->arguments[1], l.variable) ? 1 : 0;
        const Scalar &factor = nest.body->arguments[static_cast<std::size_t>(f)],
                     &rest = nest.body->arguments[static_cast<std::size_t>(1 - f)];
        if (varies(nest, rest, l.variable)) continue;
        ChannelAxis axis{i, f, {}};
        bool plain = true;
        for_each_read(factor, [&](const ScalarNode& s) {
            for (std::size_t d = 0; d < s.at.size(); ++d) {
                if (!depends_on(s.at[d], id)) continue;
                plain = plain && s.at[d] == l.variable;
                axis.reads.emplace_back(s.operand, d);
            }
        });
        if (!plain || axis.reads.empty()) continue;
        // Rather the factor that serves all the other results of its group: filters, or in their gradient
        // that of the maps.
        const bool alone = std::none_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& other) {
            return &other != &l && varies(nest, factor, other.variable) &&
                   !varies(nest, rest, other.variable);
        });
        if (!alone && wide && runs_along_last(nest, factor)) continue;
        const double score = typical(l.extent) + (alone ? 1e9 : 0);
        if (score <= most) continue;
        most = score;
        best = std::move(axis);
    }
    return best;
}

std::optional<ChannelAxis> filters_axis(const Nest& nest) {
    std::optional<ChannelAxis> axis = channel_axis(nest);
    if (!axis || axis->reads.size() != 1) return {};
    const Scalar& factor = nest.body->arguments[static_cast<std::size_t>(axis->factor)];
    if (factor->kind != ScalarNode::Kind::read || varies(nest, factor, nest.parallel[0].variable)) return {};
    return axis;
}

bool multiplies_matrices(const Nest& nest) {
    if (!adds_products(nest) || !nest.guards.empty()) return false;
    const ProductAxes axes = product_axes(nest);
    return axes.common.empty() && !axes.rows.empty() && !axes.columns.empty();
}

bool is_matrix_product(const Nest& nest) {
    return nest.reduced.size() == 1 && nest.reduced[0].variable.symbol_id() && multiplies_matrices(nest);
}

bool has_one_row(const Nest& nest) {
    if (!adds_products(nest) || !nest.guards.empty() || nest.reduced.size() != 1) return false;
    const ProductAxes axes = product_axes(nest);
    const auto one = [](const std::vector<Loop>& loops) {
        return std::all_of(loops.begin(), loops.end(), [](const Loop& l) { return l.extent.is(1); });
    };
    return one(axes.common) && one(axes.rows) != one(axes.columns);
}

bool is_large_product(const Nest& nest, const ReductionTree& tree) {
    if (!adds_products(nest) || !nest.guards.empty() || tree.lanes > 1 || tree.split) return false;
    if (typical_count(nest.reduced) < shortest_sum || typical_count(nest.parallel) < fewest_results)
        return false;
    const ProductAxes axes = product_axes(nest);
    const double rows = typical_count(axes.rows), columns = typical_count(axes.columns);
    return std::max(rows, columns) >= fewest_rows && std::min(rows, columns) >= fewest_columns;
}

Nest with_channels_last(Nest nest, const Nest& original) {
    if (const std::optional<ChannelAxis> axis = channel_axis(original)) {
        const auto channels = nest.parallel.begin() + static_cast<std::ptrdiff_t>(axis->loop);
        std::rotate(channels, channels + 1, nest.parallel.end());
    }
    return nest;
}

}  // namespace bitale
