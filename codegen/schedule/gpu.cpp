#include "codegen/schedule/gpu.h"

#include <algorithm>
#include <functional>

#include "codegen/group/values.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/gpu_product.h"
#include "codegen/schedule/prefix.h"

namespace bitale::gpu {

namespace {

constexpr std::int64_t busy_threads = 128;

Loop lane_loop(int lanes) { return {Int::symbol("lane", {0, lanes - 1}), lanes}; }

std::vector<Loop> with(std::vector<Loop> loops, const Loop& last) {
    loops.push_back(last);
    return loops;
}

// The tree of a lane's own work.
Member of_one_lane(const Member& member) {
    Member own = member;
    own.tree.lanes = 1;
    return own;
}

// acc = acc of lane 0 and all others, in the tree's order; right in lane 0.
Stmts meet(int acc, Combine combine, int lanes = 16) {
    Stmts s;
    for (int w = lanes / 2; w >= 1; w /= 2) s.push_back(exchange(acc, combine, w));
    return s;
}

// The best of a long row, wherever it is: candidates may be compared in any order. Neighbouring lanes read
// neighbouring candidates.
bool is_position_in_row(const Member& member, const KernelIR& kernel) {
    constexpr double long_row = 64;
    const Nest& nest = member.nest;
    const bool position = nest.combine == Combine::argmax || nest.combine == Combine::argmin;
    if (!position || !nest.guards.empty() || nest.reduced.empty()) return false;
    const Loop& last = nest.reduced.back();
    if (!last.variable.symbol_id() || typical(last.extent) < long_row) return false;
    bool near = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        near = near ||
               step_of(kernel.places[static_cast<std::size_t>(s.operand.place())], s.at, last.variable).is(1);
    });
    return near;
}

// Few results leave threads idle: then each result has all lanes of a warp, the second half of which computes
// every second partial result of a lane. These meet in the same order as in one thread: first those of a
// thread, which are half of them apart, then those of the two halves.
Member in_whole_warps(const Member& member, const KernelIR& kernel) {
    const ReductionTree& tree = member.tree;
    Member wide = member;
    if (tree.lanes == 1) {
        if (is_position_in_row(member, kernel)) wide.tree.lanes = 32;
        return wide;
    }
    const bool idle = typical_count(member.nest.parallel) * tree.lanes <= busy_threads;
    if (tree.groups == 1 || tree.by_rows || !idle) return member;
    wide.tree.lanes *= 2;
    wide.tree.groups /= 2;
    return wide;
}

std::int64_t chunks_together(const Nest& nest, const ReductionTree& tree) {
    const double threads = typical_count(nest.parallel) * tree.lanes;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(busy_threads / std::max(threads, 1.0)), 1, 8);
}

// Whether a factor of the product, or something that it is computed from, is no copy of the task.
bool reads_global(const Nest& nest, const KernelIR& kernel) {
    bool global = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        global = global ||
                 kernel.places[static_cast<std::size_t>(s.operand.place())].scope == Place::Scope::global;
    });
    return global;
}

Stmt first_lane(const Loop& lane, Stmts body) { return when({{lane.variable, 0, 1}}, std::move(body)); }

// The reduction as one thread runs it: all of it, or what its lane has.
Stmts serial(const Accumulation& acc, LoopBuilder& loops, const std::vector<Loop>& reduced,
             const std::vector<Int>& at, const Loop* lane) {
    if (lane) return acc.combine_strided(loops, reduced, Copy{at}, lane->variable, lane->extent.constant());
    return acc.combine(loops, reduced, {Copy{at}}, [](Stmts s) { return s; });
}

// Each row by itself, then the rows in order.
Stmts rows_in_order(const Member& own, const Accumulation& acc, LoopBuilder& loops, KernelBuilder& builder,
                    const Loop* lane) {
    const Nest& nest = own.nest;
    const Accumulation of_row(own, builder, {});
    Stmts body = of_row.declare_all();
    append(body, loops.nest({nest.reduced.front()}, [&](LoopBuilder& inner) {
        Stmts row = of_row.clear({});
        append(row, serial(of_row, inner, {nest.reduced.begin() + 1, nest.reduced.end()}, {}, lane));
        if (lane) append(row, meet(of_row.place(), nest.combine));
        row.push_back(accumulate(acc.place(), {}, nest.combine, of_row.result({})));
        return row;
    }));
    return body;
}

// Products: several results in one thread, written out; the last axis fastest.
Stmts side_by_side(const Member& member, const std::vector<Sharing>& sharing, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    std::vector<Loop> points = nest.parallel;
    std::vector<Copy> copies{{{Int(0)}, {}}};
    for (const Sharing& s : sharing) {
        Loop& shared = points[static_cast<std::size_t>(s.axis)];
        const std::uint64_t id = shared.variable.symbol_id();
        shared = make_loop("block", floordiv(shared.extent, s.results));
        std::vector<Copy> all;
        for (const Copy& copy : copies)
            for (std::int64_t i = 0; i < s.results; ++i) {
                all.push_back(copy);
                all.back().with[id] = shared.variable * s.results + i;
                all.back().at = {Int(static_cast<std::int64_t>(all.size()) - 1)};
            }
        copies = std::move(all);
    }
    LoopBuilder loops(nest);
    return loops.threads(points, [&](LoopBuilder& inner) {
        const Accumulation acc(member, builder, {Int(static_cast<std::int64_t>(copies.size()))});
        Stmts body = acc.declare_all(), store;
        for (const Copy& copy : copies) {
            append(body, acc.clear(copy.at));
            append(store, substitute(stores(member, acc.result(copy.at)), copy.with));
        }
        append(body, acc.combine(inner, nest.reduced, copies, [](Stmts s) { return s; }));
        append(body, std::move(store));
        return inner.substituted(body);
    });
}

}  // namespace

Stmts schedule_pointwise(const Member& member) {
    LoopBuilder loops(member.nest);
    return loops.threads(member.nest.parallel, [&](LoopBuilder& inner) {
        return inner.substituted(stores(member, member.nest.body));
    });
}

Stmts schedule_reduce(const Member& of_tree, KernelBuilder& builder) {
    if (is_prefix(of_tree.nest)) return schedule_prefix_in_threads(of_tree, builder);
    if ((is_thin_product(of_tree.nest, of_tree.tree) || is_thin_sum(of_tree.nest, of_tree.tree)) &&
        has_room_for_pieces(builder))
        return schedule_thin(of_tree, builder);
    const Member member = in_whole_warps(of_tree, builder.ir);
    const Nest& nest = member.nest;
    const bool lanes = member.tree.lanes > 1;
    if (!lanes && !member.tree.by_rows)
        if (const std::vector<Sharing> sharing = shared_axes(nest); !sharing.empty())
            return side_by_side(member, sharing, builder);
    const Member own = of_one_lane(member);
    const Loop lane = lane_loop(member.tree.lanes);
    LoopBuilder loops(nest);
    return loops.threads(lanes ? with(nest.parallel, lane) : nest.parallel, [&](LoopBuilder& inner) {
        const Accumulation acc(own, builder, {});
        Stmts body = acc.declare_all();
        append(body, acc.clear({}));
        if (member.tree.by_rows) {
            append(body, rows_in_order(own, acc, inner, builder, lanes ? &lane : nullptr));
        } else {
            append(body, serial(acc, inner, nest.reduced, {}, lanes ? &lane : nullptr));
            append(body, acc.finish({}));
        }
        if (lanes && member.tree.groups == 1 && !member.tree.by_rows)
            append(body, acc.meet(member.tree.lanes));
        if (!lanes) {
            append(body, stores(member, acc.result({})));
            return inner.substituted(body);
        }
        Scalar result = acc.result({});
        if (!member.tree.by_rows && member.tree.groups > 1) {
            const int own_sum = builder.scratch(Place::Scope::private_, accumulator_of(nest), {});
            body.push_back(declare(own_sum));
            body.push_back(set(own_sum, {}, result));
            result = place_read(accumulator_of(nest), own_sum, {});
            append(body, meet(own_sum, nest.combine, member.tree.lanes));
        }
        body.push_back(first_lane(lane, stores(member, result)));
        return inner.substituted(body);
    });
}

std::optional<Stmts> schedule_chunks(const Member& member, KernelBuilder& builder, int partial_place,
                                     const Int& row, const Int& extent, Segment& segment) {
    ReductionTree inside_chunk = member.tree;
    inside_chunk.split = false;
    // All threads of a block compute the terms of a thin sum, however few its results are.
    const bool thin = is_thin_sum(member.nest, inside_chunk) || is_thin_product(member.nest, inside_chunk);
    const std::int64_t together = thin ? 1 : chunks_together(member.nest, member.tree);
    const Int chunks = ceildiv(extent, member.tree.chunk);
    segment.tasks = ceildiv(chunks, together);
    segment.task = make_loop("chunk", segment.tasks).variable;
    const Int first = segment.task * together;
    const Loop own{together > 1 ? Int::symbol("chunk", {0, together - 1}) : Int(0),
                   min(together, chunks - first)};
    const Int begin = (first + own.variable) * member.tree.chunk,
              inside = Int::symbol("row", {0, std::max<std::int64_t>(0, member.tree.chunk.range().high - 1)});
    Member part = member;
    part.tree = inside_chunk;
    part.nest = substitute(member.nest, {{row.symbol_id(), begin + inside}});
    part.nest.reduced.front() = {inside, min(member.tree.chunk, extent - begin)};
    part.nest.dtype = accumulator_of(member.nest);
    Destination to{partial_place, {first + own.variable}};
    for (const Loop& l : part.nest.parallel) to.at.push_back(l.variable);
    part.destinations = {std::move(to)};
    part.nest.parallel.insert(part.nest.parallel.begin(), own);
    return gpu::schedule_reduce(part, builder);
}

SplitReduce schedule_split(const Member& member, KernelBuilder& builder, int partial_place,
                           const Int& chunk) {
    const Nest& nest = member.nest;
    const Member own = of_one_lane(member);
    const bool lanes = member.tree.lanes > 1;
    const Loop lane = lane_loop(member.tree.lanes);
    const DType dtype = accumulator_of(nest);
    const std::vector<Loop> points = lanes ? with(nest.parallel, lane) : nest.parallel,
                            rest(nest.reduced.begin() + 1, nest.reduced.end());
    std::vector<Int> to{chunk};
    for (const Loop& l : nest.parallel) to.push_back(l.variable);
    SplitReduce r;
    LoopBuilder clear(nest, false), inside(nest), after(nest, false);
    if (member.tree.by_rows) {
        // Too many results for scratch: their partial results lie where the next phase reads them.
        r.before = clear.threads(nest.parallel, [&](LoopBuilder& inner) {
            return inner.substituted({set(partial_place, to, neutral(nest.combine, dtype))});
        });
        r.before.push_back(barrier());
        r.inside = inside.threads(points, [&](LoopBuilder& inner) {
            const Accumulation acc(own, builder, {});
            Stmts body = acc.declare_all();
            append(body, acc.clear({}));
            append(body, serial(acc, inner, rest, {}, lanes ? &lane : nullptr));
            const Stmt add = accumulate(partial_place, to, nest.combine, acc.result({}));
            if (lanes) {
                append(body, meet(acc.place(), nest.combine));
                body.push_back(first_lane(lane, {add}));
            } else {
                body.push_back(add);
            }
            return inner.substituted(body);
        });
        return r;
    }
    // A partial result of each point in scratch, which the point's own thread alone uses.
    Shape shape;
    std::vector<Int> at;
    for (const Loop& l : points) {
        shape.push_back(l.extent);
        at.push_back(l.variable);
    }
    const int groups = member.tree.groups;
    if (groups > 1) shape.emplace_back(groups);
    const int partial = builder.scratch(Place::Scope::local, dtype, shape);
    // For each partial result of the point: where it is in scratch and in the thread's registers.
    const auto each = [&](const std::function<Stmt(const std::vector<Int>&, const std::vector<Int>&)>& one) {
        Stmts body;
        for (int g = 0; g < groups; ++g) {
            std::vector<Int> there = at, here;
            if (groups > 1) {
                there.emplace_back(g);
                here.emplace_back(g);
            }
            body.push_back(one(there, here));
        }
        return body;
    };
    r.before.push_back(declare(partial));
    append(r.before, clear.threads(points, [&](LoopBuilder& inner) {
        return inner.substituted(each([&](const std::vector<Int>& there, const std::vector<Int>&) {
            return set(partial, there, neutral(nest.combine, dtype));
        }));
    }));
    Member of_row = own;
    of_row.nest.reduced = rest;
    of_row.tree = {};
    if (!lanes && groups == 1 && reads_global(of_row.nest, builder.ir) && is_thin_product(of_row.nest, {}) &&
        has_room_for_pieces(builder)) {
        const PartialResults kept{partial, at};
        r.before.push_back(barrier());  // other threads have cleared what a thread begins with
        r.inside = schedule_thin(of_row, builder, &kept);
    } else {
        r.inside = inside.threads(points, [&](LoopBuilder& inner) {
            const Accumulation acc(own, builder, {});
            Stmts body = acc.declare_all();
            append(body, each([&](const std::vector<Int>& there, const std::vector<Int>& here) {
                       return set(acc.place(), here, place_read(dtype, partial, there));
                   }));
            append(body, serial(acc, inner, rest, {}, lanes ? &lane : nullptr));
            append(body, each([&](const std::vector<Int>& there, const std::vector<Int>& here) {
                       return set(partial, there, place_read(dtype, acc.place(), here));
                   }));
            return inner.substituted(body);
        });
    }
    r.after = after.threads(points, [&](LoopBuilder& inner) {
        const int acc = builder.scratch(Place::Scope::private_, dtype, {}),
                  parts = groups > 1 ? builder.scratch(Place::Scope::private_, dtype, {Int(groups)}) : acc;
        Stmts body{declare(acc)};
        if (groups > 1) body.push_back(declare(parts));
        append(body, each([&](const std::vector<Int>& there, const std::vector<Int>& here) {
                   return set(parts, here, place_read(dtype, partial, there));
               }));
        if (groups > 1) {
            append(body, combine_parts(parts, {}, groups, nest.combine, dtype));
            body.push_back(set(acc, {}, place_read(dtype, parts, {0})));
        }
        const Stmt store = set(partial_place, to, place_read(dtype, acc, {}));
        if (lanes) {
            append(body, meet(acc, nest.combine));
            body.push_back(first_lane(lane, {store}));
        } else {
            body.push_back(store);
        }
        return inner.substituted(body);
    });
    return r;
}

static std::int64_t finished_by_task(const ReductionTree& tree) { return tree.finish_lanes > 1 ? 16 : 256; }

Int tasks_of_finish(const Member& member, const KernelBuilder&) {
    Int results = 1;
    for (const Loop& l : member.nest.parallel) results = results * l.extent;
    return ceildiv(results, finished_by_task(member.tree));
}

Stmts schedule_finish(const Member& member, KernelBuilder& builder, int partial_place, const Int& chunks,
                      const Int& task) {
    const Nest& nest = member.nest;
    const DType dtype = accumulator_of(nest);
    const std::int64_t most = finished_by_task(member.tree);
    Shape shape;
    for (const Loop& l : nest.parallel) shape.push_back(l.extent);
    const Int point = Int::symbol("point", {0, most - 1}), position = task * most + point;
    const Loop chunk{Int::symbol("chunk", {0, chunks.range().high}), chunks};
    // The sum over chunks as a nest of its own: the results as one axis, of which a task has a part.
    Member whole;
    whole.tree.lanes = member.tree.finish_lanes;
    whole.nest.combine = nest.combine;
    whole.nest.accumulator = dtype;
    whole.nest.dtype = nest.dtype;
    whole.nest.parallel = {{point, min(most, count_of(shape) - task * most)}};
    whole.nest.reduced = {chunk};
    std::vector<Int> from = unflattened(position, shape);
    Substitution here;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (const std::uint64_t id = nest.parallel[d].variable.symbol_id()) here[id] = from[d];
    from.insert(from.begin(), chunk.variable);
    whole.nest.body = place_read(dtype, partial_place, from);
    for (Destination d : member.destinations) {
        for (Int& x : d.at) x = substitute(x, here);
        whole.destinations.push_back(std::move(d));
    }
    return gpu::schedule_reduce(whole, builder);
}

}  // namespace bitale::gpu
