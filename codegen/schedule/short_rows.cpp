#include "codegen/schedule/short_rows.h"

#include <algorithm>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::int64_t lane_block = rows_side_by_side;
constexpr double longest = 1024;
constexpr std::int64_t fewest_rows = 8, element = 4;

class ShortRows {
  public:
    ShortRows(const Member& member, KernelBuilder& builder, TileUse use)
        : member_(member), nest_(member.nest), builder_(builder), use_(use), acc_(member_, builder, {}) {}

    Stmts run() {
        LoopBuilder loops(nest_);
        return loops.nest(
            {nest_.parallel.begin(), nest_.parallel.end() - 1},
            [&](LoopBuilder& inner) { return blocks(inner); }, Binding::serial,
            nest_.parallel.back().variable);
    }

  private:
    // A place of the task's tile and its counterpart on the other side.
    struct Turned {
        int from, parts, across;
        DType dtype;
    };

    Stmts blocks(LoopBuilder& inner) {
        const Loop& last = nest_.parallel.back();
        const bool one = last.extent.range().high <= lane_block;
        const Int first = one ? Int(0) : Int::symbol("rows", {0, last.extent.range().high}),
                  count = one ? last.extent : min(lane_block, last.extent - first),
                  row = Int::symbol("row", {0, lane_block - 1}),
                  lane = Int::symbol("lane", {0, lane_block - 1}),
                  point = Int::symbol("point", {0, lane_block - 1});
        std::vector<Turned> turned{made(acc_.place())};
        if (acc_.index_place() >= 0) turned.push_back(made(acc_.index_place()));

        Stmts each = acc_.declare_all(), keep, body;
        append(each, acc_.clear({}));
        append(each,
               acc_.combine(inner, nest_.reduced, {Copy{{}, {{last.variable.symbol_id(), first + row}}}},
                            [](Stmts s) { return s; }));
        append(each, acc_.finish({}, lane_block));
        for (const Turned& t : turned) {
            body.push_back(declare(t.parts));
            keep.push_back(set(t.parts, {row, lane}, place_read(t.dtype, t.from, {lane})));
        }
        each.push_back(loop(lane, 0, lane_block, Binding::simd, std::move(keep)));
        body.push_back(loop(row, 0, count, Binding::serial, std::move(each)));
        const Scalar result = nest_.combine == Combine::sum && turned.back().dtype == DType::float32
                                  ? added_up(turned.back(), point, body)
                                  : across_rows(turned, count, point, body);
        body.push_back(loop(point, 0, count, Binding::simd,
                            substitute(stored(result), {{last.variable.symbol_id(), first + point}})));
        return one ? body : Stmts{loop(first, 0, last.extent, Binding::serial, std::move(body), lane_block)};
    }

    // Shuffles that transpose the parts add them, too.
    Scalar added_up(const Turned& rows, const Int& point, Stmts& body) {
        const int sums = builder_.scratch(Place::Scope::private_, rows.dtype, {Int(lane_block)});
        body.push_back(declare(sums));
        body.push_back(add_up_rows(sums, rows.parts));
        return place_read(rows.dtype, sums, {point});
    }

    Scalar across_rows(const std::vector<Turned>& turned, const Int& count, const Int& point, Stmts& body) {
        const Int row = Int::symbol("row", {0, lane_block - 1}),
                  other = Int::symbol("column", {0, lane_block - 1});
        for (const Turned& t : turned) {
            body.push_back(declare(t.across));
            body.push_back(
                loop(row, 0, count, Binding::turned,
                     {loop(other, 0, lane_block, Binding::serial,
                           {set(t.across, {other, row}, place_read(t.dtype, t.parts, {row, other}))})}));
        }
        for (std::int64_t w = lane_block / 2; w >= 1; w /= 2) {
            const Int l = w > 1 ? Int::symbol("l", {0, w - 1}) : Int(0);
            body.push_back(
                loop(l, 0, w, Binding::unrolled,
                     {loop(point, 0, lane_block, Binding::simd, {meet(turned, l, l + w, point)})}));
        }
        return place_read(turned.back().dtype, turned.back().across, {Int(0), point});
    }

    Turned made(int from) {
        const DType dtype = builder_.ir.places[static_cast<std::size_t>(from)].dtype;
        const auto scratch = [&] {
            return builder_.scratch(Place::Scope::private_, dtype, {Int(lane_block), Int(lane_block)});
        };
        const int parts = scratch();
        return {from, parts, scratch(), dtype};
    }

    Stmt meet(const std::vector<Turned>& turned, const Int& to, const Int& from, const Int& point) const {
        const Turned& values = turned.front();
        Stmt s = accumulate(values.across, {to, point}, nest_.combine,
                            place_read(values.dtype, values.across, {from, point}));
        if (turned.size() > 1) {
            s.number = turned.back().across;
            s.position = place_read(turned.back().dtype, turned.back().across, {from, point});
        }
        return s;
    }

    Stmts stored(const Scalar& value) const {
        if (use_ == TileUse::fresh) return stores(member_, value);
        const Destination& to = member_.destinations.front();
        return {accumulate(to.place, to.at, nest_.combine, value)};
    }

    const Member& member_;
    const Nest& nest_;
    KernelBuilder& builder_;
    const TileUse use_;
    const Accumulation acc_;
};

}  // namespace

bool is_short_row(const Nest& nest, const ReductionTree& tree) {
    return tree.lanes == lane_block && (!tree.split || tree.by_rows) &&
           typical_count(nest.reduced) <= longest && nest.guards.empty() && nest.lets.empty() &&
           bytes_of(accumulator_of(nest)) == element;
}

std::optional<Stmts> schedule_short_rows(const Member& member, KernelBuilder& builder, TileUse use) {
    const Nest& nest = member.nest;
    if (builder.short_text || !is_short_row(nest, member.tree) || nest.parallel.empty()) return {};
    const Loop& last = nest.parallel.back();
    if (!last.variable.symbol_id() || last.extent.range().high < fewest_rows) return {};
    return ShortRows(member, builder, use).run();
}

}  // namespace bitale
