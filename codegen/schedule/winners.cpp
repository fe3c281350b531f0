#include "codegen/schedule/winners.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

// Registers for the other factor and for what is in flight.
constexpr int registers_for_winners = 3;

class WinnerPlanner {
  public:
    WinnerPlanner(const Member& member, const Target& target, const KernelBuilder& builder)
        : member_(member), nest_(member.nest), target_(target), places_(builder.ir.places) {}

    std::optional<WinnersPlan> run() const {
        if (!target_.has_vectors() || !adds_products(nest_) || member_.tree.lanes > 1) return {};
        if (nest_.lets.empty() || !nest_.guards.empty() || nest_.dtype != nest_.accumulator) return {};
        for (const int factor : {0, 1}) {
            std::optional<WinnersPlan> best;
            double filled = 0;
            for (std::size_t axis = 0; axis < nest_.parallel.size(); ++axis) {
                WinnersPlan plan;
                plan.factor = factor;
                plan.axis = static_cast<int>(axis);
                if (!fits(plan)) continue;
                const double extent = typical(loop_at(plan.axis).extent);
                if (extent > filled) best = plan;
                filled = std::max(filled, extent);
            }
            if (best) return best;
        }
        return {};
    }

  private:
    bool fits(WinnersPlan& plan) const {
        const Scalar &place = nest_.body->arguments[static_cast<std::size_t>(plan.factor)],
                     &other = nest_.body->arguments[static_cast<std::size_t>(1 - plan.factor)];
        const Loop& lanes = loop_at(plan.axis);
        if (!is_element(nest_, place) || lets_of(nest_, place).empty()) return false;
        if (!lanes.variable.symbol_id() || !lanes.extent.is_constant() || !moves(place, other, lanes))
            return false;
        const Destination& stored = member_.destinations.front();
        const auto step = [&](int number, const std::vector<Int>& at) {
            return step_of(places_[static_cast<std::size_t>(number)], at, lanes.variable);
        };
        if (!step(place->operand.place(), place->at).is(1) || !step(stored.place, stored.at).is(1))
            return false;
        std::int64_t results = lanes.extent.constant();
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i) {
            const Loop& l = nest_.parallel[i];
            if (static_cast<int>(i) == plan.axis || !l.variable.symbol_id()) continue;
            const bool tap = l.extent.is_constant() && moves(place, other, l);
            (tap ? plan.taps : plan.around).push_back(static_cast<int>(i));
            if (tap) results *= l.extent.constant();
        }
        constexpr std::int64_t most_results = 1 << 14;  // all of them are written out
        constexpr std::int64_t narrowest = 4;
        plan.width = target_.vector_bytes / bytes_of(nest_.accumulator);
        while (plan.width > narrowest && plan.width / 2 >= lanes.extent.constant()) plan.width /= 2;
        plan.most = target_.vector_registers - registers_for_winners;
        plan.band = band(*place);
        return plan.width >= 2 && results <= most_results / 16 * plan.width;
    }

    // Iterations of the first loop of the sum that read no more than the fastest cache holds; 0: all of them.
    std::int64_t band(const ScalarNode& place) const {
        constexpr std::int64_t most_bytes = 24 << 10;
        const Loop& first = nest_.reduced[0];
        const Int step =
            step_of(places_[static_cast<std::size_t>(place.operand.place())], place.at, first.variable);
        if (nest_.reduced.size() < 2 || !first.extent.is_constant() || !step.is_constant()) return 0;
        const std::int64_t bytes = std::abs(step.constant()) * bytes_of(place.dtype),
                           extent = first.extent.constant();
        if (extent * bytes <= most_bytes) return 0;
        const std::int64_t bands = std::min(extent, (extent * bytes + most_bytes - 1) / most_bytes);
        return (extent + bands - 1) / bands;
    }

    // The loop moves one factor's place, by itself and not by way of a let.
    bool moves(const Scalar& place, const Scalar& other, const Loop& l) const {
        const auto in_lets = [&](const Scalar& s) {
            const std::vector<Let> lets = lets_of(nest_, s);
            return std::any_of(lets.begin(), lets.end(),
                               [&](const Let& let) { return varies(nest_, let.value, l.variable); });
        };
        return !varies(nest_, other, l.variable) && varies(nest_, place, l.variable) && !in_lets(place);
    }

    const Loop& loop_at(int i) const { return nest_.parallel[static_cast<std::size_t>(i)]; }

    const Member& member_;
    const Nest& nest_;
    const Target& target_;
    const std::vector<Place>& places_;
};

class Scheduler {
  public:
    Scheduler(const WinnersPlan& plan, const Member& member, KernelBuilder& builder, TileUse use)
        : plan_(plan),
          nest_(member.nest),
          builder_(builder),
          stored_(member.destinations.front()),
          use_(use) {}

    Stmts run() {
        if (plan_.band == 0) return all_results();
        // Bands of the sum, each for all results, with what they read of the places at hand. Results lie in
        // scratch in between.
        const Loop whole = nest_.reduced[0];
        const Int first = Int::symbol("band", {0, whole.extent.constant() - 1}),
                  inside = Int::symbol("inside", {0, plan_.band - 1});
        nest_ = substitute(nest_, {{whole.variable.symbol_id(), first + inside}});
        nest_.reduced[0] = {inside, min(plan_.band, whole.extent - first)};
        const auto bands = [&] {
            return loop(first, 0, whole.extent, Binding::serial, all_results(), plan_.band);
        };
        if (use_ == TileUse::continued) return {bands()};
        const Destination last = stored_;
        Shape extents;
        stored_.at.clear();
        for (const Loop& l : nest_.parallel) {
            extents.push_back(l.extent);
            stored_.at.push_back(l.variable);
        }
        stored_.place = builder_.scratch(Place::Scope::local, nest_.accumulator, extents);
        use_ = TileUse::continued;
        const auto over_results = [&](const Stmt& s) {
            LoopBuilder loops(nest_, false);
            return loops.nest(
                nest_.parallel, [&](LoopBuilder&) { return Stmts{s}; }, Binding::simd);
        };
        Stmts all{declare(stored_.place)};
        append(all, over_results(set(stored_.place, stored_.at, scalar_integer(nest_.accumulator, 0))));
        all.push_back(bands());
        append(all, over_results(accumulate(last.place, last.at, Combine::sum,
                                            place_read(nest_.accumulator, stored_.place, stored_.at))));
        return all;
    }

  private:
    Stmts all_results() {
        std::vector<Loop> around;
        for (const int i : plan_.around) around.push_back(loop_at(i));
        LoopBuilder loops(nest_);
        return loops.nest(around, [&](LoopBuilder& inner) {
            Stmts all;
            const std::vector<Result> results = registers();
            const auto count = static_cast<std::int64_t>(results.size()),
                       passes = (count + plan_.most - 1) / plan_.most;
            for (std::int64_t p = 0; p < passes; ++p)
                append(all, pass(inner, {results.begin() + p * count / passes,
                                         results.begin() + (p + 1) * count / passes}));
            return all;
        });
    }

    // Those of one register: the values of the loops, and how many lanes are results.
    struct Result {
        Substitution at;
        std::int64_t lanes = 0;
    };

    const Loop& loop_at(int i) const { return nest_.parallel[static_cast<std::size_t>(i)]; }

    std::vector<Result> registers() const {
        std::vector<Result> list{{}};
        for (const int i : plan_.taps) {
            std::vector<Result> longer;
            for (const Result& r : list)
                for (std::int64_t k = 0; k < loop_at(i).extent.constant(); ++k) {
                    longer.push_back(r);
                    longer.back().at[loop_at(i).variable.symbol_id()] = k;
                }
            list = std::move(longer);
        }
        std::vector<Result> all;
        const Loop& lanes = loop_at(plan_.axis);
        for (const Result& r : list)
            for (std::int64_t first = 0; first < lanes.extent.constant(); first += plan_.width) {
                all.push_back(r);
                all.back().at[lanes.variable.symbol_id()] = first + lane_;
                all.back().lanes = std::min(plan_.width, lanes.extent.constant() - first);
            }
        return all;
    }

    // Some of the results, over the whole sum.
    Stmts pass(LoopBuilder& loops, const std::vector<Result>& results) {
        const DType dtype = nest_.accumulator;
        const int acc = builder_.scratch(Place::Scope::vector, dtype,
                                         {Int(static_cast<std::int64_t>(results.size())), Int(plan_.width)});
        Stmts start, sum, stop;
        for (std::size_t i = 0; i < results.size(); ++i) {
            const Substitution& here = results[i].at;
            const std::vector<Int> at{Int(static_cast<std::int64_t>(i)), lane_};
            const Scalar value = place_read(dtype, acc, at),
                         before = substitute(place_read(dtype, stored_.place, stored_.at), here);
            // Behind the last results lie those of another task.
            const bool continued = use_ == TileUse::continued;
            const Stmt first = set(acc, at, continued ? before : scalar_integer(dtype, 0));
            start.push_back(lanes(lane_, continued ? results[i].lanes : plan_.width, plan_.width, {first}));
            sum.push_back(accumulate(acc, at, Combine::sum, substitute(nest_.body, here), true));
            const Stmt store = use_ == TileUse::added
                                   ? accumulate(stored_.place, stored_.at, Combine::sum, value)
                                   : set(stored_.place, stored_.at, value);
            stop.push_back(lanes(lane_, results[i].lanes, plan_.width, substitute(Stmts{store}, here)));
        }
        Stmts all{declare(acc)};
        append(all, std::move(start));
        append(all, loops.nest(nest_.reduced, [&](LoopBuilder& inner) {
            return inner.guarded({lanes(lane_, plan_.width, plan_.width, sum)});
        }));
        append(all, std::move(stop));
        return all;
    }

    const WinnersPlan& plan_;
    Nest nest_;
    KernelBuilder& builder_;
    Destination stored_;
    TileUse use_;
    const Int lane_ = Int::symbol("lane", {0, plan_.width - 1});
};

}  // namespace

Nest walking_forward(const Nest& nest, std::vector<Int>& at) {
    if (nest.parallel.empty()) return nest;
    const Loop& last = nest.parallel.back();
    const std::uint64_t id = last.variable.symbol_id();
    if (!id || !last.extent.is_constant()) return nest;
    bool backward = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (!s.at.empty() && depends_on(s.at.back(), id))
            backward = substitute(s.at.back(), {{id, last.variable + 1}}) - s.at.back() == Int(-1);
    });
    if (!backward) return nest;
    const Substitution mirrored{{id, last.extent - 1 - last.variable}};
    for (Int& x : at) x = substitute(x, mirrored);
    Nest r = substitute(nest, mirrored);
    r.parallel.back() = last;
    return r;
}

std::optional<WinnersPlan> plan_winners(const Member& member, const Target& target,
                                        const KernelBuilder& builder) {
    return WinnerPlanner(member, target, builder).run();
}

Stmts schedule_winners(const WinnersPlan& plan, const Member& member, KernelBuilder& builder, TileUse use) {
    return Scheduler(plan, member, builder, use).run();
}

}  // namespace bitale
