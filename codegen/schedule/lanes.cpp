#include "codegen/schedule/lanes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/schedule/ahead.h"
#include "codegen/schedule/loops.h"
#include "graph/ir/array_bytes.h"

namespace bitale {

namespace {

constexpr std::int64_t most_vectors = 4;
// Registers of a tile where short text matters more than speed.
constexpr std::int64_t short_tile = 4;
// Sums shorter than this are not worth it where results have to be stored one by one: far from each other, or
// every few elements, as a phase of results lies in any schedule.
constexpr double long_sum = 64, long_sum_near = 16;
constexpr std::int64_t near = 8;

// Cycles of one iteration of the sum, by two multiplications or two loads a cycle and a latency of four, in
// units of half a cycle. Vectors that are computed take `each` instructions more.
double cycles(std::int64_t rows, std::int64_t vectors, std::int64_t each) {
    constexpr double latency = 8, around = 2;
    return std::max(
               {static_cast<double>((rows + each) * vectors), static_cast<double>(rows + vectors), latency}) +
           around;
}

double over(double extent, std::int64_t block, const std::function<double(std::int64_t)>& cost) {
    const double rest = extent - std::floor(extent / static_cast<double>(block)) * static_cast<double>(block);
    return std::floor(extent / static_cast<double>(block)) * cost(block) +
           (rest > 0 ? cost(static_cast<std::int64_t>(rest)) : 0);
}

class LanePlanner {
  public:
    LanePlanner(const Member& member, const Target& target, const KernelBuilder& builder, TileUse use,
                bool computed)
        : member_(member),
          nest_(member.nest),
          target_(target),
          places_(builder.ir.places),
          use_(use),
          computed_(computed) {}

    std::optional<LanePlan> run() {
        if (!target_.has_vectors() || !adds_products(nest_) || member_.tree.lanes > 1) return {};
        if (!nest_.guards.empty() || nest_.dtype != nest_.accumulator) return {};
        if (!computed_ && !nest_.lets.empty()) return {};
        std::optional<LanePlan> best;
        double least = std::numeric_limits<double>::max();
        for (std::size_t axis = 0; axis < nest_.parallel.size(); ++axis)
            for (const bool swapped : {false, true}) {
                LanePlan plan;
                plan.axis = static_cast<int>(axis);
                plan.swapped = swapped;
                if (!fits(plan)) continue;
                const double cost = choose_tile(plan);
                if (cost < least) {
                    least = cost;
                    best = plan;
                }
            }
        return best;
    }

  private:
    const Scalar& factor(const LanePlan& plan, bool vector) const {
        return nest_.body->arguments[vector != plan.swapped ? 1 : 0];
    }

    bool fits(LanePlan& plan) const {
        const Loop& l = nest_.parallel[static_cast<std::size_t>(plan.axis)];
        constexpr std::int64_t fewest = 2, narrowest = 4;
        if (!l.variable.symbol_id() || !l.extent.is_constant() || l.extent.constant() < fewest) return false;
        const Scalar &own = factor(plan, true), &other = factor(plan, false);
        if (!is_element(nest_, other) || !lets_of(nest_, other).empty()) return false;
        if (!computed_ && !is_element(nest_, own)) return false;
        const ScalarNode* vector = computed_ ? read_in_lanes(nest_, own, l.variable) : own.get();
        if (!vector || varies(nest_, other, l.variable)) return false;
        if (!step_of(places_[static_cast<std::size_t>(vector->operand.place())], vector->at, l.variable)
                 .is(1))
            return false;
        for (const Destination& d : member_.destinations) {
            const Int step = step_of(places_[static_cast<std::size_t>(d.place)], d.at, l.variable);
            const bool short_step = step.range().low >= 0 && step.range().high <= near;
            if (!step.is(1) && (use_ != TileUse::fresh ||
                                typical_count(nest_.reduced) < (short_step ? long_sum_near : long_sum)))
                return false;
        }
        plan.width = target_.vector_bytes / bytes_of(nest_.accumulator);
        plan.reads_exactly = target_.reads_exactly || target_.vector_bytes > bytes_behind_array;
        while (plan.width > narrowest && plan.width / 2 >= l.extent.constant()) plan.width /= 2;
        return plan.width >= 2;
    }

    // The tile that takes the fewest cycles, for an iteration of the sum over all results.
    double choose_tile(LanePlan& plan) const {
        std::vector<int> rows;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i) {
            const int number = static_cast<int>(i);
            const Int& variable = nest_.parallel[i].variable;
            if (number == plan.axis || !variable.symbol_id()) continue;
            (varies(nest_, factor(plan, true), variable) ? plan.common : rows).push_back(number);
        }
        const double lanes = typical(nest_.parallel[static_cast<std::size_t>(plan.axis)].extent);
        const double registers = std::ceil(lanes / static_cast<double>(plan.width));
        double least = std::numeric_limits<double>::max();
        if (rows.empty()) {
            if (!computed_) return choose_window_tile(plan, registers);
            // A row of results, each of which would be read and written again for every term elsewhere.
            plan.vectors = std::min<std::int64_t>(most_vectors, static_cast<std::int64_t>(registers));
            return over(registers, plan.vectors,
                        [&](std::int64_t vectors) { return cycles(1, vectors, computing()); });
        }
        std::int64_t inside = 1;  // results of the loops that lie in the tile as a whole
        for (std::size_t whole = 0; whole < rows.size(); ++whole) {
            if (whole > 0) {
                const Int& extent = loop_at(rows[rows.size() - whole]).extent;
                if (!extent.is_constant()) break;
                inside *= extent.constant();
                if (inside >= target_.vector_registers) break;
            }
            const std::size_t tiled = rows.size() - 1 - whole;
            double around = 1;
            for (std::size_t i = 0; i < tiled; ++i) around *= typical(loop_at(rows[i]).extent);
            const double extent = typical(loop_at(rows[tiled]).extent);
            for (std::int64_t v = 1;
                 v <= std::min<std::int64_t>(most_vectors, static_cast<std::int64_t>(registers)); ++v)
                for (std::int64_t h = 1; static_cast<double>(h) <= extent && fit_registers(h * inside, v);
                     ++h) {
                    const double cost = around * over(extent, h, [&](std::int64_t height) {
                                            return over(registers, v, [&](std::int64_t vectors) {
                                                return cycles(height * inside, vectors, computing());
                                            });
                                        });
                    if (cost >= least) continue;
                    least = cost;
                    plan.vectors = v;
                    plan.height = h;
                    plan.tiled = rows[tiled];
                    plan.whole.assign(rows.end() - static_cast<std::ptrdiff_t>(whole), rows.end());
                    plan.outer.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(tiled));
                }
        }
        if (plan.tiled < 0) return std::numeric_limits<double>::max();
        for (const int i : plan.common) least *= typical(loop_at(i).extent);
        // An operation takes as long on a narrow register. Of two equal plans the narrower one leaves less of
        // its last register idle.
        constexpr double of_width = 1e-3;
        return least * (1 + of_width * static_cast<double>(plan.width));
    }

    // One filter over windows of an image: each result of the tile loads its own neighbours, and the tile
    // stays in registers over the whole window.
    double choose_window_tile(LanePlan& plan, double registers) const {
        constexpr double least_window = 25, around = 2, loads_of_term = 2;
        constexpr std::int64_t most_rows = 8;  // which stay in the cache, wherever they lie
        double least = std::numeric_limits<double>::max();
        if (typical_count(nest_.reduced) < least_window || target_.fast_compile) return least;
        const ScalarNode& image = *factor(plan, true);
        const std::vector<int> common = plan.common;
        for (const int rows : common) {
            if (!slides(image, loop_at(rows)) || varies(nest_, factor(plan, false), loop_at(rows).variable))
                continue;
            const double extent = typical(loop_at(rows).extent);
            const auto most = std::min<std::int64_t>(most_vectors, static_cast<std::int64_t>(registers));
            for (std::int64_t v = 1; v <= most; ++v)
                for (std::int64_t h = 2;
                     h <= most_rows && static_cast<double>(h) <= extent && fit_registers(h, v); ++h) {
                    const double cost = over(extent, h, [&](std::int64_t height) {
                        return over(registers, v, [&](std::int64_t vectors) {
                            return loads_of_term * static_cast<double>(height * vectors) + around;
                        });
                    });
                    if (cost >= least) continue;
                    least = cost;
                    plan.vectors = v;
                    plan.height = h;
                    plan.tiled = rows;
                }
        }
        std::erase(plan.common, plan.tiled);
        for (const int i : plan.common) least *= typical(loop_at(i).extent);
        plan.is_window = plan.tiled >= 0;
        return least;
    }

    // Neighbouring results read overlapping windows.
    bool slides(const ScalarNode& read, const Loop& results) const {
        return std::any_of(read.at.begin(), read.at.end(), [&](const Int& x) {
            return depends_on(x, results.variable.symbol_id()) &&
                   std::any_of(nest_.reduced.begin(), nest_.reduced.end(),
                               [&](const Loop& l) { return depends_on(x, l.variable.symbol_id()); });
        });
    }

    // Bytes are widened, and integers become floats.
    std::int64_t computing() const { return computed_ ? 2 : 0; }

    bool fit_registers(std::int64_t rows, std::int64_t vectors) const {
        if (target_.fast_compile && rows * vectors > short_tile) return false;
        // An element of the other factor comes from memory with the instruction that uses it, if one does.
        return rows * vectors + vectors + (vectors > 1 ? 1 : 0) <= target_.vector_registers - 1;
    }

    const Loop& loop_at(int i) const { return nest_.parallel[static_cast<std::size_t>(i)]; }

    const Member& member_;
    const Nest& nest_;
    const Target& target_;
    const std::vector<Place>& places_;
    const TileUse use_;
    const bool computed_;
};

class LaneTiler {
  public:
    LaneTiler(const LanePlan& plan, const Member& member, KernelBuilder& builder, TileUse use)
        : plan_(plan), member_(member), nest_(member.nest), builder_(builder), use_(use) {}

    Stmts run() {
        // Windows of neighbouring columns share rows of the image.
        if (plan_.is_window)
            return around(plan_.common, 0, [&] {
                return over_rows([&](const std::vector<Substitution>& rows) {
                    return over_vectors([&](const Int& first, std::int64_t vectors, const Int& count) {
                        return tile(rows, first, vectors, count);
                    });
                });
            });
        return around(plan_.common, 0, [&] {
            return over_vectors([&](const Int& first, std::int64_t vectors, const Int& count) {
                return around(plan_.outer, 0, [&] {
                    return over_rows([&](const std::vector<Substitution>& rows) {
                        return tile(rows, first, vectors, count);
                    });
                });
            });
        });
    }

  private:
    const Loop& loop_at(int i) const { return nest_.parallel[static_cast<std::size_t>(i)]; }

    Stmts around(const std::vector<int>& loops, std::size_t depth, const std::function<Stmts()>& body) const {
        if (depth == loops.size()) return body();
        const Loop& l = loop_at(loops[depth]);
        return {loop(l.variable, 0, l.extent, Binding::serial, around(loops, depth + 1, body))};
    }

    // Blocks of whole registers, then what is left of the lanes.
    Stmts over_vectors(const std::function<Stmts(const Int&, std::int64_t, const Int&)>& body) const {
        const std::int64_t extent = loop_at(plan_.axis).extent.constant(),
                           block = plan_.vectors * plan_.width;
        const std::int64_t whole = extent / block * block, rest = extent - whole;
        Stmts s;
        if (whole == block) {
            append(s, body(0, plan_.vectors, block));
        } else if (whole > 0) {
            const Int first = Int::symbol("lanes", {0, whole - block});
            s.push_back(loop(first, 0, whole, Binding::serial, body(first, plan_.vectors, block), block));
        }
        if (rest > 0) append(s, body(whole, (rest + plan_.width - 1) / plan_.width, rest));
        return s;
    }

    // Tiles of `height` rows, then the rows that are left: as one tile where their number is known.
    Stmts over_rows(const std::function<Stmts(const std::vector<Substitution>&)>& body) const {
        if (plan_.tiled < 0) return body({{}});
        const Loop& l = loop_at(plan_.tiled);
        const Int whole = floordiv(l.extent, plan_.height) * plan_.height, rest = l.extent - whole;
        const auto rows_at = [&](std::int64_t height, const std::function<Int(std::int64_t)>& row) {
            std::vector<Substitution> list;
            for (std::int64_t i = 0; i < height; ++i)
                for (Substitution& s : points(plan_.whole)) {
                    s[l.variable.symbol_id()] = row(i);
                    list.push_back(std::move(s));
                }
            return list;
        };
        const auto rows = [&](const Int& first, std::int64_t height) {
            return rows_at(height, [&](std::int64_t i) { return first + i; });
        };
        Stmts s;
        if (whole.is(plan_.height)) {
            append(s, body(rows(0, plan_.height)));
        } else if (!whole.is(0)) {
            const Int first = Int::symbol("rows", {0, l.extent.range().high});
            s.push_back(
                loop(first, 0, whole, Binding::serial, body(rows(first, plan_.height)), plan_.height));
        }
        if (rest.is_constant()) {
            if (!rest.is(0)) append(s, body(rows(whole, rest.constant())));
            return s;
        }
        // One by one, rows would wait for their own additions. So many take as long as one; those that are
        // too many are the last row once more.
        const std::int64_t together = rows_left_together();
        const Int first = Int::symbol("row", {0, l.extent.range().high});
        if (together > 1)
            s.push_back(loop(
                first, whole, l.extent - 1, Binding::serial,
                body(rows_at(together, [&](std::int64_t i) { return min(first + i, max(l.extent - 1, 0)); })),
                together));
        if (plan_.height > 1) {
            const Int one = Int::symbol("row", {0, l.extent.range().high}),
                      done = together > 1 ? ceildiv(rest - 1, together) * together : Int(0);
            s.push_back(loop(one, whole + done, l.extent, Binding::serial, body(rows(one, 1))));
        }
        return s;
    }

    // Of products that are one narrow tile wide, such as the last layer of a classifier: the text of others
    // would grow, and their additions wait less.
    std::int64_t rows_left_together() const {
        constexpr std::int64_t additions_in_flight = 8, few_vectors = 2;
        const bool thin = plan_.vectors <= few_vectors &&
                          loop_at(plan_.axis).extent.constant() <= plan_.vectors * plan_.width;
        if (!thin || use_ == TileUse::added || builder_.short_text) return 1;
        const auto inside = static_cast<std::int64_t>(points(plan_.whole).size());
        return std::clamp<std::int64_t>(additions_in_flight / (plan_.vectors * inside), 1,
                                        std::max<std::int64_t>(plan_.height - 1, 1));
    }

    std::vector<Substitution> points(const std::vector<int>& loops) const {
        std::vector<Substitution> list{{}};
        for (const int i : loops) {
            std::vector<Substitution> longer;
            for (const Substitution& p : list)
                for (std::int64_t k = 0; k < loop_at(i).extent.constant(); ++k) {
                    longer.push_back(p);
                    longer.back()[loop_at(i).variable.symbol_id()] = k;
                }
            list = std::move(longer);
        }
        return list;
    }

    Stmts tile(const std::vector<Substitution>& rows, const Int& first, std::int64_t vectors,
               const Int& count) {
        const DType dtype = nest_.accumulator;
        const auto height = static_cast<std::int64_t>(rows.size());
        const Int lane = Int::symbol("lane", {0, plan_.width - 1});
        const int acc =
            builder_.scratch(Place::Scope::vector, dtype, {Int(height * vectors), Int(plan_.width)});
        const Destination& stored = member_.destinations.front();
        Stmts start, sum, stop;
        Stmts all{declare(acc)};
        for (std::int64_t v = 0; v < vectors; ++v) {
            Stmts store;
            for (std::int64_t r = 0; r < height; ++r) {
                Substitution here = rows[static_cast<std::size_t>(r)];
                here[loop_at(plan_.axis).variable.symbol_id()] = first + v * plan_.width + lane;
                const std::vector<Int> at{Int(r * vectors + v), lane};
                const auto placed = [&](const Stmt& s) { return substitute(Stmts{s}, here)[0]; };
                const Scalar value = place_read(dtype, acc, at);
                start.push_back(set(acc, at,
                                    use_ == TileUse::continued
                                        ? substitute(place_read(dtype, stored.place, stored.at), here)
                                        : scalar_integer(dtype, 0)));
                for (const Destination& d : member_.destinations)
                    store.push_back(placed(use_ == TileUse::added
                                               ? accumulate(d.place, d.at, Combine::sum, value)
                                               : set(d.place, d.at, value)));
            }
            stop.push_back(
                lanes(lane, min(plan_.width, count - v * plan_.width), plan_.width, std::move(store)));
        }
        const auto sum_of = [&](std::int64_t r, std::int64_t v) {
            Substitution here = rows[static_cast<std::size_t>(r)];
            here[loop_at(plan_.axis).variable.symbol_id()] = first + v * plan_.width + lane;
            return accumulate(acc, {Int(r * vectors + v), lane}, Combine::sum, substitute(nest_.body, here),
                              true);
        };
        // Row by row: an element of the other factor is needed in one register only.
        for (std::int64_t r = 0; r < height; ++r)
            for (std::int64_t v = 0; v < vectors; ++v) sum.push_back(sum_of(r, v));
        all.push_back(lanes(lane, plan_.width, plan_.width, std::move(start)));
        Stmts inside = lets(all, first, vectors);
        if (inside.empty()) append(inside, prefetched(rows[0], first, vectors));
        if (!plan_.reads_exactly) inside.push_back(lanes(lane, plan_.width, plan_.width, std::move(sum)));
        for (std::int64_t v = 0; plan_.reads_exactly && v < vectors; ++v) {
            Stmts own;
            for (std::int64_t r = 0; r < height; ++r) own.push_back(sum_of(r, v));
            inside.push_back(
                lanes(lane, min(plan_.width, count - v * plan_.width), plan_.width, std::move(own)));
        }
        bool innermost = true;
        const std::vector<Loop> inner_first(nest_.reduced.rbegin(), nest_.reduced.rend());
        for (const Loop& l : inner_first) {
            if (!l.variable.symbol_id()) continue;
            inside = {loop(l.variable, 0, l.extent, innermost ? Binding::rolled : Binding::serial,
                           std::move(inside))};
            innermost = false;
        }
        append(all, std::move(inside));
        append(all, std::move(stop));
        return all;
    }

    // Places that vectors are computed from, found at run time: at the start of each term where they vary
    // with it, `before` where they do not.
    Stmts lets(Stmts& before, const Int& first, std::int64_t vectors) const {
        Stmts inside;
        for (const Let& l : nest_.lets) {
            const bool each = std::any_of(nest_.reduced.begin(), nest_.reduced.end(), [&](const Loop& sum) {
                return varies(nest_, scalar_index(DType::int64, l.symbol), sum.variable);
            });
            (each ? inside : before).push_back(let(l.symbol, l.value, l.extent));
        }
        if (inside.empty() || nest_.reduced.size() != 1) return inside;
        const Loop& term = nest_.reduced[0];
        const Int lane = Int::symbol("lane", {0, vectors * plan_.width - 1});
        Nest read;
        read.lets = nest_.lets;
        read.parallel = {{lane, vectors * plan_.width}};
        read.body = substitute(nest_.body->arguments[plan_.swapped ? 0 : 1],
                               Substitution{{loop_at(plan_.axis).variable.symbol_id(), first + lane}});
        Stmts ahead = ask_ahead(read, term.variable, term.extent, builder_);
        append(ahead, std::move(inside));
        return ahead;
    }

    // Of a factor too large for the caches of a core, the columns of the tile that a later term multiplies:
    // where the row of each term is far from the one before, no hardware fetches it.
    Stmts prefetched(Substitution here, const Int& first, std::int64_t vectors) const {
        constexpr std::int64_t terms_ahead = 8, far_apart = 256, most_bytes = 512 << 10;
        const ScalarNode* read =
            read_in_lanes(nest_, nest_.body->arguments[plan_.swapped ? 0 : 1], loop_at(plan_.axis).variable);
        if (!read || builder_.short_text || !nest_.lets.empty()) return {};
        const Place& place = builder_.ir.places[static_cast<std::size_t>(read->operand.place())];
        const std::int64_t size = bytes_of(place.dtype);
        if (place.scope != Place::Scope::global || count_of(place.extents).range().low * size <= most_bytes)
            return {};
        here[loop_at(plan_.axis).variable.symbol_id()] = first;
        std::int64_t apart = 0, inside = 1;  // bytes from term to term, terms of the loops inside
        const std::vector<Loop> inner_first(nest_.reduced.rbegin(), nest_.reduced.rend());
        for (const Loop& l : inner_first) {
            const std::uint64_t id = l.variable.symbol_id();
            if (!id || !l.extent.is_constant()) continue;
            if (apart == 0) {
                const Int step = step_of(place, read->at, l.variable);
                if (!step.is_constant()) return {};
                apart = std::abs(step.constant()) * size;
            }
            const std::int64_t turns = (terms_ahead + inside - 1) / inside;
            if (2 * turns <= l.extent.constant()) {
                if (apart < far_apart) return {};
                here[id] = min(l.variable + turns, l.extent - 1);
                std::vector<Int> at = read->at;
                for (Int& x : at) x = substitute(x, here);
                return {prefetch(read->operand.place(), std::move(at), vectors * plan_.width * size)};
            }
            inside *= l.extent.constant();
        }
        return {};
    }

    const LanePlan& plan_;
    const Member& member_;
    const Nest& nest_;
    KernelBuilder& builder_;
    const TileUse use_;
};

// Maps of floats that are one instruction on vectors, with nothing to round twice.
bool adds_in_lanes(const Op& op) {
    const Opcode opcode = opcode_of(op);
    return opcode == Opcode::add || opcode == Opcode::sub || opcode == Opcode::mul;
}

// Whether nothing that it needs is a variable of the nest.
bool fixed(const Nest& nest, const Scalar& s) {
    const auto with = [&](const Loop& l) { return varies(nest, s, l.variable); };
    return std::none_of(nest.parallel.begin(), nest.parallel.end(), with) &&
           std::none_of(nest.reduced.begin(), nest.reduced.end(), with);
}

}  // namespace

const ScalarNode* read_in_lanes(const Nest& nest, const Scalar& factor, const Int& variable) {
    const ScalarNode* found = nullptr;
    std::vector<Scalar> stack{factor};
    while (!stack.empty()) {
        const Scalar s = stack.back();
        stack.pop_back();
        if (fixed(nest, s)) continue;
        if (s->kind == ScalarNode::Kind::read && s->guards.empty() && !found &&
            s->dtype == nest.accumulator) {
            found = s.get();
            continue;
        }
        if (s->dtype != nest.accumulator) return nullptr;
        const Scalar& x = s->arguments.empty() ? s : s->arguments[0];
        if (s->kind == ScalarNode::Kind::cast && !found && x->kind == ScalarNode::Kind::read &&
            x->guards.empty() && is_integer(x->dtype) && bytes_of(x->dtype) == 1) {
            found = x.get();
            continue;
        }
        if (s->kind != ScalarNode::Kind::apply || !adds_in_lanes(*s->op)) return nullptr;
        stack.insert(stack.end(), s->arguments.begin(), s->arguments.end());
    }
    // The place may vary with the terms of the sum, but with nothing else than lanes among the results.
    for (const Let& l : lets_of(nest, factor))
        for (const Loop& p : nest.parallel)
            if (varies(nest, l.value, p.variable)) return nullptr;
    return found && varies(nest, factor, variable) ? found : nullptr;
}

std::optional<LanePlan> plan_lanes(const Member& member, const Target& target, const KernelBuilder& builder,
                                   TileUse use, bool computed) {
    return LanePlanner(member, target, builder, use, computed).run();
}

Stmts schedule_lanes(const LanePlan& plan, const Member& member, KernelBuilder& builder, TileUse use) {
    return LaneTiler(plan, member, builder, use).run();
}

}  // namespace bitale
