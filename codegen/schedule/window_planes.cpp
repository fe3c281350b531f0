#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/positions.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/plane_parts.h"
#include "codegen/schedule/planes.h"

namespace bitale {

namespace {

constexpr std::int64_t most_taps = 1024, written_out = 16;

bool is_least(Combine combine) { return combine == Combine::min || combine == Combine::argmin; }

void for_each_int(const Scalar& scalar, const std::function<void(const Int&)>& f) {
    for_each_part(scalar, [&](const ScalarNode& s) {
        f(s.index);
        for (const Int& x : s.at) f(x);
        for (const Guard& g : s.guards)
            for (const Int* x : {&g.value, &g.low, &g.high}) f(*x);
    });
}

// Results along one axis, and the cells that their windows have there: cell number result * stride + tap.
struct WindowAxis {
    Loop result, tap;
    std::int64_t results = 1, taps = 1, stride = 1;
    Int cell;
    std::int64_t low = 0, high = 0;  // what lies outside is in no window

    std::int64_t cells() const { return (results - 1) * stride + taps; }
    std::int64_t phases() const { return std::min(stride, taps); }
    std::int64_t reach() const { return (taps - 1) / stride; }  // how far a tap is among its phase, at most
};

class WindowPlanes {
  public:
    WindowPlanes(const Member& member, const Member* also, KernelBuilder& builder)
        : member_(member), also_(also), nest_(member.nest), builder_(builder) {}

    bool plan() {
        if (!is_best_or_position(nest_.combine) || nest_.parallel.size() < 2 || nest_.reduced.size() != 2)
            return false;
        const std::size_t last = nest_.parallel.size() - 1;
        if (!axis(rows_, nest_.parallel[last - 1], nest_.reduced[0]) ||
            !axis(columns_, nest_.parallel[last], nest_.reduced[1]))
            return false;
        if (columns_.results < 2 || rows_.taps * columns_.taps > most_taps) return false;
        Substitution cells;
        for (const WindowAxis* a : {&rows_, &columns_}) {
            const bool by_tap = a->taps > 1;
            if (const std::uint64_t id = a->result.variable.symbol_id())
                cells[id] = by_tap ? Int(0) : a->cell;
            if (const std::uint64_t id = a->tap.variable.symbol_id()) cells[id] = a->cell;
        }
        value_ = substitute(nest_.body, cells);
        dtype_ = accumulator_of(nest_);
        if (!is_float(dtype_) && !is_integer(dtype_)) return false;
        if (is_float(dtype_) && bytes_of(dtype_) < 4) return false;
        if (bytes_of(dtype_) < 4) dtype_ = DType::int32;
        position_dtype_ = bytes_of(dtype_) == 8 ? DType::int64 : DType::int32;
        lanes_ = plane_lanes(dtype_);
        for (const Guard& g : nest_.guards)
            if (!inside({substitute(g.value, cells), substitute(g.low, cells), substitute(g.high, cells)}))
                return false;
        return is_worth_it() && reads_rows() && stores_rows(member_) && (!also_ || stores_rows(*also_)) &&
               choose_block();
    }

    Stmts run() {
        phases_ = builder_.scratch(Place::Scope::local, dtype_,
                                   {Int(rows_.phases() * columns_.stride * phase_size_)});
        best_ = builder_.scratch(Place::Scope::local, dtype_, {Int(count_ + lanes_)});
        Stmts all{declare(phases_), declare(best_)};
        if (wants_position()) {
            position_ = builder_.scratch(Place::Scope::local, position_dtype_, {Int(count_ + lanes_)});
            all.push_back(declare(position_));
        }
        if (!direct_) {
            line_ = builder_.scratch(Place::Scope::local, dtype_, {Int(columns_.cells() + lanes_)});
            all.push_back(declare(line_));
            if (is_padded(columns_)) append(all, filled(line_, 0, columns_.cells()));
        }
        if (wants_position() && is_padded(columns_)) append(all, first_columns());
        append(all, over_planes(nest_, planes_, block_, rows_.results,
                                [&](const PlaneBlock& here) { return block(here); }));
        return all;
    }

  private:
    // ---- what is computed

    // Every index moves `stride` times as far with a result as with a tap.
    bool axis(WindowAxis& a, const Loop& result, const Loop& tap) const {
        if (!result.extent.is_constant() || !tap.extent.is_constant()) return false;
        a.result = result;
        a.tap = tap;
        a.results = result.extent.constant();
        a.taps = tap.extent.constant();
        const std::uint64_t by_result = result.variable.symbol_id(), by_tap = tap.variable.symbol_id();
        for (const Let& l : nest_.lets)
            if (varies(nest_, l.value, result.variable) || varies(nest_, l.value, tap.variable)) return false;
        bool fits = a.results > 0 && a.taps > 0, known = a.results == 1 || a.taps == 1;
        const auto step = [&](const Int& x, const Int& variable) {
            Int s = substitute(x, {{variable.symbol_id(), variable + 1}}) - x;
            fits = fits && !depends_on(s, by_result) && !depends_on(s, by_tap);
            return s;
        };
        const auto look = [&](const Int& x) {
            const bool here = by_result && depends_on(x, by_result), there = by_tap && depends_on(x, by_tap);
            if (here) step(x, result.variable);
            if (there) step(x, tap.variable);
            if (a.results == 1 || a.taps == 1 || (!here && !there)) return;
            const Int by_results = step(x, result.variable), by_taps = step(x, tap.variable);
            if (!known && by_results.is_constant() && by_taps.is_constant() && by_taps.constant() > 0 &&
                by_results.constant() > 0 && by_results.constant() % by_taps.constant() == 0) {
                a.stride = by_results.constant() / by_taps.constant();
                known = true;
            }
            fits = fits && known && by_results == by_taps * a.stride;
        };
        for_each_int(nest_.body, look);
        for (const Guard& g : nest_.guards)
            for (const Int* x : {&g.value, &g.low, &g.high}) look(*x);
        if (!fits || !known) return false;
        a.cell = Int::symbol("cell", {0, a.cells() - 1});
        a.high = a.cells();
        return true;
    }

    // A guard says which cells of one axis there are.
    bool inside(const Guard& g) {
        for (WindowAxis* a : {&rows_, &columns_}) {
            const Int before = g.value - a->cell;
            if (!before.is_constant() || !g.low.is_constant() || !g.high.is_constant()) continue;
            a->low = std::max(a->low, g.low.constant() - before.constant());
            a->high = std::min(a->high, g.high.constant() - before.constant());
            return a->low < a->high;
        }
        return false;
    }

    // Two neighbours at most that no other window has: host compilers take them apart as well by themselves.
    bool is_worth_it() const {
        const bool apart = rows_.taps <= rows_.stride && columns_.taps <= columns_.stride;
        return !apart || columns_.stride > 2 || is_padded(rows_) || is_padded(columns_) ||
               rows_.taps * columns_.taps > written_out;
    }

    // Cells of a row are neighbours wherever they are read.
    bool reads_rows() {
        bool fits = true;
        for_each_read(value_, [&](const ScalarNode& s) {
            const Place& place = builder_.ir.places[static_cast<std::size_t>(s.operand.place())];
            const Int step = step_of(place, s.at, columns_.cell);
            fits = fits && (step.is(0) || step.is(1));
        });
        direct_ = value_->kind == ScalarNode::Kind::read && value_->guards.empty() &&
                  value_->dtype == dtype_ && !is_padded(columns_) &&
                  readable_past_the_end(builder_, *value_) &&
                  step_of(builder_.ir.places[static_cast<std::size_t>(value_->operand.place())], value_->at,
                          columns_.cell)
                      .is(1);
        return fits;
    }

    bool stores_rows(const Member& m) const {
        const bool kept = is_position(m.nest.combine) || m.nest.dtype == accumulator_of(m.nest);
        if (!kept || (!is_integer(m.nest.dtype) && m.nest.dtype != dtype_)) return false;
        return std::all_of(m.destinations.begin(), m.destinations.end(), [&](const Destination& d) {
            return step_of(builder_.ir.places[static_cast<std::size_t>(d.place)], d.at,
                           m.nest.parallel.back().variable)
                .is(1);
        });
    }

    static bool is_padded(const WindowAxis& a) { return a.low > 0 || a.high < a.cells(); }
    bool wants_position() const { return is_position(nest_.combine) || also_; }

    // Planes, or rows of one, at a time: their cells stay in the fastest cache.
    bool choose_block() {
        pitch_ = columns_.results + columns_.reach();
        const auto bytes = [&](std::int64_t planes, std::int64_t rows) {
            each_ = (rows + rows_.reach()) * pitch_;
            count_ = rounded_up(planes * each_, lanes_);
            phase_size_ = rounded_up(count_ + rows_.reach() * pitch_ + columns_.reach() + lanes_, lanes_);
            return rows_.phases() * columns_.stride * phase_size_ * bytes_of(dtype_);
        };
        return choose_planes(nest_, rows_.results, true, bytes, planes_, block_);
    }

    // ---- cells, sorted

    Stmts block(const PlaneBlock& here) {
        Stmts all, sorted, stored;
        const Int plane = planes_ > 1 ? Int::symbol("plane", {0, planes_ - 1}) : Int(0);
        for (std::int64_t phase = 0; phase < rows_.phases(); ++phase) {
            const std::int64_t reach = (rows_.taps - 1 - phase) / rows_.stride;
            const Int row = Int::symbol("row", {0, block_ + reach - 1});
            sorted.push_back(loop(
                row, 0, here.rows + reach, Binding::serial,
                sorted_row(phase, plane * each_ + row * pitch_, (here.first + row) * rows_.stride + phase)));
        }
        append(all, in_planes(nest_, here, plane, std::move(sorted)));
        append(all, results_of_block(here, plane));
        const Int row = Int::symbol("row", {0, block_ - 1});
        append(stored, stored_row(member_, here, plane, row));
        if (also_) append(stored, stored_row(*also_, here, plane, row));
        stored = {loop(row, 0, here.rows, Binding::serial, std::move(stored))};
        append(all, in_planes(nest_, here, plane, std::move(stored)));
        return all;
    }

    Stmts sorted_row(std::int64_t phase, const Int& to, const Int& cell) {
        const auto at = [&](std::int64_t column_phase) {
            return (phase * columns_.stride + column_phase) * phase_size_ + to;
        };
        Stmts there;
        const Scalar value = substitute(value_, {{rows_.cell.symbol_id(), cell}});
        Scalar from;
        if (direct_) {
            from = substitute(value, {{columns_.cell.symbol_id(), Int(0)}});
        } else {
            there.push_back(loop(columns_.cell, columns_.low, columns_.high, Binding::simd,
                                 {set(line_, {columns_.cell}, scalar_cast(dtype_, value))}));
            from = place_read(dtype_, line_, {Int(0)});
        }
        there.push_back(
            deinterleave(phases_, {at(0)}, phase_size_, from, columns_.stride, pitch_, columns_.cells()));
        const IntRange cells = cell.range();
        const bool above = cells.low < rows_.low, below = cells.high >= rows_.high;
        if (!above && !below) return there;
        Stmts outside;
        for (std::int64_t p = 0; p < columns_.stride; ++p) append(outside, filled(phases_, at(p), pitch_));
        Stmts all{when({{cell, rows_.low, rows_.high}}, std::move(there))};
        if (above) all.push_back(when({{cell, 0, rows_.low}}, outside));
        if (below) all.push_back(when({{cell, rows_.high, rows_.cells()}}, outside));
        return all;
    }

    // With what no cell is worse than.
    Stmts filled(int place, const Int& from, std::int64_t count) const {
        // What comes behind is written later, or nobody's.
        const std::int64_t whole = rounded_up(count, lanes_);
        const Int e = Int::symbol("e", {0, whole - 1});
        return {loop(e, 0, whole, Binding::simd, {set(place, {from + e}, worst())})};
    }

    Scalar worst() const { return is_least(nest_.combine) ? highest_of(dtype_) : lowest_of(dtype_); }

    // ---- results

    // The first column of each window that there is.
    Stmts first_columns() {
        columns_of_windows_ =
            builder_.scratch(Place::Scope::local, position_dtype_, {Int(columns_.results + lanes_)});
        const Int x = Int::symbol("x", {0, columns_.results - 1});
        return {declare(columns_of_windows_),
                loop(x, 0, columns_.results, Binding::simd,
                     {set(columns_of_windows_, {x}, scalar_index(position_dtype_, first_tap(columns_, x)))})};
    }

    static Int first_tap(const WindowAxis& a, const Int& result) {
        return a.low > 0 ? max(0, a.low - result * a.stride) : Int(0);
    }

    Stmts results_of_block(const PlaneBlock& here, const Int& plane) {
        const bool guarded = is_padded(rows_) || is_padded(columns_);
        const bool in_loops = builder_.short_text || rows_.taps * columns_.taps > written_out;
        Stmts all;
        if (wants_position() && guarded) {
            // Where nothing is better than what is outside, the first cell that there is has won.
            const Int row = Int::symbol("row", {0, block_ - 1}),
                      x = Int::symbol("x", {0, columns_.results - 1});
            Scalar start = scalar_index(position_dtype_, first_tap(rows_, here.first + row) * columns_.taps);
            if (is_padded(columns_))
                start = scalar_apply(Opcode::add, position_dtype_,
                                     {start, place_read(position_dtype_, columns_of_windows_, {x})});
            const Int to = plane * each_ + row * pitch_ + x;
            Stmts rows{loop(row, 0, here.rows, Binding::serial,
                            {loop(x, 0, columns_.results, Binding::simd, {set(position_, {to}, start)})})};
            append(all, in_planes(nest_, here, plane, std::move(rows)));
        }
        append(all, in_loops ? taps_in_loops(guarded) : taps_written_out(guarded));
        return all;
    }

    Scalar cell_at(const Int& ky, const Int& kx, const Int& point) const {
        const Int phase = mod(ky, rows_.stride) * columns_.stride + mod(kx, columns_.stride),
                  far = floordiv(ky, rows_.stride) * pitch_ + floordiv(kx, columns_.stride);
        return place_read(dtype_, phases_, {phase * phase_size_ + far + point});
    }

    // A value and its number among the taps.
    struct Best {
        Scalar value, position;
    };

    // The second where it is better: a NaN is, and stays. They are kept in variables.
    Best better(Stmts& body, const Best& first, const Best& second) const {
        const bool least = is_least(nest_.combine);
        if (!wants_position())
            return {kept(body, scalar_apply(least ? Opcode::minimum : Opcode::maximum, dtype_,
                                            {first.value, second.value})),
                    nullptr};
        Scalar wins = scalar_apply(
            Opcode::logical_not, DType::boolean,
            {scalar_apply(least ? Opcode::ge : Opcode::le, DType::boolean, {second.value, first.value})});
        if (is_float(dtype_))
            wins = scalar_apply(Opcode::bitwise_and, DType::boolean,
                                {wins, scalar_apply(Opcode::eq, DType::boolean, {first.value, first.value})});
        wins = kept(body, wins);
        return {kept(body, scalar_apply(Opcode::where, dtype_, {wins, second.value, first.value})),
                kept(body,
                     scalar_apply(Opcode::where, position_dtype_, {wins, second.position, first.position}))};
    }

    Scalar kept(Stmts& body, const Scalar& value) const {
        const int place = builder_.scratch(Place::Scope::private_, value->dtype, {});
        body.push_back(declare(place));
        body.push_back(set(place, {}, value));
        return place_read(value->dtype, place, {});
    }

    // Halves by themselves: what is compared later need not wait for all that comes before it.
    Best best_of(Stmts& body, std::int64_t begin, std::int64_t end, const Int& point) const {
        if (begin + 1 == end)
            return {kept(body, cell_at(begin / columns_.taps, begin % columns_.taps, point)),
                    wants_position() ? scalar_integer(position_dtype_, begin) : nullptr};
        const std::int64_t middle = (begin + end) / 2;
        const Best first = best_of(body, begin, middle, point);
        return better(body, first, best_of(body, middle, end, point));
    }

    Stmts taps_written_out(bool guarded) const {
        const Int point = Int::symbol("point", {0, count_ - 1});
        Stmts body;
        Best best = best_of(body, 0, rows_.taps * columns_.taps, point);
        if (guarded && wants_position())
            best = better(body, {kept(body, worst()), place_read(position_dtype_, position_, {point})}, best);
        body.push_back(set(best_, {point}, best.value));
        if (wants_position()) body.push_back(set(position_, {point}, best.position));
        return {loop(point, 0, count_, Binding::simd, std::move(body))};
    }

    Stmts taps_in_loops(bool guarded) {
        const auto over_points = [&](const std::function<Stmts(const Int&)>& body) {
            const Int point = Int::symbol("point", {0, count_ - 1});
            return loop(point, 0, count_, Binding::simd, body(point));
        };
        Stmts all{over_points([&](const Int& point) {
            Stmts s{set(best_, {point}, guarded ? worst() : cell_at(0, 0, point))};
            if (wants_position() && !guarded)
                s.push_back(set(position_, {point}, scalar_integer(position_dtype_, 0)));
            return s;
        })};
        // A first cell that meets itself again does not win.
        const Int ky = loop_variable("ky", rows_.taps), kx = loop_variable("kx", columns_.taps);
        Stmts inner{over_points([&](const Int& point) {
            Stmts s;
            const Best old{kept(s, place_read(dtype_, best_, {point})),
                           wants_position() ? place_read(position_dtype_, position_, {point}) : nullptr},
                here{kept(s, cell_at(ky, kx, point)),
                     wants_position() ? scalar_index(position_dtype_, ky * columns_.taps + kx) : nullptr};
            const Best best = better(s, old, here);
            s.push_back(set(best_, {point}, best.value));
            if (wants_position()) s.push_back(set(position_, {point}, best.position));
            return s;
        })};
        if (kx.symbol_id()) inner = {loop(kx, 0, columns_.taps, Binding::serial, std::move(inner))};
        if (ky.symbol_id()) inner = {loop(ky, 0, rows_.taps, Binding::serial, std::move(inner))};
        append(all, std::move(inner));
        return all;
    }

    static Int loop_variable(const char* name, std::int64_t extent) {
        return extent > 1 ? Int::symbol(name, {0, extent - 1}) : Int(0);
    }

    Stmts stored_row(const Member& m, const PlaneBlock& block, const Int& plane, const Int& row) const {
        const bool position = is_position(m.nest.combine);
        const DType dtype = position ? position_dtype_ : dtype_;
        const std::size_t last = m.nest.parallel.size() - 1;
        Stmts all;
        for (std::int64_t x = 0; x < columns_.results; x += lanes_) {
            const Int lane = Int::symbol("lane", {0, lanes_ - 1});
            Substitution here{{m.nest.parallel[last].variable.symbol_id(), x + lane}};
            if (const std::uint64_t id = m.nest.parallel[last - 1].variable.symbol_id())
                here[id] = block.first + row;
            const Scalar value = scalar_cast(
                m.nest.dtype,
                place_read(dtype, position ? position_ : best_, {plane * each_ + row * pitch_ + x + lane}));
            Stmts each;
            for (const Destination& d : m.destinations) {
                std::vector<Int> at = d.at;
                for (Int& i : at) i = substitute(i, here);
                each.push_back(set(d.place, at, value));
            }
            all.push_back(lanes(lane, std::min(lanes_, columns_.results - x), lanes_, std::move(each)));
        }
        return all;
    }

    const Member& member_;
    const Member* const also_;
    const Nest& nest_;
    KernelBuilder& builder_;
    WindowAxis rows_, columns_;
    Scalar value_;  // over cells
    DType dtype_ = DType::float32, position_dtype_ = DType::int32;
    std::int64_t lanes_ = 16;
    bool direct_ = false;  // the value is an element where rows lie in memory
    // Elements from row to row, from plane to plane, in all, and in a phase; rows and planes at a time.
    std::int64_t pitch_ = 0, each_ = 0, count_ = 0, phase_size_ = 0, block_ = 1, planes_ = 1;
    int phases_ = -1, best_ = -1, position_ = -1, line_ = -1, columns_of_windows_ = -1;
};

}  // namespace

std::optional<Stmts> schedule_window_planes(const Member& member, const Member* also,
                                            KernelBuilder& builder) {
    WindowPlanes planes(member, also, builder);
    if (!planes.plan()) return {};
    return planes.run();
}

}  // namespace bitale
