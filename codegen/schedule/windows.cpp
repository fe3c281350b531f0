#include "codegen/schedule/windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "codegen/kernel/tails.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/pointwise.h"
#include "codegen/schedule/whole_windows.h"

namespace bitale {

namespace {

constexpr std::int64_t whole_vector = 16, half_vector = 8, fewest_window_lanes = 4;

// Lanes of full vectors, or of one half as wide.
std::int64_t whole_vectors(std::int64_t lanes) {
    if (lanes % half_vector == 0) return lanes;
    return lanes < half_vector ? half_vector : (lanes + whole_vector - 1) / whole_vector * whole_vector;
}

class Windows {
  public:
    Windows(const Member& member, KernelBuilder& builder, int vector)
        : member_(member),
          builder_(builder),
          lanes_(member.nest.parallel[static_cast<std::size_t>(vector)]),
          windows_(whole_windows(member.nest, lanes_.variable).value_or(WholeWindows{member.nest, 0})),
          nest_(windows_.nest),
          points_(points_of(nest_.reduced)) {
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (static_cast<int>(i) != vector) others_.push_back(nest_.parallel[i]);
    }

    Stmts run() {
        Nest unguarded = nest_;  // each point has its own guards
        unguarded.guards.clear();
        LoopBuilder loops(unguarded);
        return loops.nest(others_, [&](LoopBuilder&) { return in_whole_vectors() ? padded() : plain(); });
    }

  private:
    Stmts plain() {
        Scalar result;
        Stmts body = compute(result);
        append(body, stores(member_, result));
        return {loop(lanes_.variable, 0, lanes_.extent, Binding::simd, std::move(body))};
    }

    // Lanes beyond the last one compute what nobody stores; results of a narrower type are converted by
    // themselves. In either case host compilers find vectors of full width where a short loop over lanes,
    // some narrow and some wide, has none.
    Stmts padded() {
        const std::int64_t lanes = lanes_.extent.constant(), whole = whole_vectors(lanes);
        const Int lane = Int::symbol("lane", {0, whole - 1});
        const auto over = [&](std::int64_t count, const Stmts& body) {
            const Substitution here{{lanes_.variable.symbol_id(), lane}};
            return filled_lanes(lane, lanes, count, substitute(body, here));
        };
        Scalar result;
        Stmts inside = compute(result);
        int place = builder_.scratch(Place::Scope::private_, result->dtype, {Int(whole)});
        Stmts body{declare(place)};
        inside.push_back(set(place, {lanes_.variable}, result));
        body.push_back(over(whole, inside));
        if (result->dtype != nest_.dtype) {
            const Scalar wide = place_read(result->dtype, place, {lanes_.variable});
            place = builder_.scratch(Place::Scope::private_, nest_.dtype, {Int(whole)});
            body.push_back(declare(place));
            body.push_back(over(whole, {set(place, {lanes_.variable}, scalar_cast(nest_.dtype, wide))}));
        }
        for (const Destination& d : member_.destinations)
            body.push_back(
                over(lanes, {set(d.place, d.at, place_read(nest_.dtype, place, {lanes_.variable}))}));
        return body;
    }

    bool in_whole_vectors() const {
        if (!lanes_.extent.is_constant() || !nest_.guards.empty()) return false;
        const std::int64_t lanes = lanes_.extent.constant();
        if (lanes % whole_vector == 0 || lanes > 4 * whole_vector || lanes < fewest_window_lanes)
            return false;
        if (lanes % half_vector == 0) return is_position(nest_.combine);
        const std::int64_t more = whole_vectors(lanes) - lanes;
        bool fits = true;
        for_each_read(nest_.body, [&](const ScalarNode& s) {
            const Place& place = builder_.ir.places[static_cast<std::size_t>(s.operand.place())];
            const Int step = step_of(place, s.at, lanes_.variable);
            fits = fits && s.guards.empty() && !place.written && step.is_constant() && step.constant() >= 0 &&
                   step.constant() * more * bytes_of(place.dtype) <= readable_past_end;
        });
        return fits;
    }

    // The best value of a lane; then, for positions, the first point that has it: from the last one on, so
    // that earlier ones overwrite later ones.
    Stmts compute(Scalar& result) {
        const DType dtype = accumulator_of(nest_);
        const bool least = nest_.combine == Combine::min || nest_.combine == Combine::argmin;
        const Combine combine = least ? Combine::min : Combine::max;
        const int best = builder_.scratch(Place::Scope::private_, dtype, {});
        Stmts body{declare(best), set(best, {}, neutral(nest_.combine, dtype))};
        for (const Substitution& point : points_)
            append(body, where_inside(point, accumulate(best, {}, combine, value_at(point))));
        result = place_read(dtype, best, {});
        if (!is_position(nest_.combine)) return body;
        const int position = builder_.scratch(Place::Scope::private_, DType::int32, {});
        body.push_back(declare(position));
        body.push_back(set(position, {}, scalar_integer(DType::int32, 0)));
        for (std::size_t i = points_.size(); i-- > 0;) {
            const Scalar value = value_at(points_[i]), old = place_read(DType::int32, position, {});
            Scalar has = scalar_apply(Opcode::eq, DType::boolean, {value, result});
            if (is_float(dtype))
                has = scalar_apply(Opcode::bitwise_or, DType::boolean,
                                   {has, scalar_apply(Opcode::neq, DType::boolean, {value, value})});
            const Scalar number = number_of(static_cast<std::int64_t>(i));
            append(body, where_inside(points_[i],
                                      set(position, {},
                                          scalar_apply(Opcode::where, DType::int32, {has, number, old}))));
        }
        result = place_read(DType::int32, position, {});
        return body;
    }

    // Of a point, among those of the whole window.
    Scalar number_of(std::int64_t point) const {
        const Int r = windows_.first + point;
        return r.is_constant() ? scalar_integer(DType::int32, r.constant()) : scalar_index(DType::int32, r);
    }

    Scalar value_at(const Substitution& point) const {
        return substitute(scalar_cast(accumulator_of(nest_), nest_.body), point);
    }

    Stmts where_inside(const Substitution& point, Stmt one) const {
        std::vector<Guard> open;
        for (const Guard& g : nest_.guards) {
            const Guard here{substitute(g.value, point), substitute(g.low, point), substitute(g.high, point)};
            if ((here.value - here.low).range().low < 0 || (here.high - here.value).range().low <= 0)
                open.push_back(here);
        }
        return open.empty() ? Stmts{std::move(one)} : Stmts{when(open, {std::move(one)})};
    }

    const Member& member_;
    KernelBuilder& builder_;
    const Loop lanes_;
    const WholeWindows windows_;  // with guards, where those ask for the lane
    const Nest& nest_;
    const std::vector<Substitution> points_;
    std::vector<Loop> others_;
};

}  // namespace

bool takes_windows(const Nest& nest) {
    return is_best_or_position(nest.combine) && nest.lets.empty() && !points_of(nest.reduced).empty();
}

Stmts schedule_windows(const Member& member, KernelBuilder& builder, int vector) {
    return Windows(member, builder, vector).run();
}

bool is_overlapped(const Nest& nest, int vector) {
    if (nest.combine != Combine::sum || !is_float(nest.accumulator) || nest.dtype != nest.accumulator)
        return false;
    if (vector + 1 != static_cast<int>(nest.parallel.size()) || adds_products(nest)) return false;
    if (!nest.guards.empty() || !nest.lets.empty() || points_of(nest.reduced).empty()) return false;
    bool shared = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        for (const Int& x : s.at)
            for (const Int::Term& t : x.terms())
                for (const AtomPtr& a : t.atoms)
                    shared =
                        shared || (a->kind == Atom::Kind::floordiv && a->a == nest.parallel.back().variable);
    });
    return shared;
}

Stmts schedule_overlapped(const Member& member, KernelBuilder& builder) {
    const DType dtype = member.nest.accumulator;
    Scalar sum = scalar_integer(dtype, 0);
    for (const Substitution& point : points_of(member.nest.reduced))
        sum =
            scalar_apply(Opcode::add, dtype, {sum, scalar_cast(dtype, substitute(member.nest.body, point))});
    Member map = member;
    map.nest.combine = Combine::none;
    map.nest.reduced.clear();
    map.nest.body = std::move(sum);
    return schedule_map(map, builder);
}

}  // namespace bitale
