#include "codegen/schedule/pointwise.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/kernel/tails.h"
#include "codegen/nest/product.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/ahead.h"
#include "codegen/schedule/drawn.h"
#include "codegen/schedule/join.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/pieces.h"
#include "codegen/schedule/widened.h"

namespace bitale {

namespace {

constexpr std::int64_t tile = 16, half_tile = 8, fewest_lanes = 8, widest_phase = 4;
// Compilers store so many interleaved vectors at once.
constexpr std::int64_t most_channels = 4;
constexpr std::int64_t fewest_pixels = 32;

class Lanes {
  public:
    Lanes(const Member& member, KernelBuilder& builder) : member_(member), builder_(builder) {
        join_results(member_, builder.ir.places);
    }

    Stmts run() {
        if (const std::optional<std::pair<Member, Member>> parts = whole_blocks()) {
            Stmts all = Lanes(parts->first, builder_).run();
            append(all, Lanes(parts->second, builder_).run());
            return all;
        }
        if (const std::vector<Member> parts = narrow_parts_of(member_); !parts.empty()) {
            Stmts all;
            for (const Member& part : parts) append(all, Lanes(part, builder_).run());
            return all;
        }
        if (!builder_.short_text) {
            block_outer_loops();
            block_channels();
        }
        put_longer_lanes_last();
        if (!nest().parallel.empty()) {
            if (const int across = axis_across_lanes(); across >= 0) return in_tiles(across);
            if (const std::int64_t phases = lanes_together(); phases > 1) return in_phases(phases);
        }
        return one_by_one();
    }

  private:
    Nest& nest() { return member_.nest; }

    Stmts one_by_one() {
        if (std::optional<Stmts> drawn = with_drawn_words()) return *std::move(drawn);
        LoopBuilder loops(nest());
        const auto store = [&](LoopBuilder&) { return block_stores(); };
        const std::vector<Loop>& all = nest().parallel;
        if (goes_past()) return in_blocks();
        if (all.size() < 2) return loops.nest(all, store, Binding::simd);
        const Stmts ahead = block_.size() > 1
                                ? Stmts{}
                                : ask_ahead(nest(), all.front().variable, all.front().extent, builder_);
        if (ahead.empty()) return loops.nest(all, store, Binding::simd);
        return loops.nest({all.front()}, [&](LoopBuilder& inner) {
            Stmts body = ahead;
            append(body, inner.nest({all.begin() + 1, all.end()}, store, Binding::simd));
            return body;
        });
    }

    // Random words of neighbours are drawn a block at a time.
    std::optional<Stmts> with_drawn_words() {
        if (builder_.short_text || block_.size() > 1 || nest().parallel.empty() || !nest().guards.empty())
            return {};
        const Loop last = nest().parallel.back();
        const Int begin = Int::symbol("block", last.variable.range());
        std::optional<DrawnWords> words = drawn_words(nest(), last, begin, builder_);
        if (!words) return {};
        const Substitution here{{last.variable.symbol_id(), begin + words->point.variable}};
        LoopBuilder loops(nest());
        return loops.nest(
            {nest().parallel.begin(), nest().parallel.end() - 1},
            [&](LoopBuilder& inner) {
                Stmts body = words->draws;
                body.push_back(loop(words->point.variable, 0, words->point.extent, Binding::simd,
                                    inner.guarded(substitute(stores(member_, words->body), here), here)));
                return Stmts{loop(begin, 0, last.extent, Binding::serial, std::move(body), drawn_at_once)};
            },
            Binding::serial, last.variable);
    }

    // To one place in memory that the map does not read, neighbour after neighbour.
    bool goes_past() {
        // Line after line goes well through a cache that holds most of it: only more than that is worth it.
        constexpr std::int64_t worth_it = 512, fewest_bytes = 18 << 20;
        if (!member_.past || block_.size() > 1 || nest().parallel.empty() || !nest().guards.empty())
            return false;
        const Loop& last = nest().parallel.back();
        const Destination& to = member_.destinations.front();
        const Place& place = builder_.ir.places[static_cast<std::size_t>(to.place)];
        const std::optional<Int> step = stride_of(offset_of(place, to.at), last.variable);
        const Int count = count_of(place.extents);
        bool plain = last.extent.range().high >= worth_it && step && step->is(1) && count.is_constant() &&
                     count.constant() * bytes_of(place.dtype) >= fewest_bytes;
        for (const Let& l : nest().lets) plain = plain && !varies(nest(), l.value, last.variable);
        for_each_read(nest(), [&](const ScalarNode& s) { plain = plain && s.operand.place() != to.place; });
        return plain;
    }

    // A block at a time in scratch, from where it is stored past the caches.
    Stmts in_blocks() {
        constexpr std::int64_t most = 2048;
        const Loop last = nest().parallel.back();
        const std::int64_t high = last.extent.range().high, length = std::min(high, most);
        const Int begin = high > most ? Int::symbol("block", {0, high - 1}) : Int(0),
                  count = high > most ? min(most, last.extent - begin) : last.extent,
                  point = Int::symbol("point", {0, length - 1});
        const auto at = [&](const Int& x) { return Substitution{{last.variable.symbol_id(), x}}; };
        const DType dtype = nest().dtype;
        const int block = builder_.scratch(Place::Scope::local, dtype, {Int(length)});
        Destination to = member_.destinations.front();
        for (Int& x : to.at) x = substitute(x, at(begin));
        const Scalar value = scalar_cast(dtype, substitute(nest().body, at(begin + point)));
        const Stmts each{loop(point, 0, count, Binding::simd, {set(block, {point}, value)}),
                         streaming_store(to.place, to.at, block, count)};
        LoopBuilder loops(nest());
        return loops.nest(
            {nest().parallel.begin(), nest().parallel.end() - 1},
            [&](LoopBuilder& inner) {
                Stmts body{declare(block)};
                const Stmts own = inner.guarded(each);
                if (high > most)
                    body.push_back(loop(begin, 0, last.extent, Binding::serial, own, most));
                else
                    append(body, own);
                return body;
            },
            Binding::serial, last.variable);
    }

    Stmts block_stores() {
        Stmts all;
        for (const Member& m : results()) append(all, stores(m, m.nest.body));
        return all;
    }

    // ---- blocks of results that share elements

    // k where indices have floordiv(v + c, k) for the loop's variable v: so many results read the same
    // elements. 1 otherwise.
    std::int64_t sharing(const Loop& l) {
        const std::uint64_t id = l.variable.symbol_id();
        if (!id || !l.extent.is_constant()) return 1;
        std::set<std::int64_t> divisors;
        for_each_read(nest().body, [&](const ScalarNode& s) {
            if (stride_of(element(s), l.variable)) return;
            for (const Int& x : s.at)
                for (const Int::Term& t : x.terms())
                    for (const AtomPtr& a : t.atoms)
                        if (a->kind == Atom::Kind::floordiv && a->b.is_constant() &&
                            (a->a - l.variable).is_constant())
                            divisors.insert(a->b.constant());
        });
        if (divisors.size() != 1) return 1;
        const std::int64_t k = *divisors.begin();
        return k <= widest_phase && l.extent.constant() >= k ? k : 1;
    }

    // A let has one value for all results of a block.
    bool has_lets_along(const Loop& l) {
        return std::any_of(nest().lets.begin(), nest().lets.end(), [&](const Let& let) {
            return varies(nest(), let.value, l.variable) || depends_on(let.extent, l.variable.symbol_id());
        });
    }

    // A loop whose last block is not a whole one: what comes before it, and that.
    std::optional<std::pair<Member, Member>> whole_blocks() {
        if (builder_.short_text || !nest().lets.empty()) return {};
        for (std::size_t i = 0; i + 1 < nest().parallel.size(); ++i) {
            const Loop l = nest().parallel[i];
            const std::int64_t k = sharing(l);
            if (k == 1 || l.extent.constant() % k == 0) continue;
            const std::int64_t whole = l.extent.constant() / k * k;
            const auto part = [&](std::int64_t first, std::int64_t count) {
                const Loop some = make_loop("block", count);
                const Substitution here{{l.variable.symbol_id(), some.variable + first}};
                Member m = member_;
                m.nest = substitute(nest(), here);
                m.nest.parallel[i] = some;
                for (Destination& d : m.destinations)
                    for (Int& x : d.at) x = substitute(x, here);
                return m;
            };
            return std::pair{part(0, whole), part(whole, l.extent.constant() - whole)};
        }
        return {};
    }

    // The results of a block are computed side by side, from elements that are read once.
    void block_outer_loops() {
        for (std::size_t i = 0; i + 1 < nest().parallel.size(); ++i) {
            const Loop l = nest().parallel[i];
            const std::int64_t k = sharing(l);
            if (k == 1 || l.extent.constant() % k != 0 || has_lets_along(l)) continue;
            const Loop blocks = make_loop("block", l.extent.constant() / k);
            std::vector<Substitution> longer;
            for (const Substitution& point : block_)
                for (std::int64_t phase = 0; phase < k; ++phase) {
                    longer.push_back(point);
                    longer.back()[l.variable.symbol_id()] = blocks.variable * k + phase;
                }
            block_ = std::move(longer);
            nest().parallel[i] = blocks;
        }
        std::erase_if(nest().parallel, [](const Loop& l) { return l.variable.symbol_id() == 0; });
    }

    // Few results that are neighbours in memory, as the colours of a pixel are, become a block where pixels
    // are many: they would leave most lanes empty.
    //
    //     for pixels, in lanes:  y[pixel, 0] = ..., y[pixel, 1] = ..., y[pixel, 2] = ...
    void block_channels() {
        std::vector<Loop>& all = nest().parallel;
        if (all.size() < 2 || block_.size() > 1) return;
        const Loop last = all.back(), &pixels = all[all.size() - 2];
        if (!last.variable.symbol_id() || !last.extent.is_constant() || last.extent.constant() < 2 ||
            last.extent.constant() > most_channels || pixels.extent.range().high < fewest_pixels ||
            !pixels.variable.symbol_id() || !nest().guards.empty() || has_lets_along(last))
            return;
        block_.clear();
        for (std::int64_t c = 0; c < last.extent.constant(); ++c)
            block_.push_back({{last.variable.symbol_id(), Int(c)}});
        all.pop_back();
    }

    // The value and its destinations for each result of a block.
    std::vector<Member> results() {
        std::vector<Member> list;
        for (const Substitution& point : block_) {
            list.push_back(member_);
            list.back().nest.body = substitute(nest().body, point);
            for (Destination& d : list.back().destinations)
                for (Int& x : d.at) x = substitute(x, point);
        }
        return list;
    }

    template <class Visit>
    void for_each_read_of_block(const Visit& visit) {
        for (const Member& m : results()) for_each_read(m.nest.body, visit);
    }

    void put_longer_lanes_last() {
        std::vector<Loop>& all = nest().parallel;
        if (all.size() < 2 || block_.size() > 1 || fixed(all.back().variable)) return;
        const int longer = longer_lanes(nest(), builder_.shapes());
        if (longer < 0 || fixed(all[static_cast<std::size_t>(longer)].variable)) return;
        std::rotate(all.begin() + longer, all.begin() + longer + 1, all.end());
    }

    // ---- reads across the lanes

    const Loop& lanes() { return nest().parallel.back(); }
    Int element(int place, const std::vector<Int>& at) const {
        return offset_of(builder_.ir.places[static_cast<std::size_t>(place)], at);
    }
    Int element(const ScalarNode& s) const { return element(s.operand.place(), s.at); }
    bool crosses(const ScalarNode& s) {
        const Int offset = element(s);
        if (!depends_on(offset, lanes().variable.symbol_id())) return false;
        const std::optional<Int> step = stride_of(offset, lanes().variable);
        return !step || !step->is(1);
    }

    // The loop along which every read that crosses the lanes goes through memory; -1 if there is none.
    int axis_across_lanes() {
        const Loop& last = lanes();
        if (nest().parallel.size() < 2 || last.extent.range().high < fewest_lanes || fixed(last.variable))
            return -1;
        for (const Destination& d : member_.destinations) {
            const std::optional<Int> step = stride_of(element(d.place, d.at), last.variable);
            if (!step || !step->is(1)) return -1;
        }
        for (std::size_t i = 0; i + 1 < nest().parallel.size(); ++i) {
            const Loop& l = nest().parallel[i];
            if (l.extent.range().high < fewest_lanes || fixed(l.variable)) continue;
            bool any = false, all = true, backwards = false;
            for_each_read_of_block([&](const ScalarNode& s) {
                if (!crosses(s)) return;
                any = true;
                const std::optional<Int> along = stride_of(element(s), l.variable),
                                         step = stride_of(element(s), last.variable);
                backwards = backwards || (along && along->is(-1));
                all = all && along && (along->is(1) || along->is(-1)) && step &&
                      !depends_on(*step, l.variable.symbol_id()) && !written(s.operand.place());
            });
            if (any && all && (!backwards || computed_across(l))) return static_cast<int>(i);
        }
        return -1;
    }

    // No loop over another order of its values can stand for the variable's.
    bool fixed(const Int& variable) {
        const std::vector<Member> all = results();
        return std::any_of(all.begin(), all.end(),
                           [&](const Member& m) { return restricted(m.nest, variable, false); });
    }

    // By this very member: then what is read may change on the way.
    bool written(int place) const {
        return std::any_of(member_.destinations.begin(), member_.destinations.end(),
                           [&](const Destination& d) { return d.place == place; });
    }

    Stmts in_tiles(int across) {
        const Loop last = lanes(), other = nest().parallel[static_cast<std::size_t>(across)];
        std::vector<Loop> around;
        for (const Loop& l : nest().parallel)
            if (!(l.variable == last.variable) && !(l.variable == other.variable)) around.push_back(l);
        LoopBuilder loops(nest());
        const bool moves = moves_alone();
        return loops.nest(around, [&](LoopBuilder& inner) {
            return moves ? turns(inner, last, other) : tiles(inner, last, other);
        });
    }

    // Tile by tile from memory to memory, along the shorter side first: rows of the result are done sooner.
    Stmts turns(LoopBuilder& inner, const Loop& last, const Loop& other) {
        const Int whole = floordiv(last.extent, tile) * tile, rest = last.extent - whole,
                  first = Int::symbol("rows", {0, last.extent.range().high}),
                  second = Int::symbol("columns", {0, other.extent.range().high}),
                  row = Int::symbol("row", {0, tile - 1}), column = Int::symbol("column", {0, tile - 1});
        const Destination& to = member_.destinations.front();
        const auto turn = [&](const Int& begin, const Int& rows) {
            const Substitution here{{last.variable.symbol_id(), begin + row},
                                    {other.variable.symbol_id(), second + column}};
            Destination there = to;
            for (Int& x : there.at) x = substitute(x, here);
            Stmt one = loop(row, 0, rows, Binding::turned,
                            {loop(column, 0, min(tile, other.extent - second), Binding::serial,
                                  {set(there.place, there.at, substitute(nest().body, here))})});
            one.number = member_.past ? 1 : 0;
            return inner.guarded({one});
        };
        const auto along = [&](const Int& variable, const Int& end, Stmts body) {
            return loop(variable, 0, end, Binding::serial, std::move(body), tile);
        };
        Stmts body;
        if (last.extent.range().high < other.extent.range().high) {
            if (!whole.is(0)) body.push_back(along(first, whole, turn(first, tile)));
            if (!rest.is(0)) append(body, turn(whole, rest));
            return {along(second, other.extent, std::move(body))};
        }
        if (!whole.is(0))
            body.push_back(along(first, whole, {along(second, other.extent, turn(first, tile))}));
        if (!rest.is(0)) body.push_back(along(second, other.extent, turn(whole, rest)));
        return body;
    }

    // Whole tiles first, so that the loops over their lanes have a known length.
    Stmts tiles(LoopBuilder& inner, const Loop& last, const Loop& other) {
        const Int whole = floordiv(last.extent, tile) * tile,
                  first = Int::symbol("rows", {0, last.extent.range().high});
        Stmts body;
        if (!whole.is(0))
            body.push_back(
                loop(first, 0, whole, Binding::serial, tiles(inner, last, other, first, tile), tile));
        const Int rest = last.extent - whole;
        if (!rest.is(0)) append(body, tiles(inner, last, other, whole, rest));
        return body;
    }

    // Elements of 4 bytes as they are, to one place in memory, or in whole tiles in the task's scratch.
    bool moves_alone() {
        const Scalar& body = nest().body;
        if (block_.size() > 1 || body->kind != ScalarNode::Kind::read || body->dtype != nest().dtype ||
            bytes_of(body->dtype) != 4 || !body->guards.empty() || !nest().lets.empty() ||
            !nest().guards.empty() || member_.destinations.size() != 1)
            return false;
        const Place::Scope to =
            builder_.ir.places[static_cast<std::size_t>(member_.destinations[0].place)].scope;
        return to == Place::Scope::global || (to == Place::Scope::local && mod(lanes().extent, tile).is(0));
    }

    // The lanes from `first` on, as many as `rows`.
    Stmts tiles(LoopBuilder& inner, const Loop& last, const Loop& other, const Int& first, const Int& rows) {
        const Int second = Int::symbol("columns", {0, other.extent.range().high}),
                  row = Int::symbol("row", {0, tile - 1}), column = Int::symbol("column", {0, tile - 1}),
                  line = Int::symbol("line", {0, tile - 1}), lane = Int::symbol("lane", {0, tile - 1});
        const Int columns = min(tile, other.extent - second);
        const auto at = [&](const Int& l, const Int& o) {
            return Substitution{{last.variable.symbol_id(), first + l},
                                {other.variable.symbol_id(), second + o}};
        };
        Stmts body;
        if (computed_across(other)) {
            // The values themselves are turned, not all that they are computed from.
            const DType dtype = nest().dtype;
            const int values = builder_.scratch(Place::Scope::private_, dtype, {Int(tile), Int(tile)}),
                      across = builder_.scratch(Place::Scope::private_, dtype, {Int(tile), Int(tile)});
            const Scalar value = scalar_cast(dtype, substitute(nest().body, at(row, column)));
            body = {declare(values), declare(across)};
            const Stmts one{set(values, {row, column}, value)};
            body.push_back(loop(row, 0, rows, Binding::serial,
                                {goes_back_ ? loop(column, 0, columns, Binding::simd, one)
                                            : filled_lanes(column, columns, tile, one)}));
            body.push_back(
                loop(row, 0, rows, Binding::turned,
                     {loop(column, 0, columns, Binding::serial,
                           {set(across, {column, row}, place_read(dtype, values, {row, column}))})}));
            const Scalar turned = place_read(dtype, across, {line, lane});
            body.push_back(loop(line, 0, columns, Binding::serial,
                                {loop(lane, 0, rows, Binding::simd,
                                      inner.guarded(substitute(stores(member_, turned), at(lane, line))))}));
            return {loop(second, 0, other.extent, Binding::serial, std::move(body), tile)};
        }
        // By guards, index and place. Guards are the same for a whole tile: only what they let through is
        // there to be read.
        std::map<std::pair<std::vector<Guard>, std::vector<Int>>, int> copies;
        const auto turned = [&](const Scalar& s) -> Scalar {
            if (!crosses(*s)) return s;
            std::vector<Int> key = s->at;
            key.emplace_back(s->operand.place());
            const auto [copy, fresh] = copies.try_emplace({s->guards, std::move(key)}, -1);
            if (fresh) {
                copy->second = builder_.scratch(Place::Scope::private_, s->dtype, {Int(tile), Int(tile)});
                const Scalar from =
                    substitute(place_read(s->dtype, s->operand.place(), s->at), at(row, column));
                const Stmts turn{loop(
                    row, 0, rows, Binding::turned,
                    {loop(column, 0, columns, Binding::serial, {set(copy->second, {column, row}, from)})})};
                body.push_back(declare(copy->second));
                append(body, s->guards.empty() ? turn : Stmts{when(s->guards, turn)});
            }
            return place_read(s->dtype, copy->second, {line, lane}, s->guards, s->otherwise);
        };
        Stmts each;
        for (const Member& m : results())
            append(each, substitute(stores(m, map_reads(m.nest, turned).body), at(lane, line)));
        each = inner.guarded(std::move(each));
        body.push_back(
            loop(line, 0, columns, Binding::serial, {loop(lane, 0, rows, Binding::simd, std::move(each))}));
        return {loop(second, 0, other.extent, Binding::serial, std::move(body), tile)};
    }

    // Several reads cross the lanes and everything runs along the other loop: then a value is computed where
    // what it reads lies side by side, forwards or backwards. Past the last one there is room to read.
    bool computed_across(const Loop& other) {
        std::set<std::vector<Int>> crossing;
        bool along = block_.size() == 1 && nest().lets.empty() && bytes_of(nest().dtype) == 4;
        goes_back_ = false;
        for_each_read(nest().body, [&](const ScalarNode& s) {
            const Place& place = builder_.ir.places[static_cast<std::size_t>(s.operand.place())];
            const std::optional<Int> step = stride_of(element(s), other.variable);
            along = along && step && (step->is(0) || step->is(1) || step->is(-1)) &&
                    bytes_of(place.dtype) <= 4 && (place.scope != Place::Scope::global || !place.written);
            goes_back_ = goes_back_ || (step && step->is(-1));
            if (!crosses(s)) return;
            std::vector<Int> key = s.at;
            key.emplace_back(s.operand.place());
            crossing.insert(std::move(key));
        });
        return along && crossing.size() > 1;
    }

    // ---- lanes that share elements

    // k where indices have floordiv(lane + c, k); 1 otherwise.
    std::int64_t lanes_together() {
        const Loop& last = lanes();
        if (!last.extent.is_constant() || has_lets_along(last)) return 1;
        std::set<std::int64_t> divisors;
        bool plain = true;
        const auto look = [&](const Int& x) {
            for (const Int::Term& t : x.terms())
                for (const AtomPtr& a : t.atoms) {
                    if (a->kind == Atom::Kind::symbol || !depends_on(Int::from(a), last.variable.symbol_id()))
                        continue;
                    if (a->kind == Atom::Kind::floordiv && a->b.is_constant() &&
                        (a->a - last.variable).is_constant())
                        divisors.insert(a->b.constant());
                    else
                        plain = false;
                }
        };
        for_each_read(nest().body, [&](const ScalarNode& s) {
            if (!stride_of(element(s), last.variable))
                for (const Int& x : s.at) look(x);
        });
        if (!plain || divisors.size() != 1) return 1;
        const std::int64_t k = *divisors.begin();
        return k <= widest_phase && last.extent.constant() > k ? k : 1;
    }

    // Each lane has the `phases` results that share its elements.
    Stmts in_phases(std::int64_t phases) {
        const Loop last = lanes();
        const Loop shared = make_loop("shared", ceildiv(last.extent, phases));
        Nest parts = nest();
        parts.parallel.back() = shared;
        const auto result = [&](std::int64_t phase) {
            return Substitution{{last.variable.symbol_id(), shared.variable * phases + phase}};
        };
        LoopBuilder loops(parts);
        if (const std::int64_t whole = whole_vectors(shared, result(0)); whole > 0) {
            parts.parallel.pop_back();
            return loops.nest(
                parts.parallel,
                [&](LoopBuilder&) {
                    Stmts body;
                    for (const Member& m : results())
                        append(body, padded(m, last, shared, phases, whole, result));
                    return body;
                },
                Binding::serial, shared.variable);
        }
        if (last.extent.constant() % phases != 0) return one_by_one();
        return loops.nest(
            parts.parallel,
            [&](LoopBuilder& inner) {
                Stmts body;
                for (const Member& m : results())
                    for (std::int64_t i = 0; i < phases; ++i)
                        append(body, inner.guarded(substitute(stores(m, m.nest.body), result(i))));
                return body;
            },
            Binding::simd);
    }

    // The lanes of a short loop filled up to whole vectors, where what is read beyond the last one is there:
    // scratch, and buffers that this kernel does not write, end with as much. 0 where it is not.
    std::int64_t whole_vectors(const Loop& shared, const Substitution& first) {
        constexpr std::int64_t longest = 64;
        const std::int64_t lanes = shared.extent.constant(),
                           whole = lanes < half_tile ? half_tile : (lanes + tile - 1) / tile * tile;
        if (lanes > longest || lanes < half_tile / 2 || bits_of(nest().dtype) != 32) return 0;
        bool fits = nest().lets.empty();
        for_each_read_of_block([&](const ScalarNode& s) {
            const Place& place = builder_.ir.places[static_cast<std::size_t>(s.operand.place())];
            const std::optional<Int> step = stride_of(substitute(element(s), first), shared.variable);
            fits = fits && step && step->is_constant() && step->constant() >= 0 &&
                   (place.scope != Place::Scope::global || !place.written) &&
                   step->constant() * (whole - lanes) * bytes_of(place.dtype) <= readable_past_end;
        });
        return fits ? whole : 0;
    }

    // Whole vectors to scratch, from where the results are stored.
    template <class Result>
    Stmts padded(const Member& member, const Loop& last, const Loop& shared, std::int64_t phases,
                 std::int64_t whole, const Result& result) {
        const Int lane = Int::symbol("lane", {0, whole - 1});
        const Substitution here{{shared.variable.symbol_id(), lane}};
        const int to = builder_.scratch(Place::Scope::private_, nest().dtype, {Int(whole * phases)});
        Stmts body{declare(to)}, each;
        std::map<std::vector<Int>, Scalar> wide;
        for (std::int64_t i = 0; i < phases; ++i) {
            const Scalar value = widened(substitute(substitute(member.nest.body, result(i)), here),
                                         {lane, shared.extent}, whole, wide, body, builder_);
            each.push_back(set(to, {lane * phases + i}, scalar_cast(nest().dtype, value)));
        }
        body.push_back(filled_lanes(lane, shared.extent, whole, std::move(each)));
        append(body, {loop(last.variable, 0, last.extent, Binding::simd,
                           stores(member, place_read(nest().dtype, to, {last.variable})))});
        return body;
    }

    Member member_;
    KernelBuilder& builder_;
    std::vector<Substitution> block_{{}};  // the results that one turn of the loops computes
    // computed_across: something is read from its end, and there is no room before its beginning.
    bool goes_back_ = false;
};

}  // namespace

Stmts schedule_map(const Member& member, KernelBuilder& builder) { return Lanes(member, builder).run(); }

}  // namespace bitale
