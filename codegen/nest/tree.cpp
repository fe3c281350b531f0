#include "codegen/nest/tree.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "codegen/group/values.h"
#include "codegen/nest/channels.h"
#include "codegen/nest/phases.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/puts.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Results side by side in memory, of which a chunk sums up whole rows: partial results of more leave
// the cache.
constexpr double results_of_whole_rows = 4096;
constexpr double few_results = 512, long_reduction = 2048, worth_splitting = 65536;
constexpr std::int64_t always_split = 16384;  // however few the results
// Iterations of a lane in a chunk: on a GPU each lane is a thread that waits for memory again and again.
constexpr double lane_length = 64;
// More results than few: chunks of whole rows, few enough that their partial results stay small.
constexpr double many_results = 1 << 20, long_row = 16, partial_results = 1 << 19, fewest_rows_of_tree = 8;
// Gradients of filters: images one by one, of which a task then has copies, as soon as there are some.
constexpr double fewest_images = 2, short_sum = 64, many_filters = 1 << 22;
constexpr std::int64_t most_chunks = 8192;
constexpr int lane_count = 16, group_count = 4;
constexpr std::int64_t worth_groups = 256;  // iterations
constexpr double many_rows = 64, fewest_side_by_side = 4;
constexpr std::int64_t row_length = 1024, row_of_product = 256;

bool known(const std::vector<Loop>& results) {
    return std::all_of(results.begin(), results.end(), [](const Loop& l) { return l.extent.is_constant(); });
}

// The last results of a chunk that are written out side by side, each with its own chain of additions.
double results_side_by_side(const Nest& nest) {
    constexpr std::int64_t most = 12;
    std::int64_t count = 1;
    for (auto l = nest.parallel.rbegin(); l != nest.parallel.rend(); ++l) {
        if (!l->extent.is_constant() || count * l->extent.constant() > most) break;
        count *= l->extent.constant();
    }
    return static_cast<double>(count);
}

// Partial results of a chunk are scratch, so their number must be known.
bool few(const std::vector<Loop>& results) { return known(results) && typical_count(results) <= few_results; }

// Places that neighbouring iterations read at are known at run time only: their lanes would have to gather.
// Neighbouring results find theirs side by side.
bool at_unknown_places(const Nest& nest, const Int& variable) {
    return adds_products(nest) && !nest.parallel.empty() &&
           std::any_of(nest.lets.begin(), nest.lets.end(),
                       [&](const Let& let) { return varies(nest, let.value, variable); });
}

// Of an unknown number of rows, which may be many: a single core would add them all up, and where lanes are
// none, in one sum, whose error grows with its length. Few rows are one chunk.
bool may_be_long(const Nest& nest, double rest) {
    const Int& rows = nest.reduced[0].extent;
    return nest.reduced.size() > 1 && !rows.is_constant() &&
           static_cast<double>(rows.range().high) * rest >= always_split;
}

// Whether what is read along a first axis moves in larger steps with this loop than with any result, as far
// as steps are known: views have images' places in fewer axes, or all in one.
bool moves_furthest_with(const Int& loop, const Int& first_axis, const std::vector<Loop>& results) {
    if (!depends_on(first_axis, loop.symbol_id())) return false;
    const std::optional<Int> own = stride_of(first_axis, loop);
    return std::none_of(results.begin(), results.end(), [&](const Loop& l) {
        if (!own || !l.variable.symbol_id()) return false;
        const std::optional<Int> other = stride_of(first_axis, l.variable);
        return other && typical(*other) > typical(*own);
    });
}

// A sum of products over the places of images, the first loop, for results that no image has a part of to
// itself. Filters too may have the first loop as their first axis, of channels: then it is not the first one
// of the images.
bool over_images(const Nest& nest) {
    constexpr std::size_t image_axes = 4, fewest_loops = 2;
    const Int& loop = nest.reduced[0].variable;
    const std::uint64_t image = loop.symbol_id();
    if (!adds_products(nest) || nest.reduced.size() < fewest_loops || !image) return false;
    bool all = true, some = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (s.at.size() < image_axes) {
            const bool moves =
                std::any_of(s.at.begin(), s.at.end(), [&](const Int& x) { return depends_on(x, image); });
            all = all && (!moves || moves_furthest_with(loop, s.at[0], nest.parallel));
            return;
        }
        some = true;
        all = all && depends_on(s.at[0], image) &&
              std::none_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& l) {
                  return l.variable.symbol_id() && depends_on(s.at[0], l.variable.symbol_id());
              });
    });
    return some && all &&
           std::all_of(nest.body->arguments.begin(), nest.body->arguments.end(),
                       [&](const Scalar& f) { return varies(nest, f, nest.reduced[0].variable); });
}

// A sum of products over windows: what some result reads of an image moves with the result and with the
// terms. Results share what they read, in tiles that stay in registers over the whole sum.
bool over_windows(const Nest& nest) {
    if (!adds_products(nest)) return false;
    const auto moves_with = [](const Int& x, const std::vector<Loop>& loops) {
        return std::any_of(loops.begin(), loops.end(), [&](const Loop& l) {
            return l.variable.symbol_id() && depends_on(x, l.variable.symbol_id());
        });
    };
    bool found = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        found = found || std::any_of(s.at.begin(), s.at.end(), [&](const Int& x) {
                    return moves_with(x, nest.parallel) && moves_with(x, nest.reduced);
                });
    });
    return found;
}

// A sum of products, of which one factor lies along the results in memory, and across the terms: lanes of
// terms would gather it. What is the same for all terms of a result, as a mean of each row, is no reason.
bool lies_across(const Nest& nest, const Int& result, const Int& term, const ShapeOf& shape_of) {
    if (!adds_products(nest) || !result.symbol_id()) return false;
    return std::any_of(nest.body->arguments.begin(), nest.body->arguments.end(), [&](const Scalar& factor) {
        if (!varies(nest, factor, result) || !varies(nest, factor, term)) return false;
        bool across = false;
        for_each_read(factor, [&](const ScalarNode& s) {
            const std::optional<Int> by_result = stride_of(offset_of(s, shape_of), result),
                                     by_term = stride_of(offset_of(s, shape_of), term);
            const bool serves_lanes = by_term && (by_term->is(1) || by_term->is(0));
            across = across || (by_result && by_result->is(1) && !serves_lanes);
        });
        return across;
    });
}

// Elements lie along the results in memory. Those that all terms of the last loop share, as a number for each
// row of each plane is, are no reason where others lie along these terms, in each result elsewhere.
bool lies_along(const Nest& nest, const Int& result, const Loop& last, const ShapeOf& shape_of) {
    if (!unit_stride(nest, result, shape_of)) return false;
    bool moves = false, along_terms = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const std::optional<Int> by_result = stride_of(offset_of(s, shape_of), result),
                                 by_term = stride_of(offset_of(s, shape_of), last.variable);
        moves = moves || (by_result && by_result->is(1) && !(by_term && by_term->is(0)));
        along_terms = along_terms || (by_term && by_term->is(1) && !(by_result && by_result->is(0)));
    });
    return moves || !along_terms || typical(last.extent) < lane_count;
}

// A product of matrices of which a factor steps through memory along the terms, as transposed slices of
// filters do: each lane would load an element by itself. Copies of it serve the lanes of many results.
bool has_strided_factor(const Nest& nest, const Int& term, const ShapeOf& shape_of) {
    if (!is_matrix_product(nest)) return false;
    bool strided = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), term);
        strided = strided || (step && !step->is(0) && !step->is(1));
    });
    return strided;
}

// Products of matrices of which both factors lie along the terms: lanes of terms would have to be added up
// for each result. A copy of one factor that lies the other way serves all rows, where it is small beside
// them.
bool lies_along_terms(const Nest& nest, const Int& term, const ShapeOf& shape_of) {
    constexpr double fewest = 8, many_results = 64, small_factor = 2048;
    constexpr std::int64_t most = 32;  // of a batch; larger ones are a library's, and share terms on a GPU
    if (!adds_products(nest) || nest.reduced.size() != 1 || !nest.guards.empty()) return false;
    const ProductAxes axes = product_axes(nest);
    if (axes.rows.size() != 1 || axes.columns.size() != 1) return false;
    const Int &a = axes.rows[0].extent, &b = axes.columns[0].extent;
    if (axes.common.empty()) {
        const Int& columns = nest.parallel.back().extent;  // the lanes
        const double rows = typical(a) * typical(b) / typical(columns),
                     terms = typical(nest.reduced[0].extent);
        if (rows < many_results || typical(columns) * terms > small_factor ||
            (typical(columns) < fewest && terms >= 2.0 * lane_count))
            return false;
    } else if (std::min(typical(a), typical(b)) < fewest || std::max(a.range().high, b.range().high) > most) {
        return false;
    }
    bool all = true;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), term);
        all = all && step && step->is(1);
    });
    return all;
}

// Loops of which only the last one is long enough to be cut into chunks for many cores, as that over the
// places of a plane is within one over colours.
bool is_cut_last(const Nest& nest) {
    const Int& last = nest.reduced.back().extent;
    double before = 1;
    for (std::size_t i = 0; i + 1 < nest.reduced.size(); ++i) {
        if (!nest.reduced[i].extent.is_constant()) return false;
        before *= static_cast<double>(nest.reduced[i].extent.constant());
    }
    return before < lane_count && last.is_constant() && last.constant() >= 2 * row_length &&
           nest.guards.empty() && static_cast<double>(last.constant()) * before >= always_split &&
           !is_matrix_product(nest) && !over_windows(nest) && !over_images(nest);
}

// A product of matrices that are small but for the axis that is summed up, of which only a call knows how
// long it is: all rows of a data set, or a few. More results than few; a library multiplies many.
bool is_product_of_any_length(const Nest& nest) {
    constexpr double most_results = 1 << 13;
    return nest.reduced.size() == 1 && adds_products(nest) && nest.guards.empty() && nest.lets.empty() &&
           nest.reduced[0].extent.range().high > INT32_MAX && !few(nest.parallel) && known(nest.parallel) &&
           typical_count(nest.parallel) <= most_results && !looks_for_own_keys(nest);
}

// Such a product in rows.
bool has_rows_of_any_length(const Nest& nest) {
    return nest.reduced.size() == 2 && adds_products(nest) && nest.guards.empty() && nest.lets.empty() &&
           nest.reduced[0].extent.range().high > INT32_MAX / row_of_product &&
           nest.reduced[1].extent.range().high == row_of_product;
}

// The loop of which chunks have some iterations each, where the first one is too short for many of them.
Nest longest_first(const Nest& nest) {
    constexpr std::size_t fewest_loops = 3;
    if (nest.reduced.size() < fewest_loops || !nest.guards.empty() || is_matrix_product(nest) ||
        over_windows(nest) || over_images(nest))
        return nest;
    std::size_t longest = 0;
    for (std::size_t i = 0; i + 1 < nest.reduced.size(); ++i) {
        const Int &extent = nest.reduced[i].extent, &most = nest.reduced[longest].extent;
        if (!extent.is_constant()) return nest;
        if (extent.constant() > most.constant()) longest = i;
    }
    if (longest == 0 || nest.reduced[0].extent.constant() >= lane_count) return nest;
    Nest r = nest;
    std::swap(r.reduced[0], r.reduced[longest]);
    return r;
}

}  // namespace

bool has_many_rows(const Nest& nest, const ReductionTree& tree) {
    return tree.split && !tree.by_rows && tree.lanes > 1 && !nest.parallel.empty() &&
           typical(nest.parallel[0].extent) >= many_rows;
}

Nest exact_sum(const Nest& nest) {
    constexpr int most_bits = 16;
    const Scalar& body = nest.body;
    if (nest.combine != Combine::sum || sums_runs(nest) || !is_float(nest.accumulator) ||
        body->kind != ScalarNode::Kind::cast || body->dtype != nest.accumulator)
        return nest;
    const DType small = body->arguments[0]->dtype;
    if ((!is_integer(small) && small != DType::boolean) || bits_of(small) > most_bits) return nest;
    double count = 1;
    for (const Loop& l : nest.reduced)
        count *= static_cast<double>(std::max<std::int64_t>(1, l.extent.range().high));
    Nest r = nest;
    r.accumulator = std::ldexp(count, bits_of(small)) < INT32_MAX ? DType::int32 : DType::int64;
    r.body = scalar_cast(r.accumulator, body->arguments[0]);
    return r;
}

Nest in_rows(const Nest& nest, bool of_data) {
    if (nest.combine == Combine::none || gives_places(nest.combine) || nest.reduced.empty() ||
        sums_runs(nest) || is_prefix(nest) || adds_at_places(nest))
        return nest;
    const bool alone = nest.reduced.size() == 1, any_length = of_data && is_product_of_any_length(nest);
    if (!few(nest.parallel) && !any_length) return nest;
    const Loop whole = nest.reduced.back();
    if (!alone && !is_cut_last(nest)) return longest_first(nest);
    if (alone && whole.extent.range().high < always_split) return nest;
    const std::int64_t length = any_length ? row_of_product : row_length;
    const Loop rows = make_loop("row", ceildiv(whole.extent, length));
    const Int inside = Int::symbol("inside", {0, length - 1});
    Nest r = substitute(nest, {{whole.variable.symbol_id(), rows.variable * length + inside}});
    r.reduced.back() = {inside, min(length, whole.extent - rows.variable * length)};
    r.reduced.insert(r.reduced.begin(), rows);
    return r;
}

ReductionTree tree_of(const Nest& nest, const ShapeOf& shape_of) {
    ReductionTree tree;
    const bool position = is_position(nest.combine);
    if (nest.combine == Combine::none || nest.reduced.empty() || (position && !nest.guards.empty()) ||
        is_order(nest.combine) || sums_runs(nest) || is_prefix(nest) || adds_at_places(nest))
        return tree;
    const double results = typical_count(nest.parallel), length = terms_of_result(nest);
    const Loop& last = nest.reduced.back();
    const double first = typical(nest.reduced[0].extent), rest = length / std::max(first, 1.0);
    const bool long_sum =
        length >= long_reduction && (results * length >= worth_splitting || length >= always_split);
    // Sorted keys give the same bits, as long as terms that are no row's own change no place in the order.
    if (looks_for_own_keys(nest) && !(few(nest.parallel) && long_sum)) return tree;
    const bool gathers = at_unknown_places(nest, last.variable);
    const bool vector_of_results =
        std::any_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& l) {
            const double extent = typical(l.extent);
            return (extent >= 8 && lies_along(nest, l.variable, last, shape_of)) ||
                   (extent >= 2 && lies_across(nest, l.variable, last.variable, shape_of));
        });
    // Lanes of filters serve every place of an image, however wide the filters are.
    const bool filters_in_lanes = over_windows(nest) && filters_axis(nest);
    const bool channels_in_lanes =
        typical(last.extent) >= lane_count && has_interleaved_channels(nest, shape_of);
    if (channels_in_lanes)
        tree.lanes = lane_count;
    else if (!gathers && !vector_of_results && !filters_in_lanes &&
             !lies_along_terms(nest, last.variable, shape_of) &&
             !has_strided_factor(nest, last.variable, shape_of) && !asks_for_multiple(nest, last.variable) &&
             typical(last.extent) >= lane_count &&
             (unit_stride(nest, last.variable, shape_of) ||
              (!is_matrix_product(nest) && short_stride(nest, last.variable, shape_of))))
        tree.lanes = lane_count;
    const bool whole_rows = tree.lanes == 1 && vector_of_results && !adds_products(nest) &&
                            known(nest.parallel) && results <= results_of_whole_rows;
    const bool few_long = few(nest.parallel) ? long_sum || may_be_long(nest, rest) : whole_rows && long_sum;
    if (position) {
        if (tree.lanes > 1 && last.extent.range().high >= worth_groups) tree.groups = group_count;
        return tree;
    }
    // One loop in lanes is not cut: in_rows() made two of those that are worth chunks.
    const bool can_be_cut = tree.lanes == 1 || nest.reduced.size() > 1;
    if (can_be_cut && (few_long || (few(nest.parallel) && gathers))) {
        const double most = std::clamp(partial_results / results, 1.0, static_cast<double>(most_chunks));
        tree.split = true;
        tree.finish_lanes = lane_count;
        // Channels that have lanes of their own too are as many threads as lanes of terms would be.
        const int waiting = channels_in_lanes && vector_of_results ? 1 : tree.lanes;
        const double fewest = long_sum || gathers ? lane_length * waiting : double{row_length};
        tree.chunk = max(std::max<std::int64_t>(1, static_cast<std::int64_t>(fewest / rest)),
                         ceildiv(nest.reduced[0].extent, static_cast<std::int64_t>(most)));
    } else if (!few(nest.parallel) && known(nest.parallel) && nest.reduced.size() > 1 &&
               (results <= many_results || (results <= many_filters && over_images(nest))) &&
               (gathers || has_rows_of_any_length(nest) ||
                (length >= long_row * first &&
                 ((first >= fewest_rows_of_tree && length >= long_reduction && !over_windows(nest)) ||
                  (first >= fewest_images && length >= short_sum && over_images(nest)))))) {
        const auto chunks = static_cast<std::int64_t>(std::clamp(partial_results / results, 2.0, 1024.0));
        tree.split = tree.by_rows = true;
        tree.chunk = ceildiv(nest.reduced[0].extent, chunks);
    }
    // A few channels wait for nothing: each lane has as many sums.
    constexpr std::int64_t few_channels = 4;
    const bool of_channels =
        channels_in_lanes &&
        nest.parallel[static_cast<std::size_t>(channel_loop(nest))].extent.constant() >= few_channels;
    // Additions of integers wait for nothing.
    const bool integers_alone =
        !is_float(nest.accumulator) && results >= fewest_side_by_side && results < many_rows;
    const bool side_by_side =
        tree.split && (integers_alone || results_side_by_side(nest) >= fewest_side_by_side);
    if (tree.lanes > 1 && !side_by_side && !of_channels && !tree.by_rows &&
        typical(last.extent) >= double{worth_groups})
        tree.groups = group_count;
    return tree;
}

ReductionTree tree_of_threads(const Nest& nest, const ShapeOf& shape_of) {
    if (is_position(nest.combine)) return {};
    ReductionTree tree = tree_of(nest, shape_of);
    const bool exact = nest.combine == Combine::sum && !is_float(nest.accumulator) && tree.lanes > 1;
    if (tree.split || !exact || nest.reduced.size() < 2 || !few(nest.parallel) ||
        terms_of_result(nest) < long_reduction)
        return tree;
    tree.split = true;
    tree.finish_lanes = lane_count;
    tree.chunk = ceildiv(nest.reduced[0].extent, most_chunks);
    return tree;
}

}  // namespace bitale
