#include "codegen/schedule/accumulation.h"

#include <algorithm>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool is_index(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

// The value to combine, and whether it is a product to be added by one fused multiply-add.
struct Term {
    Scalar value;
    bool fused = false;
};

// Positions are as wide as fills lanes: elements of fewer bits are widened to them.
DType element_of(const Nest& nest) {
    const DType dtype = accumulator_of(nest);
    return is_index(nest.combine) && bits_of(dtype) < bits_of(DType::int32) ? DType::int32 : dtype;
}

Term term_of(const Nest& nest) {
    const DType accumulator = element_of(nest);
    const Scalar& body = nest.body;
    if (adds_products(nest)) return {body, true};
    return {scalar_cast(accumulator, body), false};
}

constexpr std::int64_t small_reduction = 16;

Int linear(const std::vector<Loop>& loops) {
    Int x = 0;
    for (const Loop& l : loops) x = x * l.extent + l.variable;
    return x;
}

// Whether some elements do not lie as the loops visit them, from the outermost to the innermost.
bool reads_out_of_order(const Nest& nest, const std::vector<Place>& places) {
    bool found = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        std::int64_t before = INT64_MAX;
        for (const Loop& l : nest.reduced) {
            if (!l.variable.symbol_id()) continue;
            const Int step = step_of(places[static_cast<std::size_t>(s.operand.place())], s.at, l.variable);
            if (!step.is_constant() || step.is(0)) continue;
            found = found || step.constant() < 0 || step.constant() > before;
            before = step.constant();
        }
    });
    return found;
}

// `meet` for each element of the first half of `count` partial results and its counterpart in the second,
// and so on until so many are left.
Stmts halved(const std::vector<Int>& at, std::int64_t count, std::int64_t left, std::int64_t fewest_lanes,
             const std::function<Stmts(const std::vector<Int>& to, const std::vector<Int>& from)>& meet) {
    Stmts body;
    for (std::int64_t w = count / 2; w >= left; w /= 2) {
        const Int l = Int::symbol("l", {0, w - 1});
        std::vector<Int> to = at, from = at;
        to.push_back(l);
        from.push_back(l + w);
        body.push_back(loop(l, 0, w, w < fewest_lanes ? Binding::unrolled : Binding::simd, meet(to, from)));
    }
    return body;
}

// Where the guard fails no element is read, and the value is this number.
Scalar guarded(const Scalar& value, const Guard& guard, const Scalar& otherwise) {
    const Scalar inside = rebuild(value, [&](std::shared_ptr<ScalarNode> s) -> Scalar {
        if (s->kind != ScalarNode::Kind::read) return s;
        s->guards.push_back(guard);
        if (!s->otherwise)
            s->otherwise = s->dtype == otherwise->dtype ? otherwise : scalar_integer(s->dtype, 0);
        return s;
    });
    return inside->kind == ScalarNode::Kind::read && inside->otherwise == otherwise
               ? inside
               : scalar_select({guard}, inside, otherwise);
}

// Steps that change nothing where the guard fails. As far as possible they combine with what leaves every
// partial result as it is, to the bit: -0 for a sum, and for a position the least number, which is no better
// than what it is compared with. A store of some lanes only would stall the next load.
Stmts switched_off(Stmts steps, const Guard& guard) {
    constexpr int most_cost = 8;  // of what is computed for nothing
    constexpr std::int64_t narrowest = 4;
    const bool cheap = std::all_of(steps.begin(), steps.end(), [](const Stmt& s) {
        return s.kind == Stmt::Kind::accumulate && !s.none_yet &&
               !any_part(s.value, [](const ScalarNode& part) {
                   const bool short_element =
                       part.kind == ScalarNode::Kind::read && bytes_of(part.dtype) < narrowest;
                   return short_element || (part.op && part.op->map && part.op->map->cost > most_cost);
               });
    });
    if (!cheap) return {when({guard}, std::move(steps))};
    for (Stmt& s : steps) {
        const DType dtype = s.value->dtype;
        const bool adds_floats = s.combine == Combine::sum && is_float(dtype);
        const Scalar nothing = adds_floats ? scalar_constant(dtype, -0.0) : neutral(s.combine, dtype);
        if (s.fused)
            s.value = scalar_apply(s.value->op, dtype,
                                   {guarded(s.value->arguments[0], guard, scalar_integer(dtype, 0)),
                                    guarded(s.value->arguments[1], guard, nothing)});
        else
            s.value = guarded(s.value, guard, nothing);
    }
    return steps;
}

}  // namespace

Stmts combine_parts(int place, const std::vector<Int>& at, std::int64_t count, Combine combine, DType dtype,
                    std::int64_t left) {
    constexpr std::int64_t one_register = 16;
    return halved(at, count, left, one_register,
                  [&](const std::vector<Int>& to, const std::vector<Int>& from) {
                      return Stmts{accumulate(place, to, combine, place_read(dtype, place, from))};
                  });
}

bool mentions(const std::vector<Guard>& guards, const Int& variable) {
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) {
        const std::uint64_t id = variable.symbol_id();
        return depends_on(g.value, id) || depends_on(g.low, id) || depends_on(g.high, id);
    });
}

bool mentions(const std::vector<Let>& lets, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    return std::any_of(lets.begin(), lets.end(), [&](const Let& l) {
        return l.value->kind != ScalarNode::Kind::read || depends_on(l.value, id) || depends_on(l.extent, id);
    });
}

std::vector<Substitution> points_of(const std::vector<Loop>& reduced) {
    std::vector<Substitution> points{{}};
    for (const Loop& l : reduced) {
        if (!l.extent.is_constant() ||
            l.extent.constant() * static_cast<std::int64_t>(points.size()) > small_reduction)
            return {};
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

Accumulation::Accumulation(const Member& member, KernelBuilder& builder, const Shape& results)
    : nest_(member.nest),
      lanes_(member.tree.lanes),
      groups_(member.tree.groups),
      short_text_(builder.short_text),
      dtype_(element_of(nest_)) {
    Shape extents = results;
    if (lanes_ * groups_ > 1) extents.emplace_back(lanes_ * groups_);
    constexpr std::int64_t most_private = 1024;
    const Place::Scope scope =
        count_of(extents).constant() <= most_private ? Place::Scope::private_ : Place::Scope::local;
    place_ = builder.scratch(scope, dtype_, extents);
    // Each lane by itself adds its terms as they come.
    const bool adds = (nest_.combine == Combine::sum || nest_.combine == Combine::prod) && lanes_ == 1;
    out_of_order_ =
        adds && is_float(dtype_) && !adds_products(nest_) && reads_out_of_order(nest_, builder.ir.places);
    if (is_index(nest_.combine)) {
        // As wide as the values where it fits, so that both fill the same vector lanes.
        index_dtype_ = bits_of(dtype_) <= 32 && linear(nest_.reduced).range().high < INT32_MAX ? DType::int32
                                                                                               : DType::int64;
        // Without guards the first candidate is at 0, and stays the best where no other one is better.
        none_yet_ = !nest_.guards.empty();
        index_place_ = builder.scratch(scope, index_dtype_, extents);
    }
}

Stmts Accumulation::declare_all() const {
    Stmts s{declare(place_)};
    if (index_place_ >= 0) s.push_back(declare(index_place_));
    return s;
}

Stmts Accumulation::clear(const std::vector<Int>& at) const {
    const auto cleared = [&](const std::vector<Int>& part) {
        Stmts s{set(place_, part, neutral(nest_.combine, dtype_))};
        if (index_place_ >= 0)
            s.push_back(set(index_place_, part, scalar_integer(index_dtype_, none_yet_ ? -1 : 0)));
        return s;
    };
    const std::int64_t parts = std::int64_t{lanes_} * groups_;
    if (parts == 1) return cleared(at);
    const Int l = Int::symbol("l", {0, parts - 1});
    std::vector<Int> part = at;
    part.push_back(l);
    return {loop(l, 0, parts, lanes_ > 1 ? Binding::simd : Binding::unrolled, cleared(part))};
}

Stmt Accumulation::step(const Copy& copy) const {
    const Term term = term_of(nest_);
    Stmt s = accumulate(place_, copy.at, nest_.combine, substitute(term.value, copy.with), term.fused);
    s.number = index_place_;
    s.none_yet = none_yet_;
    s.begin = linear(nest_.reduced);
    s.out_of_order = out_of_order_;
    return s;
}

Stmts Accumulation::combine(LoopBuilder& loops, const std::vector<Loop>& reduced,
                            const std::vector<Copy>& copies, const std::function<Stmts(Stmts)>& vector,
                            const WrittenOut& written, const std::vector<const Accumulation*>& others) const {
    const auto steps_of = [&](const Copy& copy) {
        Stmts steps{step(copy)};
        for (const Accumulation* other : others) steps.push_back(other->step(copy));
        return steps;
    };
    if (lanes_ == 1) {
        Stmts steps;
        for (const Copy& copy : copies) append(steps, steps_of(copy));
        const std::int64_t times = reduced.empty() ? 1 : unrolled_times(reduced.back(), written);
        if (times == 1)
            return loops.nest(reduced, [&](LoopBuilder& inner) { return vector(inner.guarded(steps)); });
        // Several iterations a pass: the partial result is loaded and stored once for all of them.
        const Loop& last = reduced.back();
        return loops.nest({reduced.begin(), reduced.end() - 1}, [&](LoopBuilder& inner) {
            const Int block =
                last.extent.is(times)
                    ? Int(0)
                    : Int::symbol("block", {0, std::max<std::int64_t>(0, last.extent.range().high - times)});
            Stmts several;
            for (std::int64_t i = 0; i < times; ++i)
                append(several, substitute(steps, {{last.variable.symbol_id(), block + i}}));
            Stmts body = vector(inner.guarded(std::move(several)));
            if (last.extent.is(times)) return body;
            if (last.extent.is_constant())
                return Stmts{loop(block, 0, last.extent, Binding::serial, std::move(body), times)};
            const Int whole = floordiv(last.extent, times) * times;
            return Stmts{
                loop(block, 0, whole, Binding::serial, std::move(body), times),
                loop(last.variable, whole, last.extent, Binding::serial, vector(inner.guarded(steps)))};
        });
    }
    // The last loop in blocks of `lanes`, one for each group, then the rest.
    const std::vector<Loop> before(reduced.begin(), reduced.end() - 1);
    const Loop& last = reduced.back();
    return loops.nest(before, [&](LoopBuilder& inner) {
        const std::int64_t parts = std::int64_t{lanes_} * groups_;
        const Int whole = floordiv(last.extent, parts) * parts, rest = last.extent - whole;
        const Int block = Int::symbol("block", {0, last.extent.range().high});
        // Iteration `first` + part.
        const auto add = [&](const Int& first, const Int& part) {
            const Substitution here{{last.variable.symbol_id(), first + part}};
            Stmts steps;
            for (Copy copy : copies) {
                copy.at.push_back(part);
                append(steps, substitute(steps_of(copy), here));
            }
            return inner.guarded(std::move(steps), here);
        };
        // The first `count` lanes of a group. Full vectors with the others switched off: a narrower one would
        // stall on the partial results.
        const auto group = [&](const Int& first, std::int64_t number, const Int& count) {
            const Int lane = Int::symbol("lane", {0, lanes_ - 1});
            Stmts steps = add(first, number * lanes_ + lane);
            // Where compilers see that lane < 1 means lane 0, they give up on vectors.
            const Int number_of_lane = count.is(1) ? lane * lane : lane;
            const Guard guard{number_of_lane, 0, count};
            if (count.is_constant() && !count.is(lanes_)) steps = switched_off(std::move(steps), guard);
            if (!count.is_constant()) steps = {when({guard}, std::move(steps))};
            return loop(lane, 0, lanes_, Binding::simd, std::move(steps));
        };
        Stmts s, blocks;
        for (int g = 0; g < groups_; ++g) blocks.push_back(group(block, g, lanes_));
        if (!whole.is(0)) s.push_back(loop(block, 0, whole, Binding::serial, std::move(blocks), parts));
        if (!rest.is_constant() && groups_ == 1) {
            const Int part = Int::symbol("part", {0, parts - 1});
            s.push_back(loop(part, 0, rest, Binding::serial, add(whole, part)));
            return s;
        }
        for (int g = 0; g < groups_; ++g) {
            const Int left = rest - g * lanes_;
            if (left.range().high <= 0) break;
            s.push_back(group(whole, g, left.is_constant() ? min(left, lanes_) : left));
        }
        return s;
    });
}

Stmts Accumulation::combine_strided(LoopBuilder& loops, const std::vector<Loop>& reduced, const Copy& copy,
                                    const Int& lane, std::int64_t lanes) const {
    const Loop& last = reduced.back();
    return loops.nest({reduced.begin(), reduced.end() - 1}, [&](LoopBuilder& inner) {
        const Int k = Int::symbol("k", {0, last.extent.range().high});
        const std::int64_t turn = lanes * groups_;
        const auto add = [&](const Int& position, const Int& group) {
            const Substitution here{{last.variable.symbol_id(), position}};
            Copy own = copy;
            if (groups_ > 1) own.at.push_back(group);
            return inner.guarded(substitute(Stmts{step(own)}, here), here);
        };
        if (groups_ == 1) return Stmts{loop(k, lane, last.extent, Binding::serial, add(k, 0), lanes)};
        const Int whole = floordiv(last.extent, turn) * turn, rest = last.extent - whole;
        const auto each = [&](const Int& first, std::int64_t groups, bool guarded) {
            const Int group = groups > 1 ? Int::symbol("group", {0, groups - 1}) : Int(0),
                      position = first + group * lanes;
            Stmts one = add(position, group);
            if (guarded) one = {when({{position, 0, last.extent}}, std::move(one))};
            return groups > 1 ? Stmts{loop(group, 0, groups, Binding::unrolled, std::move(one))} : one;
        };
        Stmts s;
        if (!whole.is(0)) s.push_back(loop(k, lane, whole, Binding::serial, each(k, groups_, false), turn));
        const std::int64_t most = rest.is_constant() ? ceildiv(rest, lanes).constant() : groups_;
        if (most > 0) append(s, each(whole + lane, most, !mod(rest, lanes).is(0) || !rest.is_constant()));
        return s;
    });
}

Stmts Accumulation::combine_point(const Substitution& point, const Copy& copy) const {
    std::vector<Guard> open;
    for (const Guard& g : nest_.guards) {
        Guard here{substitute(g.value, point), substitute(g.low, point), substitute(g.high, point)};
        here = {substitute(here.value, copy.with), substitute(here.low, copy.with),
                substitute(here.high, copy.with)};
        if ((here.value - here.low).range().low < 0 || (here.high - here.value).range().low <= 0)
            open.push_back(here);
    }
    Stmts one = substitute(Stmts{step(copy)}, point);
    return open.empty() ? one : Stmts{when(open, std::move(one))};
}

Stmts Accumulation::finish(const std::vector<Int>& at, std::int64_t left) const {
    const std::int64_t parts = std::int64_t{lanes_} * groups_;
    if (index_place_ < 0) return combine_parts(place_, at, parts, nest_.combine, dtype_, left);
    constexpr std::int64_t few_lanes = 4;  // a pair takes many operations
    return halved(at, parts, left, few_lanes, [&](const std::vector<Int>& to, const std::vector<Int>& from) {
        Stmt s = accumulate(place_, to, nest_.combine, place_read(dtype_, place_, from));
        s.number = index_place_;
        s.position = place_read(index_dtype_, index_place_, from);
        return Stmts{std::move(s)};
    });
}

Stmts Accumulation::meet(int lanes) const {
    Stmts s;
    for (int w = lanes / 2; w >= 1; w /= 2) s.push_back(exchange(place_, nest_.combine, w, index_place_));
    return s;
}

Scalar Accumulation::result(std::vector<Int> at) const {
    if (lanes_ * groups_ > 1) at.emplace_back(0);
    if (index_place_ < 0) return place_read(dtype_, place_, at);
    const Scalar position = place_read(index_dtype_, index_place_, at);
    if (!none_yet_) return position;
    return scalar_apply(Opcode::maximum, index_dtype_, {position, scalar_integer(index_dtype_, 0)});
}

// How many iterations of the last reduced loop to write out.
std::int64_t Accumulation::unrolled_times(const Loop& last, const WrittenOut& written) const {
    constexpr std::int64_t of_unknown = 4;
    if (short_text_ || !last.variable.symbol_id()) return 1;
    if (mentions(nest_.guards, last.variable) || mentions(nest_.lets, last.variable)) return 1;
    if (!last.extent.is_constant()) return written.of_any_length ? of_unknown : 1;
    const std::int64_t extent = last.extent.constant();
    if (extent <= written.all_of) return std::max<std::int64_t>(extent, 1);
    return extent % 8 == 0 ? 8 : extent % 4 == 0 ? 4 : extent % 7 == 0 ? 7 : extent % 5 == 0 ? 5 : 1;
}

}  // namespace bitale
