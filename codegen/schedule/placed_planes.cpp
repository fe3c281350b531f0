#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/plane_parts.h"
#include "codegen/schedule/planes.h"

namespace bitale {

namespace {

constexpr std::int64_t most_stride = 8, most_terms = 64, together_terms = 16;

bool has_numbers(const Scalar& scalar) {
    return any_part(scalar, [](const ScalarNode& s) { return s.kind == ScalarNode::Kind::index; });
}

// A result's place along one axis: number * stride + phase.
struct PlaceAxis {
    Loop result;
    std::int64_t results = 1, stride = 1;
    Int number;

    std::int64_t numbers() const { return (results + stride - 1) / stride; }
};

class PlacedPlanes {
  public:
    PlacedPlanes(const Member& member, KernelBuilder& builder)
        : member_(member), nest_(member.nest), builder_(builder) {}

    bool plan() {
        const bool sum = nest_.combine == Combine::sum;
        if ((nest_.combine != Combine::none && !sum) || nest_.parallel.size() < 2 || !nest_.guards.empty())
            return false;
        dtype_ = nest_.dtype;
        if ((dtype_ != DType::float32 && dtype_ != DType::float64) || adds_products(nest_)) return false;
        if (sum && (nest_.accumulator != dtype_ || member_.tree.split || member_.tree.lanes > 1))
            return false;
        // Terms are written out, but what is looked up is so once for all of them.
        for (const Let& let : nest_.lets)
            for (const Loop& l : nest_.reduced)
                if (varies(nest_, let.value, l.variable) || depends_on(let.extent, l.variable.symbol_id()))
                    return false;
        const std::size_t last = nest_.parallel.size() - 1;
        if (!axis(rows_, nest_.parallel[last - 1]) || !axis(columns_, nest_.parallel[last])) return false;
        // Phases of two, each of one value, host compilers put together as well by themselves.
        if (!sum && columns_.stride <= 2) return false;
        if (rows_.stride == 1 && columns_.stride == 1 && !has_numbers(nest_.body)) return false;
        lanes_ = plane_lanes(dtype_);
        return stores_rows() && choose_terms() && choose_block();
    }

    Stmts run() {
        Stmts all;
        for (Copy& copy : copies_) {
            if (copy.none) continue;
            copy.place = builder_.scratch(Place::Scope::local, copy.dtype, {Int(copy.size)});
            all.push_back(declare(copy.place));
            append(all, filled(copy, 0, copy.size));
        }
        results_ = builder_.scratch(Place::Scope::local, dtype_,
                                    {Int(rows_.stride * columns_.stride * count_ + lanes_)});
        all.push_back(declare(results_));
        append(all, over_planes(nest_, planes_, block_, rows_.numbers(),
                                [&](const PlaneBlock& here) { return block(here); }));
        return all;
    }

  private:
    // A plane that results read: rows of it in scratch, and what is read outside of them.
    struct Copy {
        Scalar read;                      // over the numbers of its rows and columns
        std::size_t row = 0, column = 0;  // axes of what is read
        std::int64_t rows = 0, columns = 0;
        Scalar outside;
        DType dtype = DType::float32;
        std::int64_t low_row = 0, high_row = 0, low_column = 0, high_column = 0;  // how far away it is read
        bool exact = false;  // nothing may be read behind a row
        bool none = false;   // its planes lie in memory as results do
        std::int64_t size = 0;
        int place = -1;
    };

    // ---- what is computed

    bool axis(PlaceAxis& a, const Loop& result) const {
        if (!result.extent.is_constant() || !result.variable.symbol_id()) return false;
        for (const Let& l : nest_.lets)
            if (varies(nest_, l.value, result.variable)) return false;
        a.result = result;
        a.results = result.extent.constant();
        std::int64_t divisor = 1;
        bool one = true;
        for_each_read(nest_.body, [&](const ScalarNode& s) {
            for (const Int& x : s.at)
                for (const Int::Term& t : x.terms())
                    for (const AtomPtr& atom : t.atoms) {
                        if (atom->kind != Atom::Kind::floordiv || !atom->b.is_constant() ||
                            !(atom->a - result.variable).is_constant())
                            continue;
                        one = one && (divisor == 1 || divisor == atom->b.constant());
                        divisor = atom->b.constant();
                    }
        });
        a.stride = divisor;
        if (!one || a.stride < 1 || a.stride > most_stride || a.stride > a.results) return false;
        a.number = Int::symbol("number", {0, a.numbers() - 1});
        return true;
    }

    bool stores_rows() const {
        return std::all_of(member_.destinations.begin(), member_.destinations.end(),
                           [&](const Destination& d) {
                               return step_of(builder_.ir.places[static_cast<std::size_t>(d.place)], d.at,
                                              columns_.result.variable)
                                   .is(1);
                           });
    }

    // The value of each phase, over copies.
    bool choose_terms() {
        const std::vector<Substitution> points = points_of(nest_.reduced);
        const auto phases = rows_.stride * columns_.stride;
        if (points.empty() || static_cast<std::int64_t>(points.size()) * phases > most_terms) return false;
        for (std::int64_t ry = 0; ry < rows_.stride; ++ry)
            for (std::int64_t rx = 0; rx < columns_.stride; ++rx) {
                const Substitution phase{
                    {rows_.result.variable.symbol_id(), rows_.number * rows_.stride + ry},
                    {columns_.result.variable.symbol_id(), columns_.number * columns_.stride + rx}};
                std::vector<Scalar> terms;
                for (const Substitution& point : points) {
                    const Scalar term =
                        over_copies(choices_as_reads(substitute(substitute(nest_.body, point), phase)));
                    if (!term) return false;
                    const bool dead = applies(*term, Opcode::where) && is_positive_zero(term->arguments[1]) &&
                                      is_positive_zero(term->arguments[2]);
                    if (nest_.combine == Combine::none || !dead) terms.push_back(term);
                }
                terms_.push_back(std::move(terms));
            }
        return !copies_.empty() && copies_.size() <= 4;
    }

    // Where what a condition reads has its guards, and does not hold outside of them, a choice by the same
    // guards is a value whose own reads have them.
    static Scalar choices_as_reads(const Scalar& term) {
        return rebuild(term, [](const std::shared_ptr<ScalarNode>& s) -> Scalar {
            if (!applies(*s, Opcode::where) || s->arguments[1]->kind != ScalarNode::Kind::select ||
                !fails_outside(*s->arguments[0], s->arguments[1]->guards))
                return s;
            const std::vector<Guard> guards = s->arguments[1]->guards;
            s->arguments[1] =
                rebuild(s->arguments[1]->arguments[0], [&](const std::shared_ptr<ScalarNode>& x) {
                    if (x->kind == ScalarNode::Kind::read && x->guards.empty()) {
                        x->guards = guards;
                        x->otherwise =
                            is_integer(x->dtype) ? scalar_integer(x->dtype, 0) : scalar_constant(x->dtype, 0);
                    }
                    return Scalar(x);
                });
            return s;
        });
    }

    // read(guards, else 9) == 4
    static bool fails_outside(const ScalarNode& condition, const std::vector<Guard>& guards) {
        if (guards.empty() || !applies(condition, Opcode::eq)) return false;
        const ScalarNode *read = condition.arguments[0].get(), *number = condition.arguments[1].get();
        while (read->kind == ScalarNode::Kind::cast) read = read->arguments[0].get();
        if (read->kind != ScalarNode::Kind::read || read->guards != guards || !is_integer(read->dtype) ||
            read->otherwise->kind != ScalarNode::Kind::constant)
            return false;
        const bool known = number->kind == ScalarNode::Kind::constant ||
                           (number->kind == ScalarNode::Kind::index && number->index.is_constant());
        return known &&
               read->otherwise->integer !=
                   (number->kind == ScalarNode::Kind::index ? number->index.constant() : number->integer);
    }

    bool of_plane(const Int& x) const {
        return depends_on(x, rows_.number.symbol_id()) || depends_on(x, columns_.number.symbol_id());
    }

    // Reads of planes as reads of operand -1 - number of the copy, at the distances from the result's number;
    // null where something is read otherwise.
    Scalar over_copies(const Scalar& scalar) {
        return rebuild(scalar, [&](const std::shared_ptr<ScalarNode>& s) -> Scalar {
            const auto here = [&](const Int& x) { return of_plane(x); };
            switch (s->kind) {
                case ScalarNode::Kind::read:
                    return s->guards.empty() && std::none_of(s->at.begin(), s->at.end(), here) ? s
                                                                                               : copied(*s);
                case ScalarNode::Kind::select: return nullptr;
                case ScalarNode::Kind::index: return of_plane(s->index) ? nullptr : s;
                case ScalarNode::Kind::cast: {
                    // What was widened to be copied is as wide as it becomes.
                    const ScalarNode& from = *s->arguments[0];
                    const bool widened = from.kind == ScalarNode::Kind::cast &&
                                         from.arguments[0]->kind == ScalarNode::Kind::read &&
                                         from.arguments[0]->operand.is_copy();
                    return widened ? scalar_cast(s->dtype, from.arguments[0]) : s;
                }
                default: return s;
            }
        });
    }

    Scalar copied(const ScalarNode& s) {
        const Place& place = builder_.ir.places[static_cast<std::size_t>(s.operand.place())];
        Copy copy;
        bool has_row = false, has_column = false;
        for (std::size_t d = 0; d < s.at.size(); ++d) {
            if (!of_plane(s.at[d])) continue;
            const bool row = (s.at[d] - rows_.number).is_constant(),
                       column = (s.at[d] - columns_.number).is_constant();
            if (row == column || (row && has_row) || (column && has_column)) return nullptr;
            (row ? copy.row : copy.column) = d;
            (row ? has_row : has_column) = true;
        }
        if (!has_row || !has_column || !place.extents[copy.row].is_constant() ||
            !place.extents[copy.column].is_constant() || !step_of(place, s.at, columns_.number).is(1))
            return nullptr;
        for (const Guard& g : s.guards) {
            const Int above = g.value - g.low, below = g.high - g.value;
            if (above.is_constant() && below.is_constant()) {
                if (above.constant() >= 0 && below.constant() > 0) continue;
                return s.otherwise->kind == ScalarNode::Kind::constant ? s.otherwise : nullptr;
            }
            const bool whole = std::any_of(s.at.begin(), s.at.end(), [&](const Int& x) {
                const auto d = static_cast<std::size_t>(&x - s.at.data());
                return (d == copy.row || d == copy.column) && g.value == x && g.low.is(0) &&
                       g.high == place.extents[d];
            });
            if (!whole) return nullptr;
        }
        copy.outside = s.otherwise ? s.otherwise : scalar_integer(s.dtype, 0);
        if (copy.outside->kind != ScalarNode::Kind::constant) return nullptr;
        const std::int64_t row = (s.at[copy.row] - rows_.number).constant(),
                           column = (s.at[copy.column] - columns_.number).constant();
        copy.dtype = is_integer(s.dtype) && bytes_of(s.dtype) < 4 ? DType::int32 : s.dtype;
        if (bytes_of(copy.dtype) < 4) return nullptr;
        copy.rows = place.extents[copy.row].constant();
        copy.columns = place.extents[copy.column].constant();
        copy.exact = !readable_past_the_end(builder_, s);
        auto read = std::make_shared<ScalarNode>(s);
        read->guards.clear();
        read->otherwise = nullptr;
        read->at[copy.row] = rows_.number;
        read->at[copy.column] = columns_.number;
        copy.read = read;
        copy.low_row = copy.high_row = row;
        copy.low_column = copy.high_column = column;
        const int number = number_of(copy);
        const auto here = scalar_read(copy.dtype, Operand::of_copy(number), {Int(row), Int(column)});
        return scalar_cast(s.dtype, here);
    }

    int number_of(const Copy& wanted) {
        for (std::size_t i = 0; i < copies_.size(); ++i) {
            Copy& c = copies_[i];
            if (!same_scalars(c.read, wanted.read) || !same_scalars(c.outside, wanted.outside)) continue;
            c.low_row = std::min(c.low_row, wanted.low_row);
            c.high_row = std::max(c.high_row, wanted.high_row);
            c.low_column = std::min(c.low_column, wanted.low_column);
            c.high_column = std::max(c.high_column, wanted.high_column);
            return static_cast<int>(i);
        }
        copies_.push_back(wanted);
        return static_cast<int>(copies_.size()) - 1;
    }

    // A factor of each plane, or the plane's own number, is not among the copies.
    bool are_alike() const {
        if (nest_.parallel.size() < 3) return true;
        const std::uint64_t plane = nest_.parallel[nest_.parallel.size() - 3].variable.symbol_id();
        return std::none_of(terms_.begin(), terms_.end(), [&](const std::vector<Scalar>& terms) {
            return std::any_of(terms.begin(), terms.end(),
                               [&](const Scalar& t) { return depends_on(t, plane); });
        });
    }

    bool choose_block() {
        std::int64_t reach = 0;
        for (const Copy& c : copies_) {
            left_ = std::max(left_, -c.low_column);
            reach = std::max(reach, c.high_row - c.low_row);
        }
        for (const Copy& c : copies_)
            pitch_ = std::max(pitch_, left_ + std::max(c.columns, columns_.numbers() + c.high_column));
        const auto bytes = [&](std::int64_t planes, std::int64_t rows) {
            each_ = (rows + reach) * pitch_;
            count_ = rounded_up(planes * each_, lanes_);
            std::int64_t all = rows_.stride * columns_.stride * count_ * bytes_of(dtype_);
            for (Copy& c : copies_) {
                c.size = rounded_up(count_ + reach * pitch_ + left_ +
                                        std::max<std::int64_t>(0, c.high_column) + 2 * plane_lanes(c.dtype),
                                    plane_lanes(c.dtype));
                all += c.size * bytes_of(c.dtype);
            }
            return all;
        };
        if (!choose_planes(nest_, rows_.numbers(), are_alike(), bytes, planes_, block_)) return false;
        for (Copy& c : copies_) c.none = in_place(c);
        return true;
    }

    bool in_place(const Copy& c) const {
        const bool only_here = c.low_row == 0 && c.high_row == 0 && c.low_column == 0 && c.high_column == 0;
        if (!only_here || c.exact || c.columns != pitch_ || c.rows < rows_.numbers()) return false;
        // The last block of rows, and lanes of wider elements, would be read far behind the plane.
        if (planes_ == 1 && rows_.numbers() % block_ != 0) return false;
        if (bytes_of(c.read->dtype) > bytes_of(dtype_)) return false;
        const Place& place = builder_.ir.places[static_cast<std::size_t>(c.read->operand.place())];
        const Int* plane = planes_ > 1 ? &nest_.parallel[nest_.parallel.size() - 3].variable : nullptr;
        return step_of(place, c.read->at, rows_.number).is(pitch_) &&
               (!plane || step_of(place, c.read->at, *plane).is(each_));
    }

    // ---- copies

    Stmts filled(const Copy& copy, const Int& from, std::int64_t count) const {
        // What comes behind is written later, or nobody's.
        const std::int64_t whole = rounded_up(count, plane_lanes(copy.dtype));
        const Int e = Int::symbol("e", {0, whole - 1});
        return {loop(e, 0, whole, Binding::simd,
                     {set(copy.place, {from + e}, scalar_cast(copy.dtype, copy.outside))})};
    }

    Stmts copied_row(const Copy& copy, const Int& start, const Int& from) const {
        const std::int64_t width = plane_lanes(copy.dtype),
                           count = copy.exact ? copy.columns : rounded_up(copy.columns, width);
        const Int x = Int::symbol("x", {0, std::max<std::int64_t>(1, count - 1)});
        Scalar value = scalar_cast(copy.dtype, substitute(copy.read, {{rows_.number.symbol_id(), from},
                                                                      {columns_.number.symbol_id(), x}}));
        if (count > copy.columns)
            value = scalar_select({{x, 0, copy.columns}}, value, scalar_cast(copy.dtype, copy.outside));
        const Int to = start + left_;
        Stmts there{loop(x, 0, count, Binding::simd, {set(copy.place, {to + x}, value)})};
        if (from.range().low >= 0 && from.range().high < copy.rows) return there;
        const Stmts outside = filled(copy, start, pitch_);
        return {when({{from, 0, copy.rows}}, std::move(there)),
                when({{from, std::min<std::int64_t>(copy.low_row, -1), 0}}, outside),
                when({{from, copy.rows, std::max(copy.rows, rows_.numbers() + copy.high_row) + 1}}, outside)};
    }

    // ---- results

    Stmts block(const PlaneBlock& here) {
        Stmts all, copied, stored;
        const Int plane = planes_ > 1 ? Int::symbol("plane", {0, planes_ - 1}) : Int(0);
        for (const Copy& copy : copies_) {
            if (copy.none) continue;
            const std::int64_t reach = copy.high_row - copy.low_row;
            const Int row = Int::symbol("row", {0, block_ + reach - 1});
            copied.push_back(
                loop(row, 0, here.rows + reach, Binding::serial,
                     copied_row(copy, plane * each_ + row * pitch_, here.first + row + copy.low_row)));
        }
        append(all, in_planes(nest_, here, plane, std::move(copied)));
        std::size_t terms = 0;
        for (const std::vector<Scalar>& t : terms_) terms += t.size();
        const bool at_once = static_cast<std::int64_t>(terms) <= together_terms;
        for (std::int64_t ry = 0; ry < rows_.stride; ry += at_once ? rows_.stride : 1)
            all.push_back(phases(here, ry, at_once ? rows_.stride : ry + 1));
        const Int row = Int::symbol("row", {0, block_ - 1});
        for (std::int64_t ry = 0; ry < rows_.stride; ++ry)
            append(stored,
                   stored_row(ry, (here.first + row) * rows_.stride + ry, plane * each_ + row * pitch_));
        stored = {loop(row, 0, here.rows, Binding::serial, std::move(stored))};
        append(all, in_planes(nest_, here, plane, std::move(stored)));
        return all;
    }

    Stmt phases(const PlaneBlock& here, std::int64_t begin, std::int64_t end) const {
        const Int point = Int::symbol("point", {0, count_ - 1});
        Stmts body;
        for (std::int64_t phase = begin * columns_.stride; phase < end * columns_.stride; ++phase) {
            const std::vector<Scalar>& terms = terms_[static_cast<std::size_t>(phase)];
            Scalar value;
            if (nest_.combine == Combine::none) {
                value = placed(terms.front(), here, point);
            } else {
                value = scalar_integer(dtype_, 0);
                for (const Scalar& t : terms)
                    value = scalar_apply(Opcode::add, dtype_,
                                         {value, scalar_cast(dtype_, placed(t, here, point))});
            }
            body.push_back(set(results_, {phase * count_ + point}, scalar_cast(dtype_, value)));
        }
        return loop(point, 0, count_, Binding::simd, std::move(body));
    }

    Scalar placed(const Scalar& scalar, const PlaneBlock& here, const Int& point) const {
        return rebuild(scalar, [&](const std::shared_ptr<ScalarNode>& s) -> Scalar {
            if (s->kind == ScalarNode::Kind::cast && s->dtype == s->arguments[0]->dtype)
                return s->arguments[0];
            if (s->kind != ScalarNode::Kind::read || !s->operand.is_copy()) return s;
            const Copy& copy = copies_[static_cast<std::size_t>(s->operand.copy())];
            if (!copy.none)
                return place_read(copy.dtype, copy.place,
                                  {point + (s->at[0] - copy.low_row) * pitch_ + left_ + s->at[1]});
            Substitution there{{rows_.number.symbol_id(), here.first}, {columns_.number.symbol_id(), point}};
            if (planes_ > 1)
                there[nest_.parallel[nest_.parallel.size() - 3].variable.symbol_id()] = here.plane;
            return scalar_cast(copy.dtype, substitute(copy.read, there));
        });
    }

    Stmts stored_row(std::int64_t phase, const Int& y, const Int& start) const {
        const Scalar from = place_read(dtype_, results_, {phase * columns_.stride * count_ + start});
        Stmts all;
        for (const Destination& d : member_.destinations) {
            std::vector<Int> at = d.at;
            for (Int& x : at)
                x = substitute(
                    x, {{rows_.result.variable.symbol_id(), y}, {columns_.result.variable.symbol_id(), 0}});
            all.push_back(
                interleave(d.place, std::move(at), columns_.results, from, columns_.stride, count_));
        }
        const std::int64_t last = (rows_.numbers() - 1) * rows_.stride + phase;
        return last < rows_.results ? all : Stmts{when({{y, 0, rows_.results}}, std::move(all))};
    }

    const Member& member_;
    const Nest& nest_;
    KernelBuilder& builder_;
    PlaceAxis rows_, columns_;
    DType dtype_ = DType::float32;
    std::int64_t lanes_ = 16;
    std::vector<std::vector<Scalar>> terms_;  // by phase: what is added
    std::vector<Copy> copies_;
    // Columns before the first; elements from row to row, from plane to plane, in all; rows and planes at a
    // time.
    std::int64_t left_ = 0, pitch_ = 0, each_ = 0, count_ = 0, block_ = 1, planes_ = 1;
    int results_ = -1;
};

}  // namespace

std::optional<Stmts> schedule_placed_planes(const Member& member, KernelBuilder& builder) {
    PlacedPlanes planes(member, builder);
    if (!planes.plan()) return {};
    return planes.run();
}

}  // namespace bitale
