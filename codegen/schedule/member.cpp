#include "codegen/schedule/member.h"

#include <algorithm>
#include <cmath>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/tile.h"

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

int vector_loop(const Nest& nest) {
    int best = -1;
    double best_score = 0;
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& l = nest.parallel[i];
        const double extent = typical(l.extent);
        if (!l.variable.symbol_id() || extent < 4) continue;
        const double lanes = 16, filled = extent / (std::ceil(extent / lanes) * lanes);
        const double score =
            (unit_stride_reads(nest, l.variable) + (i + 1 == nest.parallel.size() ? 0.5 : 0)) * filled;
        if (score > best_score) {
            best = static_cast<int>(i);
            best_score = score;
        }
    }
    return best;
}

namespace {

// Computed once: a second place takes what the first was given, as the first may be what the value reads.
Stmts stores(const Member& member, const Scalar& value) {
    const DType dtype = member.nest.dtype;
    Stmts body;
    for (const Destination& d : member.destinations) {
        const Destination& first = member.destinations.front();
        body.push_back(
            set(d.place, d.at,
                body.empty() ? scalar_cast(dtype, value) : scalar_read(dtype, first.place, first.at)));
    }
    return body;
}

void append(Stmts& to, Stmts from) {
    for (Stmt& s : from) to.push_back(std::move(s));
}

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

}  // namespace

Stmts schedule_pointwise(const Member& member, const Target& target) {
    LoopBuilder loops(member.nest);
    if (target.kind == Target::Kind::cuda)
        return loops.threads(member.nest.parallel, [&](LoopBuilder& inner) {
            return inner.substituted(stores(member, member.nest.body));
        });
    std::vector<Loop> order = member.nest.parallel;
    return loops.nest(
        order, [&](LoopBuilder&) { return stores(member, member.nest.body); }, Binding::simd);
}

Stmts schedule_reduce(const Member& member, const Target& target, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    LoopBuilder loops(nest);
    if (target.kind == Target::Kind::cuda) {
        return loops.threads(nest.parallel, [&](LoopBuilder& inner) {
            const Accumulation acc(member, target, builder, {});
            Stmts body = acc.declare_all();
            append(body, acc.clear({}));
            append(body, acc.combine(inner, nest.reduced, {Copy{}}, [](Stmts s) { return s; }));
            append(body, acc.finish({}));
            append(body, stores(member, acc.result({})));
            return inner.substituted(body);
        });
    }
    const int v = member.tree.lanes > 1 ? -1 : vector_loop(nest);
    if (v < 0) {
        return loops.nest(nest.parallel, [&](LoopBuilder& inner) {
            const Accumulation acc(member, target, builder, {});
            Stmts body = acc.declare_all();
            append(body, acc.clear({}));
            append(body, acc.combine(inner, nest.reduced, {Copy{}}, [](Stmts s) { return s; }));
            append(body, acc.finish({}));
            append(body, stores(member, acc.result({})));
            return body;
        });
    }
    return schedule_tile(member, target, builder, v);
}

SplitReduce schedule_split(const Member& member, const Target& target, KernelBuilder& builder,
                           int partial_place, const Int& chunk) {
    const Nest& nest = member.nest;
    const bool gpu = target.kind == Target::Kind::cuda;
    Shape results;
    std::vector<Int> at, to{chunk};
    for (const Loop& l : nest.parallel) {
        results.push_back(l.extent);
        at.push_back(l.variable);
        to.push_back(l.variable);
    }
    Accumulation acc(member, target, builder, results);
    builder.ir.places[acc.place()].scope = Place::Scope::local;
    const std::vector<Loop> rest(nest.reduced.begin() + 1, nest.reduced.end());
    const auto over_results = [&](LoopBuilder& loops, const std::function<Stmts(LoopBuilder&)>& body) {
        return gpu ? loops.threads(nest.parallel,
                                   [&](LoopBuilder& inner) { return inner.substituted(body(inner)); })
                   : loops.nest(nest.parallel, body, member.tree.lanes > 1 ? Binding::serial : Binding::simd);
    };
    SplitReduce r;
    r.before = acc.declare_all();
    LoopBuilder clear(nest, false);
    append(r.before, over_results(clear, [&](LoopBuilder&) { return acc.clear(at); }));
    LoopBuilder inside(nest);
    if (gpu) {
        r.inside = over_results(inside, [&](LoopBuilder& inner) {
            return acc.combine(inner, rest, {Copy{at}}, [](Stmts s) { return s; });
        });
    } else if (member.tree.lanes > 1) {
        // Several results side by side: each has its own chain of additions, and they share operands.
        const std::vector<Loop> written_out = last_results(nest);
        const std::vector<Loop> looped(nest.parallel.begin(), nest.parallel.end() - std::ssize(written_out));
        std::vector<Copy> copies;
        for (const Substitution& point : points_of(written_out)) {
            Copy copy{at, point};
            for (Int& x : copy.at) x = substitute(x, point);
            copies.push_back(std::move(copy));
        }
        r.inside = inside.nest(looped, [&](LoopBuilder& inner) {
            return acc.combine(inner, rest, copies, [](Stmts s) { return s; });
        });
    } else {
        // Results innermost: one iteration of the reduction adds to all of them in vector lanes.
        r.inside = acc.combine(inside, rest, {Copy{at}}, [&](Stmts s) {
            LoopBuilder loops(nest, false);
            return loops.nest(
                nest.parallel, [&](LoopBuilder&) { return s; }, Binding::simd);
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

Stmts schedule_finish(const Member& member, const Target& target, KernelBuilder& builder, int partial_place,
                      const Int& chunks) {
    const Nest& nest = member.nest;
    const DType dtype = accumulator_of(nest);
    LoopBuilder loops(nest, false);
    const auto body = [&](LoopBuilder& inner) {
        const int acc = builder.scratch(Place::Scope::private_, dtype, {});
        const Int c = Int::symbol("chunk", {0, IntRange::highest});
        std::vector<Int> from{c};
        for (const Loop& l : nest.parallel) from.push_back(l.variable);
        Stmts s{declare(acc), set(acc, {}, neutral(nest.combine, dtype)),
                loop(c, 0, chunks, Binding::serial,
                     {accumulate(acc, {}, nest.combine, scalar_read(dtype, partial_place, from))})};
        append(s, stores(member, scalar_read(dtype, acc, {})));
        return inner.substituted(s);
    };
    return target.kind == Target::Kind::cuda ? loops.threads(nest.parallel, body)
                                             : loops.nest(nest.parallel, body);
}

}  // namespace bitale
