#include "codegen/schedule/member.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/byte_columns.h"
#include "codegen/schedule/bytes.h"
#include "codegen/schedule/cpu.h"
#include "codegen/schedule/interleaved.h"
#include "codegen/schedule/join.h"
#include "codegen/schedule/lanes.h"
#include "codegen/schedule/looked_up_rows.h"
#include "codegen/schedule/panels.h"
#include "codegen/schedule/planes.h"
#include "codegen/schedule/pointwise.h"
#include "codegen/schedule/prefix.h"
#include "codegen/schedule/register_windows.h"
#include "codegen/schedule/scatter.h"
#include "codegen/schedule/shared_lanes.h"
#include "codegen/schedule/short_rows.h"
#include "codegen/schedule/tile.h"
#include "codegen/schedule/turned_finish.h"
#include "codegen/schedule/windows.h"
#include "codegen/schedule/winners.h"

namespace bitale {

Scalar neutral(Combine combine, DType dtype) {
    switch (combine) {
        case Combine::prod:
        case Combine::all: return scalar_integer(dtype, 1);
        case Combine::max:
        case Combine::argmax: return lowest_of(dtype);
        case Combine::min:
        case Combine::argmin: return highest_of(dtype);
        case Combine::sum:
        case Combine::any:
        case Combine::order:
        case Combine::order_down:
        case Combine::affine:
        case Combine::none: break;
    }
    return scalar_integer(dtype, 0);
}

DType accumulator_of(const Nest& nest) {
    switch (nest.combine) {
        case Combine::any:
        case Combine::all: return DType::boolean;
        case Combine::argmax:
        case Combine::argmin: return nest.body->dtype;
        default: return nest.accumulator;
    }
}

namespace {

// Long rows of other results lie between those of neighbouring lanes: host compilers load all of a row to
// choose from.
bool is_far(const Nest& nest, const Loop& lanes, const ShapeOf& shape_of) {
    constexpr std::int64_t near = 16;
    if (!points_of(nest.reduced).empty()) return false;
    bool far = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), lanes.variable);
        far = far || (step && (step->range().low > near || step->range().high < -near));
    });
    return far;
}

// Neighbours lie apart along every axis, as the pixels of interleaved channels do, and each element takes
// long: lanes that are loaded one by one still share what is computed. The longest loop along which all that
// is read moves by small known steps.
int loop_of_loaded_lanes(const Nest& nest, const ShapeOf& shape_of) {
    constexpr int long_enough = 8;
    constexpr std::int64_t near = 16;
    constexpr double fewest = 16;
    int best = -1;
    if (points_of(nest.reduced).empty() || !nest.lets.empty() || cost_of(nest) < long_enough) return best;
    double longest = fewest;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        const double extent = typical(l.extent);
        if (!l.variable.symbol_id() || extent < longest) continue;
        bool moves = false, apart = true;
        for_each_read(nest, [&](const ScalarNode& s) {
            const std::optional<Int> step = stride_of(offset_of(s, shape_of), l.variable);
            apart = apart && step && step->is_constant() && std::abs(step->constant()) <= near;
            moves = moves || (step && !step->is(0));
        });
        if (!moves || !apart) continue;
        longest = extent;
        best = static_cast<int>(i);
    }
    return best;
}

}  // namespace

int vector_loop(const Nest& nest, const ShapeOf& shape_of) {
    int best = -1;
    double best_score = 0;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        const double extent = typical(l.extent);
        if (!l.variable.symbol_id() || extent < 4) continue;
        const int near = unit_stride_reads(nest, l.variable, shape_of);
        if (near == 0 && is_far(nest, l, shape_of)) continue;
        const double lanes = 16, filled = extent / (std::ceil(extent / lanes) * lanes);
        const int of_reads = looks_up_rows(nest, l.variable, shape_of) ? 0 : near;
        const double score = (of_reads + (i + 1 == nest.parallel.size() ? 0.5 : 0)) * filled;
        if (score > best_score) {
            best = static_cast<int>(i);
            best_score = score;
        }
    }
    return best < 0 && nest.combine != Combine::none ? loop_of_loaded_lanes(nest, shape_of) : best;
}

int longer_lanes(const Nest& nest, const ShapeOf& shape_of) {
    constexpr double long_enough = 32;
    constexpr std::int64_t fewest_lanes = 8, shortest_run = 64;
    if (nest.parallel.empty() || nest.combine != Combine::none || !nest.lets.empty() || !nest.guards.empty())
        return -1;
    const Loop& last = nest.parallel.back();
    if (last.extent.range().high >= fewest_lanes || !is_costly(nest) ||
        unit_stride(nest, last.variable, shape_of))
        return -1;
    for (std::size_t i = 0; i + 1 < nest.parallel.size(); ++i)
        if (typical(nest.parallel[i].extent) >= long_enough &&
            unit_stride_in_runs(nest, nest.parallel[i].variable, shortest_run, shape_of))
            return static_cast<int>(i);
    return -1;
}

namespace {

// partial place[at] += the run, around which the loops that are left run.
Stmts add_run(const Nest& nest, const ByteRun& run, LoopBuilder& loops, const std::vector<Loop>& outer,
              KernelBuilder& builder, int place, const std::vector<Int>& at) {
    const int sum = builder.scratch(Place::Scope::private_, DType::int64, {});
    return loops.nest(outer, [&](LoopBuilder& inner) {
        Stmts body{declare(sum), run.mask == 255
                                     ? sum_bytes(sum, run.place, run.at, run.length)
                                     : sum_bits(sum, run.place, run.at, run.length, run.shift, run.mask)};
        const Scalar value = scalar_cast(accumulator_of(nest), place_read(DType::int64, sum, {}));
        body.push_back(accumulate(place, at, Combine::sum, value));
        return inner.guarded(std::move(body));
    });
}

}  // namespace

// Computed once: a second place takes what the first was given, as the first may be what the value reads.
Stmts stores(const Member& member, const Scalar& value) {
    const DType dtype = member.nest.dtype;
    Stmts body;
    for (const Destination& d : member.destinations) {
        const Destination& first = member.destinations.front();
        body.push_back(
            set(d.place, d.at,
                body.empty() ? scalar_cast(dtype, value) : place_read(dtype, first.place, first.at)));
    }
    return body;
}

namespace {

// The last loops over results that are few enough to keep one vector register each.
std::vector<Loop> last_results(const Nest& nest) {
    constexpr std::int64_t registers = 12;
    std::int64_t count = 1;
    std::size_t first = nest.parallel.size();
    while (first > 0) {
        const Loop& l = nest.parallel[first - 1];
        if (!l.extent.is_constant() || count * l.extent.constant() > registers) break;
        if (mentions(nest.guards, l.variable) || mentions(nest.lets, l.variable)) break;
        count *= l.extent.constant();
        --first;
    }
    return {nest.parallel.begin() + static_cast<std::ptrdiff_t>(first), nest.parallel.end()};
}

// All chunks of a reduction in the order of its tree, one after another.
Stmts reduce_in_chunks(const Member& member, KernelBuilder& builder) {
    const DType dtype = accumulator_of(member.nest);
    const Loop whole = member.nest.reduced.front();
    const std::int64_t lanes = member.tree.finish_lanes;
    const Int chunks = ceildiv(whole.extent, member.tree.chunk), chunk = make_loop("chunk", chunks).variable,
              begin = chunk * member.tree.chunk, lane = Int::symbol("lane", {0, lanes - 1});
    const Loop inside = make_loop("row", min(member.tree.chunk, whole.extent - begin));
    Member own = member;
    own.nest = substitute(member.nest, {{whole.variable.symbol_id(), begin + inside.variable}});
    own.nest.reduced.front() = inside;
    LoopBuilder loops(own.nest);
    return loops.nest(
        own.nest.parallel,
        [&](LoopBuilder& inner) {
            const int sums = builder.scratch(Place::Scope::private_, dtype, {Int(lanes)});
            const Accumulation acc(own, builder, {});
            Stmts body{declare(sums), loop(lane, 0, lanes, Binding::simd,
                                           {set(sums, {lane}, neutral(member.nest.combine, dtype))})};
            append(body, inner.nest({{chunk, chunks}}, [&](LoopBuilder& of_chunk) {
                Stmts part = acc.declare_all();
                append(part, acc.clear({}));
                append(part, acc.combine(of_chunk, own.nest.reduced, {Copy{}}, [](Stmts s) { return s; }));
                append(part, acc.finish({}));
                part.push_back(accumulate(sums, {mod(chunk, lanes)}, member.nest.combine, acc.result({})));
                return part;
            }));
            append(body, combine_parts(sums, {}, lanes, member.nest.combine, dtype));
            append(body, stores(member, place_read(dtype, sums, {0})));
            return body;
        },
        Binding::serial, chunk);
}

}  // namespace

Stmts cpu::schedule_pointwise(const Member& member, const Target&, KernelBuilder& builder) {
    if (std::optional<Stmts> planes = schedule_placed_planes(member, builder)) return *std::move(planes);
    return schedule_map(member, builder);
}

std::optional<Stmts> cpu::schedule_with_positions(const Member& member, const Member& also,
                                                  const Target& target, KernelBuilder& builder) {
    if (std::optional<Stmts> planes = schedule_window_planes(member, &also, builder)) return planes;
    return schedule_register_windows(member, &also, target, builder);
}

namespace {

// The last loops over results as copies that are written out.
struct SideBySide {
    std::vector<Loop> looped;
    std::vector<Substitution> points;
};

SideBySide side_by_side(const Nest& nest) {
    const std::vector<Loop> last = last_results(nest);
    return {{nest.parallel.begin(), nest.parallel.end() - std::ssize(last)}, points_of(last)};
}

// A few results at a time, as the coordinates of a point are: each has its own chain of additions.
//     for results: for terms: result 0 += ..., result 1 += ..., result 2 += ...
SideBySide few_side_by_side(const Member& member) {
    constexpr std::size_t most = 4;
    const Nest& nest = member.nest;
    const bool alone = member.tree.lanes > 1 || is_position(nest.combine) || !nest.lets.empty();
    SideBySide results = alone ? SideBySide{} : side_by_side(nest);
    return results.points.empty() || results.points.size() > most ? SideBySide{nest.parallel, {{}}} : results;
}

// By what no other schedule has taken: rows in lanes, results in lanes, or one element after another.
Stmts reduce_in_lanes(const Member& member, const Target& target, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    if (std::optional<Stmts> rows = schedule_shared_lanes(member, target, builder)) return *std::move(rows);
    if (std::optional<Stmts> channels = schedule_interleaved(member, builder)) return *std::move(channels);
    if (std::optional<Stmts> rows = schedule_short_rows(member, builder, TileUse::fresh))
        return *std::move(rows);
    const int v = member.tree.lanes > 1 ? -1 : vector_loop(nest, builder.shapes());
    if (v < 0) {
        LoopBuilder loops(nest);
        const SideBySide results = few_side_by_side(member);
        return loops.nest(results.looped, [&](LoopBuilder& inner) {
            const bool single = results.points.size() == 1;
            const Accumulation acc(member, builder,
                                   single ? Shape{} : Shape{Int(std::ssize(results.points))});
            std::vector<Copy> copies;
            for (const Substitution& point : results.points)
                copies.push_back(
                    {single ? std::vector<Int>{} : std::vector<Int>{Int(std::ssize(copies))}, point});
            Stmts body = acc.declare_all();
            for (const Copy& copy : copies) append(body, acc.clear(copy.at));
            append(body, acc.combine(inner, nest.reduced, copies, [](Stmts s) { return s; }));
            for (const Copy& copy : copies) {
                append(body, acc.finish(copy.at));
                append(body, substitute(stores(member, acc.result(copy.at)), copy.with));
            }
            return body;
        });
    }
    if (is_overlapped(nest, v)) return schedule_overlapped(member, builder);
    return takes_windows(nest) ? schedule_windows(member, builder, v) : schedule_tile(member, builder, v);
}

}  // namespace

Stmts cpu::schedule_reduce(const Member& member, const Target& target, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    if (is_prefix(nest)) return schedule_prefix(member, target, builder);
    if (member.scattered) return schedule_scatter(member, target, builder);
    if (std::optional<Stmts> planes = schedule_window_planes(member, nullptr, builder))
        return *std::move(planes);
    if (std::optional<Stmts> planes = schedule_placed_planes(member, builder)) return *std::move(planes);
    if (std::optional<Stmts> panels = schedule_panels(member, target, builder)) return *std::move(panels);
    if (const std::optional<LanePlan> plan = plan_lanes(member, target, builder, TileUse::fresh))
        return schedule_lanes(*plan, member, builder, TileUse::fresh);
    if (has_one_row(nest))
        if (const std::optional<LanePlan> plan = plan_lanes(member, target, builder, TileUse::fresh, true))
            return schedule_lanes(*plan, member, builder, TileUse::fresh);
    LoopBuilder loops(nest);
    if (const std::optional<ByteRun> run = byte_run(nest, nest.reduced, builder.ir.places)) {
        const int sum = builder.scratch(Place::Scope::private_, accumulator_of(nest), {});
        return loops.nest(nest.parallel, [&](LoopBuilder& inner) {
            Stmts body{declare(sum), set(sum, {}, neutral(Combine::sum, accumulator_of(nest)))};
            append(body, add_run(nest, *run, inner, run->outer, builder, sum, {}));
            append(body, stores(member, place_read(accumulator_of(nest), sum, {})));
            return body;
        });
    }
    if (std::optional<Stmts> columns = schedule_byte_columns(member, builder)) return *std::move(columns);
    if (member.tree.split) return reduce_in_chunks(member, builder);
    if (std::optional<Stmts> windows = schedule_register_windows(member, nullptr, target, builder))
        return *std::move(windows);
    Member own = member;
    join_results(own, builder.ir.places);
    return reduce_in_lanes(own, target, builder);
}

namespace {

// Every iteration of the split loop is reduced in registers and then added to the chunk's partial results.
SplitReduce split_by_rows(const Member& member, KernelBuilder& builder, int partial_place,
                          const std::vector<Loop>& rest, const std::vector<Int>& to) {
    const Nest& nest = member.nest;
    const DType dtype = accumulator_of(nest);
    SplitReduce r;
    LoopBuilder clear(nest, false);
    const auto cleared = [&](LoopBuilder& inner) {
        return inner.substituted({set(partial_place, to, neutral(nest.combine, dtype))});
    };
    r.before = clear.nest(nest.parallel, cleared);
    r.before.push_back(barrier());
    Member row = member;
    row.destinations = {{partial_place, to}};
    row.nest.dtype = dtype;
    row.nest.reduced = rest;
    if (std::optional<Stmts> rows = schedule_short_rows(row, builder, TileUse::added)) {
        r.inside = *std::move(rows);
        return r;
    }
    if (const int v = member.tree.lanes > 1 ? -1 : vector_loop(row.nest, builder.shapes()); v >= 0) {
        r.inside = schedule_tile(row, builder, v, TileUse::added);
        return r;
    }
    const SideBySide results = side_by_side(nest);
    const auto reduced = [&](LoopBuilder& inner) {
        const Accumulation acc(member, builder, {Int(std::ssize(results.points))});
        std::vector<Copy> copies;
        for (const Substitution& point : results.points) copies.push_back({{Int(std::ssize(copies))}, point});
        Stmts body = acc.declare_all();
        for (const Copy& copy : copies) append(body, acc.clear(copy.at));
        append(body, acc.combine(inner, rest, copies, [](Stmts s) { return s; }));
        for (const Copy& copy : copies) {
            append(body, acc.finish(copy.at));
            body.push_back(substitute(Stmts{accumulate(partial_place, to, nest.combine, acc.result(copy.at))},
                                      copy.with)[0]);
        }
        return inner.substituted(body);
    };
    LoopBuilder inside(nest);
    r.inside = inside.nest(results.looped, reduced);
    return r;
}

// The loop over the chunk's rows is outside; the partial results themselves are what is added to.
std::optional<SplitReduce> split_bytes(const Member& member, KernelBuilder& builder,
                                       const std::vector<Loop>& rest, int partial_place, const Int& chunk,
                                       const std::vector<Int>& to) {
    const Nest& nest = member.nest;
    SplitReduce r;
    LoopBuilder clear(nest, false);
    r.before = clear.nest(nest.parallel, [&](LoopBuilder& inner) {
        return inner.substituted({set(partial_place, to, neutral(Combine::sum, accumulator_of(nest)))});
    });
    if (const std::optional<ByteRun> run = byte_run(nest, rest, builder.ir.places)) {
        LoopBuilder inside(nest);
        r.inside = inside.nest(nest.parallel, [&](LoopBuilder& inner) {
            return add_run(nest, *run, inner, run->outer, builder, partial_place, to);
        });
        return r;
    }
    std::optional<Stmts> row = add_row_of_columns(member, builder, partial_place, chunk);
    if (!row) return {};
    r.inside = *std::move(row);
    return r;
}

std::optional<SplitReduce> split_in_lanes(const Member& member, const Target& target, KernelBuilder& builder,
                                          int partial_place, const std::vector<Int>& to) {
    Member row = member;
    row.destinations = {{partial_place, to}};
    row.nest.dtype = row.nest.accumulator;
    row.nest.reduced.erase(row.nest.reduced.begin());
    const TileUse use = member.tree.by_rows ? TileUse::added : TileUse::continued;
    // A chunk of one row is stored, with no zeros before.
    const bool single = member.tree.by_rows && member.tree.chunk.is(1);
    const TileUse of_tile = single ? TileUse::fresh : use;
    const std::optional<LanePlan> plan = plan_lanes(row, target, builder, of_tile);
    const std::optional<WinnersPlan> winners =
        plan ? std::optional<WinnersPlan>() : plan_winners(row, target, builder);
    if (!plan && !winners) return {};
    SplitReduce r;
    const auto zero = [&](LoopBuilder&) {
        return Stmts{set(partial_place, to, neutral(Combine::sum, row.nest.dtype))};
    };
    LoopBuilder clear(member.nest, false);
    if (!plan || !single) r.before = clear.nest(member.nest.parallel, zero, Binding::simd);
    r.inside =
        plan ? schedule_lanes(*plan, row, builder, of_tile) : schedule_winners(*winners, row, builder, use);
    return r;
}

}  // namespace

SplitReduce cpu::schedule_split(const Member& member, const Target& target, KernelBuilder& builder,
                                int partial_place, const Int& chunk) {
    const Nest& nest = member.nest;
    const std::vector<Loop> parallel = in_order_of_lanes(nest, builder.shapes());
    Shape results;
    std::vector<Int> at, to{chunk};
    for (const Loop& l : nest.parallel) to.push_back(l.variable);
    for (const Loop& l : parallel) {
        results.push_back(l.extent);
        at.push_back(l.variable);
    }
    const std::vector<Loop> rest(nest.reduced.begin() + 1, nest.reduced.end());
    if (std::optional<SplitReduce> r = split_bytes(member, builder, rest, partial_place, chunk, to))
        return *r;
    if (std::optional<SplitReduce> r = split_in_lanes(member, target, builder, partial_place, to)) return *r;
    if (member.tree.by_rows) return split_by_rows(member, builder, partial_place, rest, to);
    if (auto channels = split_interleaved(member, builder, partial_place, to)) return *std::move(channels);
    Accumulation acc(member, builder, results);
    builder.ir.places[acc.place()].scope = Place::Scope::local;
    const auto over_results = [&](LoopBuilder& loops, const std::function<Stmts(LoopBuilder&)>& body) {
        return loops.nest(parallel, body, member.tree.lanes > 1 ? Binding::serial : Binding::simd);
    };
    SplitReduce r;
    r.before = acc.declare_all();
    LoopBuilder clear(nest, false);
    append(r.before, over_results(clear, [&](LoopBuilder&) { return acc.clear(at); }));
    LoopBuilder inside(nest);
    if (member.tree.lanes > 1) {
        // Several results side by side: each has its own chain of additions, and they share operands.
        const SideBySide side = side_by_side(nest);
        std::vector<Copy> copies;
        for (const Substitution& point : side.points) {
            Copy copy{at, point};
            for (Int& x : copy.at) x = substitute(x, point);
            copies.push_back(std::move(copy));
        }
        r.inside = inside.nest(side.looped, [&](LoopBuilder& inner) {
            return acc.combine(inner, rest, copies, [](Stmts s) { return s; });
        });
    } else {
        // Results innermost: one iteration of the reduction adds to all of them in vector lanes.
        r.inside = acc.combine(inside, rest, {Copy{at}}, [&](Stmts s) {
            LoopBuilder loops(nest, false);
            return in_lanes_of_results(parallel, std::move(s), loops);
        });
    }
    LoopBuilder after(nest, false);
    r.after = over_results(after, [&](LoopBuilder&) {
        Stmts body = acc.finish(at);
        body.push_back(set(partial_place, to, acc.result(at)));
        return body;
    });
    return r;
}

std::optional<Stmts> cpu::schedule_chunks(const Member& member, const Target& target, KernelBuilder& builder,
                                          int partial_place, const Int& row, const Int& extent,
                                          Segment& segment) {
    // Rows that are found at run time are asked of memory one by one.
    if (std::any_of(member.nest.lets.begin(), member.nest.lets.end(),
                    [&](const Let& l) { return varies(member.nest, l.value, row); }))
        return {};
    const Int begin = segment.task * member.tree.chunk, count = min(member.tree.chunk, extent - begin),
              inside = Int::symbol("row", {0, std::max<std::int64_t>(0, count.range().high - 1)});
    Nest nest = substitute(member.nest, {{row.symbol_id(), begin + inside}});
    nest.reduced.front() = {inside, count};
    std::vector<Int> to{segment.task};
    for (const Loop& l : nest.parallel) to.push_back(l.variable);
    const std::optional<ByteRun> run = byte_run(nest, nest.reduced, builder.ir.places);
    if (!run && nest.reduced.size() == 1 && !member.tree.by_rows) {
        // Tiles of results stay in registers over all rows of the chunk.
        Member own = member;
        own.nest = nest;
        own.nest.dtype = nest.accumulator;
        own.destinations = {{partial_place, to}};
        if (const std::optional<LanePlan> plan = plan_lanes(own, target, builder, TileUse::fresh))
            return schedule_lanes(*plan, own, builder, TileUse::fresh);
    }
    if (!run || !run->outer.empty()) return {};
    LoopBuilder loops(nest);
    return loops.nest(nest.parallel, [&](LoopBuilder& inner) {
        Stmts body{set(partial_place, to, neutral(Combine::sum, accumulator_of(nest)))};
        append(body, add_run(nest, *run, inner, {}, builder, partial_place, to));
        return body;
    });
}

constexpr std::int64_t finished_by_task = 512;

Int cpu::tasks_of_finish(const Member& member, const KernelBuilder& builder) {
    if (finishes_turned(member, builder)) return tasks_of_turned_finish(member);
    Int results = 1;
    for (const Loop& l : member.nest.parallel) results = results * l.extent;
    return ceildiv(results, finished_by_task);
}

Stmts cpu::schedule_finish(const Member& member, KernelBuilder& builder, int partial_place, const Int& chunks,
                           const Int& task) {
    if (finishes_turned(member, builder))
        return schedule_turned_finish(member, builder, partial_place, chunks, task);
    const Nest& nest = member.nest;
    const DType dtype = accumulator_of(nest);
    const std::int64_t most = finished_by_task, lanes = member.tree.finish_lanes;
    Shape shape;
    for (const Loop& l : nest.parallel) shape.push_back(l.extent);
    const Int count = count_of(shape);
    // The results as one axis, of which a task has a part; innermost, in vector lanes.
    const Loop inside{Int::symbol("point", {0, most - 1}), min(most, count - task * most)};
    const Int chunk = Int::symbol("chunk", {0, chunks.range().high}),
              lane = Int::symbol("lane", {0, lanes - 1});
    std::vector<Int> from = unflattened(task * most + inside.variable, shape);
    Substitution here;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (const std::uint64_t id = nest.parallel[d].variable.symbol_id()) here[id] = from[d];
    const int acc = builder.scratch(Place::Scope::local, dtype,
                                    {Int(lanes), count.is_constant() ? min(count, most) : Int(most)});
    const auto over_points = [&](Stmts body) {
        return loop(inside.variable, 0, inside.extent, Binding::simd, std::move(body));
    };
    const auto over_lanes = [&](const Int& end, const Stmt& body) {
        return loop(lane, 0, end, Binding::serial, {over_points({body})});
    };
    const auto add = [&](const Int& number) {
        std::vector<Int> at = from;
        at.insert(at.begin(), number);
        return accumulate(acc, {lane, inside.variable}, nest.combine, place_read(dtype, partial_place, at));
    };
    const Int whole = floordiv(chunks, lanes) * lanes;
    Stmts body{declare(acc),
               over_lanes(lanes, set(acc, {lane, inside.variable}, neutral(nest.combine, dtype))),
               loop(chunk, 0, whole, Binding::serial, {over_lanes(lanes, add(chunk + lane))}, lanes)};
    if (lanes > 1) body.push_back(over_lanes(chunks - whole, add(whole + lane)));
    for (std::int64_t w = lanes / 2; w >= 1; w /= 2)
        body.push_back(over_lanes(w, accumulate(acc, {lane, inside.variable}, nest.combine,
                                                place_read(dtype, acc, {lane + w, inside.variable}))));
    body.push_back(
        over_points(substitute(stores(member, place_read(dtype, acc, {0, inside.variable})), here)));
    return body;
}

}  // namespace bitale
