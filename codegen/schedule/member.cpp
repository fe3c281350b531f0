#include "codegen/schedule/member.h"

#include <algorithm>
#include <cmath>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/schedule/builder.h"
#include "codegen/schedule/loops.h"

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
        const double score = (unit_stride_reads(nest, l.variable) + (i + 1 == nest.parallel.size() ? 0.5 : 0)) * filled;
        if (score > best_score) {
            best = static_cast<int>(i);
            best_score = score;
        }
    }
    return best;
}

namespace {

bool is_index(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

// The value to combine, and whether it is a product to be added by one fused multiply-add.
struct Term {
    Scalar value;
    bool fused = false;
};

Term term_of(const Nest& nest) {
    const DType accumulator = accumulator_of(nest);
    const Scalar& body = nest.body;
    if (nest.combine == Combine::sum && is_float(accumulator) && body->dtype == accumulator &&
        body->kind == ScalarNode::Kind::apply && body->op->name == "mul")
        return {body, true};
    return {scalar_cast(accumulator, body), false};
}

bool mentions(const std::vector<Guard>& guards, const Int& variable) {
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) {
        const std::uint64_t id = variable.symbol_id();
        return depends_on(g.value, id) || depends_on(g.low, id) || depends_on(g.high, id);
    });
}

bool mentions(const std::vector<Let>& lets, const Int& variable) {
    Nest all;
    all.lets = lets;
    all.body = scalar_integer(DType::int64, 0);
    bool found = false;
    for_each_read(all, [&](const ScalarNode& s) {
        for (const Int& x : s.at) found = found || depends_on(x, variable.symbol_id());
    });
    return found || (!lets.empty() && std::any_of(lets.begin(), lets.end(), [](const Let& l) { return l.value->kind != ScalarNode::Kind::read; }));
}

constexpr std::int64_t most_unrolled = 8, small_reduction = 16;

// The points of a reduction that is short and of known length, in order; empty if it is not.
std::vector<Substitution> points_of(const std::vector<Loop>& reduced) {
    std::vector<Substitution> points{{}};
    for (const Loop& l : reduced) {
        if (!l.extent.is_constant() || l.extent.constant() * static_cast<std::int64_t>(points.size()) > small_reduction) return {};
        std::vector<Substitution> longer;
        for (const Substitution& p : points)
            for (std::int64_t i = 0; i < l.extent.constant(); ++i) {
                longer.push_back(p);
                if (const std::uint64_t id = l.variable.symbol_id()) longer.back()[id] = i;
            }
        points = std::move(longer);
    }
    return points;
}

Int linear(const std::vector<Loop>& loops) {
    Int x = 0;
    for (const Loop& l : loops) x = x * l.extent + l.variable;
    return x;
}

Stmts stores(const Member& member, const Scalar& value) {
    Stmts body;
    for (const Destination& d : member.destinations) body.push_back(set(d.place, d.at, scalar_cast(member.nest.dtype, value)));
    return body;
}

// lanes[l] = combine(lanes[l], lanes[l + w]) for w = 8, 4, 2, 1.
Stmts combine_lanes(int place, const std::vector<Int>& at, Combine combine, DType dtype) {
    Stmts body;
    for (std::int64_t w = 8; w >= 1; w /= 2) {
        const Int l = Int::symbol("l", {0, w - 1});
        std::vector<Int> to = at, from = at;
        to.push_back(l);
        from.push_back(l + w);
        body.push_back(loop(l, 0, w, Binding::unrolled, {accumulate(place, to, combine, scalar_read(dtype, place, from))}));
    }
    return body;
}

// Everything that a schedule of a reduction needs to say "combine this point into partial result `at` of `place`".
class Accumulation {
  public:
    Accumulation(const Member& member, const Target& target, KernelBuilder& builder, const Shape& results)
        : nest_(member.nest), lanes_(member.tree.lanes), gpu_(target.kind == Target::Kind::cuda), dtype_(accumulator_of(nest_)) {
        Shape extents = results;
        if (lanes_ > 1) extents.emplace_back(lanes_);
        const bool registers = count_of(extents).constant() <= 1024;
        const Place::Scope scope = registers && !shared_ ? Place::Scope::private_ : Place::Scope::local;
        place_ = builder.scratch(scope, dtype_, extents);
        if (is_index(nest_.combine)) {
            // As wide as the values where it fits, so that both fill the same vector lanes.
            index_dtype_ = linear(nest_.reduced).range().high < INT32_MAX ? DType::int32 : DType::int64;
            index_place_ = builder.scratch(scope, index_dtype_, extents);
        }
        extents_ = extents;
    }

    Stmts declare_all() const {
        Stmts s{declare(place_)};
        if (index_place_ >= 0) s.push_back(declare(index_place_));
        return s;
    }

    Stmts clear(const std::vector<Int>& at) const {
        Stmts s;
        if (lanes_ > 1) {
            const Int l = Int::symbol("l", {0, lanes_ - 1});
            std::vector<Int> lane = at;
            lane.push_back(l);
            s.push_back(loop(l, 0, lanes_, gpu_ ? Binding::unrolled : Binding::simd, {set(place_, lane, neutral(nest_.combine, dtype_))}));
            return s;
        }
        s.push_back(set(place_, at, neutral(nest_.combine, dtype_)));
        if (index_place_ >= 0) s.push_back(set(index_place_, at, scalar_integer(index_dtype_, -1)));
        return s;
    }

    // Loops over `reduced` (all of the nest's, or all but the split one) around the combine; `vector` wraps the
    // innermost statement in the vector loop when the lanes are results.
    Stmts combine(LoopBuilder& loops, const std::vector<Loop>& reduced, const std::vector<Int>& at,
                  const std::function<Stmts(Stmts)>& vector) const {
        const Term term = term_of(nest_);
        if (lanes_ == 1) {
            Stmt s = accumulate(place_, at, nest_.combine, term.value, term.fused);
            s.number = index_place_;
            s.begin = linear(nest_.reduced);
            const std::int64_t times = reduced.empty() ? 1 : unrolled_times(reduced.back());
            if (times == 1) return loops.nest(reduced, [&](LoopBuilder& inner) { return vector(inner.guarded({s})); });
            // Several iterations a pass: the partial result is loaded and stored once for all of them.
            const Loop last = reduced.back();
            return loops.nest({reduced.begin(), reduced.end() - 1}, [&](LoopBuilder& inner) {
                const Int block = last.extent.is(times) ? Int(0) : Int::symbol("block", {0, last.extent.constant() - times});
                Stmts several;
                for (std::int64_t i = 0; i < times; ++i)
                    for (Stmt& one : substitute(Stmts{s}, {{last.variable.symbol_id(), block + i}})) several.push_back(std::move(one));
                Stmts body = vector(inner.guarded(std::move(several)));
                if (last.extent.is(times)) return body;
                return Stmts{loop(block, 0, last.extent, Binding::serial, std::move(body), times)};
            });
        }
        // The last loop in blocks of `lanes`, then the rest.
        std::vector<Loop> before(reduced.begin(), reduced.end() - 1);
        const Loop& last = reduced.back();
        return loops.nest(before, [&](LoopBuilder& inner) {
            const Int whole = floordiv(last.extent, lanes_) * lanes_;
            const Int block = Int::symbol("block", {0, last.extent.range().high}), lane = Int::symbol("lane", {0, lanes_ - 1});
            const auto at_lane = [&](const Int& position) {
                std::vector<Int> to = at;
                to.push_back(lane);
                const Substitution here{{last.variable.symbol_id(), position}};
                Scalar value = substitute(term.value, here);
                return inner.guarded({accumulate(place_, to, nest_.combine, value, term.fused)}, here);
            };
            Stmts s;
            if (!whole.is(0))
                s.push_back(loop(block, 0, whole, Binding::serial,
                                 {loop(lane, 0, lanes_, gpu_ ? Binding::unrolled : Binding::simd, at_lane(block + lane))}, lanes_));
            if (const Int rest = last.extent - whole; !rest.is(0))
                s.push_back(loop(lane, 0, rest, rest.is_constant() && !gpu_ ? Binding::simd : Binding::serial, at_lane(whole + lane)));
            return s;
        });
    }

    // One statement for each point: the partial result stays in a register.
    Stmts combine_points(const std::vector<Substitution>& points) const {
        const Term term = term_of(nest_);
        Stmt s = accumulate(place_, {}, nest_.combine, term.value, term.fused);
        s.number = index_place_;
        s.begin = linear(nest_.reduced);
        Stmts body;
        for (const Substitution& point : points) {
            std::vector<Guard> open;
            for (const Guard& g : nest_.guards) {
                const Guard here{substitute(g.value, point), substitute(g.low, point), substitute(g.high, point)};
                if ((here.value - here.low).range().low < 0 || (here.high - here.value).range().low <= 0) open.push_back(here);
            }
            Stmts one = substitute(Stmts{s}, point);
            if (!open.empty()) one = {when(open, std::move(one))};
            for (Stmt& o : one) body.push_back(std::move(o));
        }
        return body;
    }

    Stmts finish(const std::vector<Int>& at) const {
        return lanes_ > 1 ? combine_lanes(place_, at, nest_.combine, dtype_) : Stmts{};
    }

    Scalar result(std::vector<Int> at) const {
        if (index_place_ >= 0) {
            static const Op* maximum = find_op("maximum");
            return scalar_apply(maximum, index_dtype_, {scalar_read(index_dtype_, index_place_, at), scalar_integer(index_dtype_, 0)});
        }
        if (lanes_ > 1) at.emplace_back(0);
        return scalar_read(dtype_, place_, at);
    }

    int place() const { return place_; }

  private:
    // How many iterations of the last reduced loop to write out.
    std::int64_t unrolled_times(const Loop& last) const {
        if (!last.extent.is_constant() || !last.variable.symbol_id()) return 1;
        if (mentions(nest_.guards, last.variable) || mentions(nest_.lets, last.variable)) return 1;
        const std::int64_t extent = last.extent.constant();
        if (extent <= most_unrolled) return extent;
        return extent % 8 == 0 ? 8 : extent % 4 == 0 ? 4 : extent % 7 == 0 ? 7 : extent % 5 == 0 ? 5 : 1;
    }


    const Nest& nest_;
    int lanes_;
    bool gpu_, shared_ = false;
    DType dtype_, index_dtype_ = DType::int64;
    int place_ = -1, index_place_ = -1;
    Shape extents_;
};

void append(Stmts& to, Stmts from) {
    for (Stmt& s : from) to.push_back(std::move(s));
}

// Private results are indexed by constants or lanes alone, so the vector loop is cut into blocks of this many.
constexpr std::int64_t block_of_lanes = 64;

}  // namespace

Stmts schedule_pointwise(const Member& member, const Target& target) {
    LoopBuilder loops(member.nest);
    if (target.kind == Target::Kind::cuda)
        return loops.threads(member.nest.parallel, [&](LoopBuilder& inner) { return inner.substituted(stores(member, member.nest.body)); });
    std::vector<Loop> order = member.nest.parallel;
    return loops.nest(order, [&](LoopBuilder&) { return stores(member, member.nest.body); }, Binding::simd);
}

Stmts schedule_reduce(const Member& member, const Target& target, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    LoopBuilder loops(nest);
    if (target.kind == Target::Kind::cuda) {
        return loops.threads(nest.parallel, [&](LoopBuilder& inner) {
            const Accumulation acc(member, target, builder, {});
            Stmts body = acc.declare_all();
            append(body, acc.clear({}));
            append(body, acc.combine(inner, nest.reduced, {}, [](Stmts s) { return s; }));
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
            append(body, acc.combine(inner, nest.reduced, {}, [](Stmts s) { return s; }));
            append(body, acc.finish({}));
            append(body, stores(member, acc.result({})));
            return body;
        });
    }
    if (const std::vector<Substitution> points = points_of(nest.reduced); !points.empty() && nest.lets.empty()) {
        std::vector<Loop> order = nest.parallel;
        std::rotate(order.begin() + v, order.begin() + v + 1, order.end());
        Nest unguarded = nest;
        unguarded.guards.clear();
        LoopBuilder short_loops(unguarded);
        return short_loops.nest(order, [&](LoopBuilder&) {
            const Accumulation acc(member, target, builder, {});
            Stmts body = acc.declare_all();
            append(body, acc.clear({}));
            append(body, acc.combine_points(points));
            append(body, stores(member, acc.result({})));
            return body;
        }, Binding::simd);
    }
    // Blocks of the vector loop: partial results of a block stay in registers or L1 over the whole reduction.
    std::vector<Loop> others = nest.parallel;
    const Loop vector = others[v];
    others.erase(others.begin() + v);
    return loops.nest(others, [&](LoopBuilder& inner) {
        const bool single = vector.extent.is_constant() && vector.extent.constant() <= block_of_lanes;
        const std::int64_t width = single ? vector.extent.constant() : block_of_lanes;
        const Int block = single ? Int(0) : Int::symbol("block", {0, vector.extent.range().high});
        const Int lane = Int::symbol("lane", {0, width - 1});
        const Int count = single ? Int(width) : min(width, vector.extent - block);
        const Substitution here{{vector.variable.symbol_id(), block + lane}};
        const Accumulation acc(member, target, builder, {Int(width)});
        const auto over_lanes = [&](Stmts s) { return Stmts{loop(lane, 0, count, Binding::simd, inner.substituted(std::move(s), here))}; };
        Stmts body = acc.declare_all();
        append(body, over_lanes(acc.clear({lane})));
        append(body, acc.combine(inner, nest.reduced, {lane}, over_lanes));
        append(body, over_lanes(stores(member, acc.result({lane}))));
        if (single) return body;
        return Stmts{loop(block, 0, vector.extent, Binding::serial, std::move(body), width)};
    }, Binding::serial, vector.variable);
}

SplitReduce schedule_split(const Member& member, const Target& target, KernelBuilder& builder, int partial_place, const Int& chunk) {
    const Nest& nest = member.nest;
    const bool gpu = target.kind == Target::Kind::cuda;
    Shape results;
    std::vector<Int> at, to{chunk};
    for (const Loop& l : nest.parallel) {
        results.push_back(l.extent);
        at.push_back(l.variable);
        to.push_back(l.variable);
    }
    Shape lanes = results;
    const DType dtype = accumulator_of(nest);
    if (member.tree.lanes > 1) lanes.emplace_back(member.tree.lanes);
    Accumulation acc(member, target, builder, results);
    builder.ir.places[acc.place()].scope = Place::Scope::local;
    const std::vector<Loop> rest(nest.reduced.begin() + 1, nest.reduced.end());
    const auto over_results = [&](LoopBuilder& loops, const std::function<Stmts(LoopBuilder&)>& body) {
        return gpu ? loops.threads(nest.parallel, [&](LoopBuilder& inner) { return inner.substituted(body(inner)); })
                   : loops.nest(nest.parallel, body, member.tree.lanes > 1 ? Binding::serial : Binding::simd);
    };
    SplitReduce r;
    r.before = acc.declare_all();
    LoopBuilder clear(nest, false);
    append(r.before, over_results(clear, [&](LoopBuilder&) { return acc.clear(at); }));
    LoopBuilder inside(nest);
    if (member.tree.lanes > 1 || gpu) {
        r.inside = over_results(inside, [&](LoopBuilder& inner) { return acc.combine(inner, rest, at, [](Stmts s) { return s; }); });
    } else {
        // Results innermost: one iteration of the reduction adds to all of them in vector lanes.
        r.inside = acc.combine(inside, rest, at, [&](Stmts s) {
            LoopBuilder loops(nest, false);
            return loops.nest(nest.parallel, [&](LoopBuilder&) { return s; }, Binding::simd);
        });
    }
    LoopBuilder after(nest, false);
    r.after = over_results(after, [&](LoopBuilder&) {
        Stmts body = acc.finish(at);
        body.push_back(set(partial_place, to, acc.result(at)));
        return body;
    });
    (void)dtype;
    return r;
}

Stmts schedule_finish(const Member& member, const Target& target, KernelBuilder& builder, int partial_place, const Int& chunks) {
    const Nest& nest = member.nest;
    const DType dtype = accumulator_of(nest);
    LoopBuilder loops(nest, false);
    const auto body = [&](LoopBuilder& inner) {
        const int acc = builder.scratch(Place::Scope::private_, dtype, {});
        const Int c = Int::symbol("chunk", {0, IntRange::highest});
        std::vector<Int> from{c};
        for (const Loop& l : nest.parallel) from.push_back(l.variable);
        Stmts s{declare(acc), set(acc, {}, neutral(nest.combine, dtype)),
                loop(c, 0, chunks, Binding::serial, {accumulate(acc, {}, nest.combine, scalar_read(dtype, partial_place, from))})};
        append(s, stores(member, scalar_read(dtype, acc, {})));
        return inner.substituted(s);
    };
    return target.kind == Target::Kind::cuda ? loops.threads(nest.parallel, body) : loops.nest(nest.parallel, body);
}

}  // namespace bitale
