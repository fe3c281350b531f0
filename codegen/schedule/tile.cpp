#include "codegen/schedule/tile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"

namespace bitale {

namespace {

// Partial results of a block of lanes stay in registers or L1 over the whole reduction. Without rows that
// share what is loaded, memory decides, which is read faster by longer runs.
constexpr std::int64_t block_of_lanes = 64, block_without_rows = 256, widest_tile = 12,
                       most_written_out = 128, longest_row_of_lane = 16;

struct Tile {
    int axis = -1;  // the second parallel loop, -1: none
    std::int64_t height = 1;
};

// Some factor of the product, or else something that is read in lanes, is the same for all points of the
// loop.
bool shares_reads(const Nest& nest, std::uint64_t lanes, std::uint64_t id) {
    const auto mentions = [](const ScalarNode& s, std::uint64_t symbol) {
        return std::any_of(s.at.begin(), s.at.end(), [&](const Int& x) { return depends_on(x, symbol); });
    };
    bool shared = false;
    for (const Scalar& factor : nest.body->arguments) {
        bool mentioned = false;
        for_each_read(factor, [&](const ScalarNode& s) {
            const bool here = mentions(s, id);
            mentioned = mentioned || here;
            shared = shared || (!here && mentions(s, lanes));
        });
        shared = shared || !mentioned;
    }
    return shared;
}

// A loop of known length whose points share what they read; its largest divisor that fits.
Tile second_axis(const Nest& nest, int vector, std::int64_t points) {
    Tile best;
    if (!adds_products(nest)) return best;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        const std::uint64_t id = l.variable.symbol_id();
        if (static_cast<int>(i) == vector || !id || !l.extent.is_constant()) continue;
        const std::uint64_t lanes = nest.parallel[static_cast<std::size_t>(vector)].variable.symbol_id();
        const bool shared = shares_reads(nest, lanes, id);
        const bool guarded = std::any_of(nest.guards.begin(), nest.guards.end(),
                                         [&](const Guard& g) { return depends_on(g.value, id); });
        if (!shared || guarded || !nest.lets.empty()) continue;
        std::int64_t height = std::min(widest_tile, most_written_out / std::max<std::int64_t>(points, 1));
        while (height > 1 && l.extent.constant() % height != 0) --height;
        if (height > best.height) best = {static_cast<int>(i), height};
    }
    return best;
}

Stmts stores(const Member& member, TileUse use, const Scalar& value, const Substitution& with) {
    Stmts body;
    if (use != TileUse::fresh) {
        const Destination& to = member.destinations.front();
        return substitute(Stmts{accumulate(to.place, to.at, member.nest.combine, value)}, with);
    }
    for (const Destination& d : member.destinations)
        append(body, substitute(Stmts{set(d.place, d.at, scalar_cast(member.nest.dtype, value))}, with));
    return body;
}

class Tiler {
  public:
    Tiler(const Member& member, KernelBuilder& builder, int vector, TileUse use)
        : member_(member),
          use_(use),
          builder_(builder),
          nest_(member.nest),
          lanes_(nest_.parallel[vector]),
          points_(nest_.lets.empty() ? points_of(nest_.reduced) : std::vector<Substitution>{}),
          tile_(builder.short_text ? Tile{}
                                   : second_axis(nest_, vector, static_cast<std::int64_t>(points_.size()))) {
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (static_cast<int>(i) != vector && static_cast<int>(i) != tile_.axis)
                others_.push_back(nest_.parallel[i]);
    }

    Stmts run() { return points_.empty() ? in_blocks() : in_registers(); }

    // Takes the terms of the other members along.
    std::optional<Stmts> run_with(const std::vector<const Member*>& others) {
        if (!points_.empty() || tile_.axis >= 0) return {};
        along_ = others;
        return in_blocks();
    }

  private:
    // The rows of the tile are written out: `body` gets the loop variable's value for each of them.
    Stmts over_tile(const std::function<Stmts(const std::vector<Substitution>&)>& body) const {
        if (tile_.axis < 0) return body({{}});
        const Loop& l = nest_.parallel[tile_.axis];
        const bool single = l.extent.is(tile_.height);
        const Int block = single ? Int(0) : Int::symbol("rows", {0, l.extent.constant() - tile_.height});
        std::vector<Substitution> rows;
        for (std::int64_t i = 0; i < tile_.height; ++i) rows.push_back({{l.variable.symbol_id(), block + i}});
        Stmts inside = body(rows);
        return single ? inside
                      : Stmts{loop(block, 0, l.extent, Binding::serial, std::move(inside), tile_.height)};
    }

    // A short reduction: every point written out, the partial results are scalars of the lane.
    Stmts in_registers() {
        Nest unguarded = nest_;
        unguarded.guards.clear();
        LoopBuilder loops(unguarded);
        return loops.nest(others_, [&](LoopBuilder&) {
            return over_tile([&](const std::vector<Substitution>& rows) {
                Stmts body;
                std::vector<Accumulation> results;
                for (std::size_t i = 0; i < rows.size(); ++i) {
                    results.emplace_back(member_, builder_, Shape{});
                    append(body, results[i].declare_all());
                    append(body, results[i].clear({}));
                }
                for (const Substitution& point : points_)
                    for (std::size_t i = 0; i < rows.size(); ++i)
                        append(body, results[i].combine_point(point, {{}, rows[i]}));
                for (std::size_t i = 0; i < rows.size(); ++i)
                    append(body, stores(member_, use_, results[i].result({}), rows[i]));
                return Stmts{loop(lanes_.variable, 0, lanes_.extent, Binding::simd, std::move(body))};
            });
        });
    }

    // Blocks of lanes; the reduction runs outside the loop over the lanes of a block.
    Stmts in_blocks() {
        LoopBuilder loops(nest_);
        return loops.nest(others_, [&](LoopBuilder& inner) {
            return over_tile([&](const std::vector<Substitution>& rows) { return block(inner, rows); });
        });
    }

    // Whole blocks have loops of known length, whose partial results stay in registers for several turns.
    Stmts block(const LoopBuilder& inner, const std::vector<Substitution>& rows) {
        const Int& extent = lanes_.extent;
        const bool wide = tile_.axis < 0 && extent.range().high > block_of_lanes;
        const std::int64_t most = wide ? block_without_rows : block_of_lanes;
        if (extent.is_constant() && extent.constant() <= most)
            return block(inner, rows, 0, extent.constant(), extent);
        const std::int64_t width = std::min(most, extent.range().high);
        const auto blocks = [&](const Int& first, const Int& end, const std::optional<std::int64_t>& length) {
            const Int begin = Int::symbol("block", {0, extent.range().high});
            const Int count = length ? Int(*length) : min(width, end - begin);
            return loop(begin, first, end, Binding::serial, block(inner, rows, begin, width, count), width);
        };
        if (builder_.short_text) return {blocks(0, extent, {})};
        const Int whole = floordiv(extent, width) * width;
        Stmts body{blocks(0, whole, width)};
        if (!(extent - whole).is(0)) body.push_back(blocks(whole, extent, {}));
        return body;
    }

    // `count` of at most `width` lanes from `begin` on.
    Stmts block(LoopBuilder inner, const std::vector<Substitution>& rows, const Int& begin,
                std::int64_t width, const Int& count) {
        const Int lane = Int::symbol("lane", {0, width - 1});
        const Substitution here{{lanes_.variable.symbol_id(), begin + lane}};
        const Accumulation acc(member_, builder_, {Int(static_cast<std::int64_t>(rows.size())), Int(width)});
        const auto over_lanes = [&](const Stmts& s) {
            return Stmts{loop(lane, 0, count, Binding::simd, inner.substituted(s, here))};
        };
        std::vector<Copy> copies;
        Stmts clear, store;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::vector<Int> at{Int(static_cast<std::int64_t>(i)), lane};
            copies.push_back({at, rows[i]});
            append(clear, acc.clear(at));
            append(store, stores(member_, use_, acc.result(at), rows[i]));
        }
        Stmts body = acc.declare_all();
        std::vector<Accumulation> others;
        for (const Member* member : along_) {
            others.emplace_back(*member, builder_, Shape{1, Int(width)});
            append(body, others.back().declare_all());
            append(clear, others.back().clear({0, lane}));
            append(store, stores(*member, use_, others.back().result({0, lane}), {}));
        }
        std::vector<const Accumulation*> all;
        all.reserve(others.size());
        for (const Accumulation& other : others) all.push_back(&other);
        append(body, over_lanes(clear));
        WrittenOut written{.of_any_length = count.is_constant()};
        if (is_row_of_lane()) written.all_of = longest_row_of_lane;
        append(body, acc.combine(inner, nest_.reduced, copies, over_lanes, written, all));
        append(body, over_lanes(store));
        return body;
    }

    // The last loop of the sum walks along a short row, and lanes from row to row: these are loaded whole
    // (kernel/turned_reads.h).
    bool is_row_of_lane() const {
        if (nest_.reduced.empty()) return false;
        const Loop& last = nest_.reduced.back();
        bool found = false;
        for_each_read(nest_.body, [&](const ScalarNode& s) {
            const Int offset = offset_of(s, builder_.shapes());
            const std::optional<Int> along = stride_of(offset, last.variable),
                                     across = stride_of(offset, lanes_.variable);
            found = found || (along && across && along->is(1) && *across == last.extent);
        });
        return found;
    }

    const Member& member_;
    const TileUse use_;
    KernelBuilder& builder_;
    const Nest& nest_;
    const Loop lanes_;
    const std::vector<Substitution> points_;
    const Tile tile_;
    std::vector<Loop> others_;
    std::vector<const Member*> along_;
};

}  // namespace

std::optional<Stmts> schedule_tiles_together(const std::vector<Member>& members, KernelBuilder& builder,
                                             int vector) {
    std::vector<const Member*> others;
    for (std::size_t k = 1; k < members.size(); ++k) others.push_back(&members[k]);
    return Tiler(members[0], builder, vector, TileUse::fresh).run_with(others);
}

Stmts schedule_tile(const Member& member, KernelBuilder& builder, int vector, TileUse use) {
    return Tiler(member, builder, vector, use).run();
}

}  // namespace bitale
