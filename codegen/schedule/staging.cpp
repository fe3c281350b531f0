#include "codegen/schedule/staging.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/spans.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool depends_on_any(const std::vector<Guard>& guards, std::uint64_t symbol) {
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) { return depends_on(g, symbol); });
}

// What the read gives outside of the value, where its guards are those of the value's own axes and nothing
// else; not of the rows: a copy has no others. Null: there is no such constant.
Scalar border_of(const ScalarNode& read, const Shape& shape) {
    for (const Guard& g : read.guards) {
        bool own = false;
        for (std::size_t d = 1; d < read.at.size(); ++d)
            own = own || (g.value == read.at[d] && g.low.is(0) && g.high == shape[d]);
        if (!own) return nullptr;
    }
    if (!read.otherwise || read.otherwise->kind != ScalarNode::Kind::constant) return nullptr;
    return read.otherwise;
}

Scalar zero_of(DType dtype) { return is_float(dtype) ? scalar_constant(dtype, 0) : scalar_integer(dtype, 0); }

bool same_number(const Scalar& a, const Scalar& b) {
    return a && b && a->number == b->number && a->integer == b->integer;
}

bool is_guarded(const ScalarNode& read, std::size_t d) {
    return std::any_of(read.guards.begin(), read.guards.end(),
                       [&](const Guard& g) { return g.value == read.at[d]; });
}

// The copy has all that the guards of the read, somewhere in the nest, let through and all that it gives
// outside.
bool covers(const StagedCopy& copy, const ScalarNode& read, const Nest& nest, const Shape& shape) {
    if (!same_number(copy.outside, border_of(read, shape))) return false;
    for (std::size_t d = 1; d < read.at.size(); ++d) {
        // What no guard keeps inside is inside: at the latest the call compares the lengths. A window has all
        // that the members read.
        if (!is_guarded(read, d) || copy.window[d]) continue;
        if (copy.extents[d].is_constant()) {
            const IntRange r = (read.at[d] - copy.low[d]).range();
            if (r.low < 0 || r.high >= copy.extents[d].constant()) return false;
            continue;
        }
        const std::optional<Span> span = Spans(nest).of(read.at[d]);
        if (!span || !at_least(span->low, copy.low[d]) ||
            !at_least(copy.low[d] + copy.extents[d] - 1, span->high))
            return false;
    }
    return true;
}

// The nest of a value with everything inlined but leaves, stored values, and what is read of the staged ones
// to be kept in the row of the loop.
Nest composed_by_rows(
    const Values& values, int v, const RowOf& row, const std::function<bool(int operand)>& kept,
    const std::function<void(int operand)>& elsewhere = [](int) {}) {
    const Nest& own = values.list[static_cast<std::size_t>(v)].nest;
    const Loop rows = row(own);
    const auto composed = [&](bool any) {
        const Nest nest =
            compose_reads(own, [&](const ScalarNode& read, const std::vector<Guard>& guards) -> const Nest* {
                const Value& o = values.list[static_cast<std::size_t>(read.operand.value())];
                if (o.storage == Value::Storage::inlined) return &o.nest;
                if (o.storage != Value::Storage::staged) return nullptr;
                if (any && kept(read.operand.value()) && in_own_row(read, guards, own, rows, o.shape))
                    return nullptr;
                elsewhere(read.operand.value());
                return &o.nest;
            });
        return in_rows(exact_sum(in_own_rows(values, simplify(nest))), is_of_data(values, v));
    };
    const Nest r = composed(true);
    // A long reduction that was cut into rows has others than those that it was composed by.
    return row(r).variable == rows.variable ? r : composed(false);
}

Loop first_axis(const Nest& nest) { return nest.parallel.empty() ? Loop{0, 1} : nest.parallel[0]; }

// What the members of a group, and the copies themselves, read of one value.
struct Candidate {
    struct Read {
        Scalar scalar;
        Spans spans;          // of the loops around it
        bool factor = false;  // of a sum of products
        bool pieces = false;  // of one that copies pieces of its factors itself (panels.h)
        Int cut;              // the variable of the axis of which a task has a part; 0: none
    };
    std::vector<Read> own;   // in the task's row
    double asked = 0;        // how often, for a row
    bool elsewhere = false;  // also in other rows
    bool wanted = false;
};
using Candidates = std::map<int, Candidate>;

class CopyPlanner {
  public:
    CopyPlanner(const Group& group, const SegmentContext& context, const RowOf& row, std::int64_t block,
                CopiedBy by, const std::set<int>& scattered, const PartOfRow& part)
        : group_(group),
          context_(context),
          row_(row),
          block_(block),
          by_(by),
          scattered_(scattered),
          part_(part) {}

    // When those that are refused a copy are inlined, or stay where they are.
    Candidates candidates(const std::set<int>& refused) const {
        Candidates found;
        std::set<int> looked_at;
        std::vector<int> copied;
        const auto kept = [&](int operand) { return !refused.contains(operand); };
        const auto look_at = [&](int v, const RowOf& row, bool scattered, bool is_member) {
            std::set<int> elsewhere;
            const Nest nest = composed_by_rows(context_.values, v, row, kept,
                                               [&](int operand) { elsewhere.insert(operand); });
            const Int cut = part_.cut && is_member
                                ? nest.parallel[static_cast<std::size_t>(part_.cut->axis.at(v))].variable
                                : Int(0);
            look(nest, row(nest), cut, scattered, refused, found, copied);
            for (const int operand : elsewhere) found[operand].elsewhere = true;
        };
        for (const int v : group_.values) look_at(v, row_, scattered_.contains(v), true);
        while (!copied.empty()) {
            const int v = copied.back();
            copied.pop_back();
            if (looked_at.insert(v).second) look_at(v, first_axis, false, false);
        }
        std::erase_if(found, [](const auto& entry) { return !entry.second.wanted; });
        return found;
    }

    // A copy serves the reads in the task's own row; where there are others, these have to be worth it.
    // Threads wait for what they copy, and then for all the others.
    bool is_worth_it(int v, const Candidate& candidate) const {
        constexpr double often = 4, often_for_threads = 2;
        if (value(v).storage != Value::Storage::staged) return true;
        const bool threads = context_.target.tasks_have_threads();
        if (!candidate.elsewhere && !threads) return true;
        double elements = 1;
        for (std::size_t d = 1; d < value(v).shape.size(); ++d) elements *= typical(value(v).shape[d]);
        return candidate.asked >= (candidate.elsewhere ? often : often_for_threads) * elements;
    }

    // What is computed where a sum of products reads it, or guarded there, costs more than memory, unless
    // pieces of it stay in the cache.
    static void put_into_memory(StagedCopy& copy) {
        copy.in_memory = copy.factor;
        if (copy.in_memory) copy.scratch = copy.extents;
    }

    // Which part of the index space the copy has; false if there can be none.
    bool fits(const Candidate& candidate, StagedCopy& copy) const {
        const Shape& shape = value(copy.value).shape;
        copy.outside = border(candidate, shape);
        copy.low.assign(shape.size(), 0);
        copy.window.assign(shape.size(), false);
        copy.extents = shape;
        for (std::size_t d = 1; d < shape.size(); ++d) {
            Span all{0, shape[d] - 1};
            for (const Candidate::Read& read : candidate.own) {
                const bool by_border =
                    copy.outside && same_number(copy.outside, border_of(*read.scalar, shape));
                if (by_border && is_guarded(*read.scalar, d) && !widen(all, read, d)) return false;
            }
            copy.low[d] = all.low;
            copy.extents[d] = all.high - all.low + 1;
            cut_down(candidate, d, copy);
        }
        return !is_mostly_border(copy, shape);
    }

    // Where indices have quotients, what is known of their range may be far from what they reach.
    static bool is_mostly_border(const StagedCopy& copy, const Shape& shape) {
        constexpr double most_times = 4, few_elements = 4096;
        double all = 1, own = 1;
        for (std::size_t d = 1; d < shape.size(); ++d)
            all *= typical(copy.extents[d]), own *= typical(shape[d]);
        return all > few_elements && all > most_times * own;
    }

    // Along an axis on which all reads walk with the part of the row: what this part reads.
    void cut_down(const Candidate& candidate, std::size_t d, StagedCopy& copy) const {
        if (!part_.cut || context_.target.tasks_have_threads() || !copy.extents[d].is_constant()) return;
        std::optional<std::int64_t> step;
        IntRange beside{IntRange::highest, -IntRange::highest};  // what the reads add to the first places
        for (const Candidate::Read& read : candidate.own) {
            const Int& at = read.scalar->at[d];
            if (!read.cut.symbol_id()) return;
            const Int by = substitute(at, {{read.cut.symbol_id(), read.cut + 1}}) - at,
                      rest = substitute(at, {{read.cut.symbol_id(), 0}});
            if (!by.is_constant() || by.constant() < 1 || (step && *step != by.constant())) return;
            step = by.constant();
            beside = {std::min(beside.low, rest.range().low), std::max(beside.high, rest.range().high)};
        }
        if (!step || beside.high > copy.extents[d].constant() || beside.low < -copy.extents[d].constant())
            return;
        const std::int64_t count = *step * (part_.cut->width - 1) + beside.high - beside.low + 1;
        if (count >= copy.extents[d].constant()) return;
        copy.window[d] = true;
        copy.low[d] = part_.first * *step + beside.low;
        copy.extents[d] = count;
    }

    // So that the read's places are among those of the copy; false if they cannot be told, or are too many.
    bool widen(Span& all, const Candidate::Read& read, std::size_t d) const {
        const std::int64_t most = context_.target.local_bytes;
        const Int& at = read.scalar->at[d];
        if (all.high.is_constant()) {
            const IntRange r = at.range();
            all = {std::min(all.low.constant(), r.low), std::max(all.high.constant(), r.high)};
            return all.low.constant() >= -most && all.high.constant() <= most;
        }
        const std::optional<Span> span = read.spans.of(at);
        if (!span) return false;
        if (!at_least(span->low, all.low)) {
            if (!span->low.is_constant() || span->low.constant() < -most) return false;
            all.low = span->low;
        }
        if (!at_least(all.high, span->high))
            all.high = at_least(span->high, all.high) ? span->high : max(all.high, span->high);
        return true;
    }

    // The copy as a nest of its own over the (possibly wider) index space, reading the value. False if it
    // would need what a member of this group computes, and must not.
    bool write(StagedCopy& copy, const std::set<int>& refused) const {
        const Type type = value(copy.value).stored_type();
        copy.scratch = copy.extents;
        copy.scratch[0] = block_;
        copy.bytes = count_of(copy.scratch) * bytes_of(type.dtype);
        Nest nest;
        nest.dtype = type.dtype;
        std::vector<Int> at;
        std::vector<Guard> guards;
        // One thread fills the border before, and its loops over what is inside have no guards.
        copy.filled = copy.outside && !context_.target.tasks_have_threads();
        for (std::size_t d = 0; d < copy.extents.size(); ++d) {
            const bool own = copy.filled && !copy.window[d];
            const Loop l = make_loop("c", own ? type.shape[d] : copy.extents[d]);
            nest.parallel.push_back(l);
            at.push_back(own ? l.variable : l.variable + copy.low[d]);
            const bool wider = !copy.low[d].is(0) || !(copy.extents[d] == type.shape[d]);
            if ((copy.outside && wider && !own) || copy.window[d])
                guards.push_back({at.back(), 0, type.shape[d]});
        }
        const Scalar none = copy.outside ? copy.outside : zero_of(type.dtype);
        nest.body = scalar_read(type.dtype, Operand::of_value(copy.value), at, guards,
                                guards.empty() ? nullptr : none);
        copy.nest = simplify(
            compose_reads(nest, [&](const ScalarNode& read, const std::vector<Guard>& all) -> const Nest* {
                const Value& o = value(read.operand.value());
                const bool own = read.operand.value() == copy.value;
                if (o.storage == Value::Storage::inlined) return &o.nest;
                if (o.storage != Value::Storage::staged) return nullptr;
                const bool kept = !own && !refused.contains(read.operand.value()) &&
                                  in_own_row(read, all, nest, nest.parallel[0], o.shape);
                return kept ? nullptr : &o.nest;
            }));
        for_each_read(copy.nest, [&](const ScalarNode& s) {
            const auto member = std::find(group_.values.begin(), group_.values.end(), s.operand.value());
            if (member == group_.values.end()) return;
            copy.after = std::max(copy.after, static_cast<std::size_t>(member - group_.values.begin()) + 1);
        });
        if (by_ == CopiedBy::parts && is_replaced(copy.nest)) return false;
        return by_ == CopiedBy::rows || copy.after == 0;
    }

  private:
    // Reads what the group writes under another name, as an update in place does: tasks with other parts of
    // the row may have done so already.
    bool is_replaced(const Nest& nest) const {
        if (!group_.commits) return false;
        std::set<int> written;
        for (const int v : group_.values)
            if (context_.leaves_group(v))
                for (const int buffer : context_.buffers_to_write(v)) written.insert(buffer);
        bool replaced = false;
        for_each_read(nest, [&](const ScalarNode& s) {
            replaced = replaced || (value(s.operand.value()).storage != Value::Storage::staged &&
                                    written.contains(context_.buffer_to_read(s.operand.value())));
        });
        return replaced;
    }

    // What one nest reads. Of values that are in memory, padding alone asks for a copy.
    void look(const Nest& nest, const Loop& rows, const Int& cut, bool scattered,
              const std::set<int>& refused, Candidates& found, std::vector<int>& copied) const {
        const bool padded = wants_padding(nest), pieces = padded && is_matrix_product(nest);
        const Spans spans(nest);
        double asked = 1;
        for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
            for (const Loop& l : *loops)
                if (!(l.variable == rows.variable)) asked *= typical(l.extent);
        for_each_read(nest, [&](const ScalarNode& s) {
            if (refused.contains(s.operand.value())) return;
            Candidate& candidate = found[s.operand.value()];
            if (!in_own_row(s, s.guards, nest, rows, value(s.operand.value()).shape)) {
                candidate.elsewhere = true;
                return;
            }
            const bool staged = value(s.operand.value()).storage == Value::Storage::staged,
                       factor = padded && (staged || !s.guards.empty());
            auto read = std::make_shared<ScalarNode>(s);
            if (scattered) {
                read->guards.clear();
                read->otherwise = nullptr;
            }
            candidate.own.push_back({std::move(read), spans, factor, pieces, cut});
            candidate.asked += asked;
            candidate.wanted = candidate.wanted || staged || factor;
            if (staged) copied.push_back(s.operand.value());
        });
    }

    // The constant that a copy has around the value: what factors read there, else what all reads do.
    static Scalar border(const Candidate& candidate, const Shape& shape) {
        Scalar all;
        bool agree = true;
        for (const Candidate::Read& read : candidate.own) {
            const Scalar outside = border_of(*read.scalar, shape);
            if (outside && read.factor) return outside;
            if (read.scalar->guards.empty()) continue;
            agree = agree && outside && (!all || same_number(all, outside));
            if (outside) all = outside;
        }
        return agree ? all : nullptr;
    }

    // Each element that is summed with others is read many times, and a guard around a factor costs more than
    // its product: padding has to be in memory, even around what is there already.
    bool wants_padding(const Nest& nest) const {
        return context_.target.has_vectors() && adds_products(nest);
    }

    const Value& value(int v) const { return context_.values.list[static_cast<std::size_t>(v)]; }

    const Group& group_;
    const SegmentContext& context_;
    const RowOf& row_;
    std::int64_t block_;
    CopiedBy by_;
    const std::set<int>& scattered_;
    const PartOfRow& part_;
};

}  // namespace

bool in_own_row(const ScalarNode& read, const std::vector<Guard>& guards, const Nest& nest, const Loop& rows,
                const Shape& shape) {
    const std::uint64_t row = rows.variable.symbol_id();
    if (read.at.empty() || !(read.at[0] == rows.variable)) return false;
    // The only row there is.
    if (!row) return rows.extent.is(1) && shape[0].is(1);
    return shape[0] == rows.extent || !(depends_on_any(guards, row) || depends_on_any(nest.guards, row));
}

std::vector<StagedCopy> plan_copies(const Group& group, const SegmentContext& context, const RowOf& row,
                                    std::int64_t block, std::int64_t used, CopiedBy by,
                                    const std::set<int>& scattered, const PartOfRow& part) {
    const CopyPlanner planner(group, context, row, block, by, scattered, part);
    std::set<int> refused;
    // Inlining a value that cannot be copied shows more reads of the others, so all are looked at again
    // whenever one is refused.
    for (;;) {
        std::vector<StagedCopy> copies;
        std::int64_t bytes = used;
        int refuse = -1;
        for (const auto& [v, candidate] : planner.candidates(refused)) {
            StagedCopy copy;
            copy.value = v;
            copy.factor = std::any_of(candidate.own.begin(), candidate.own.end(),
                                      [](const Candidate::Read& r) { return r.factor && !r.pieces; });
            const bool possible = planner.is_worth_it(v, candidate) && planner.fits(candidate, copy) &&
                                  planner.write(copy, refused);
            const bool known = std::all_of(copy.scratch.begin(), copy.scratch.end(),
                                           [](const Int&n) { return n.is_constant(); }),
                       small =
                           possible && known && bytes + copy.bytes.constant() <= context.target.local_bytes;
            if (possible && !small && by != CopiedBy::parts) CopyPlanner::put_into_memory(copy);
            if (!small && !copy.in_memory) {
                refuse = v;
                break;
            }
            if (!copy.in_memory) bytes += copy.bytes.constant();
            for (const StagedCopy& other : copies) {
                bool reads_it = false;
                for_each_read(copy.nest,
                              [&](const ScalarNode& s) { reads_it |= s.operand.value() == other.value; });
                if (reads_it) copy.after = std::max(copy.after, other.after);
            }
            copies.push_back(std::move(copy));
        }
        if (refuse < 0) return copies;
        refused.insert(refuse);
    }
}

Nest CopyReads::member(int v, const RowOf& row, bool scattered) const {
    const Nest nest =
        composed_by_rows(values_, v, row, [&](int operand) { return copies_.contains(operand); });
    return sent(nest, row(nest), -1, scattered);
}

Nest CopyReads::copy(const StagedCopy& copy) const {
    return sent(copy.nest, first_axis(copy.nest), copy.value, false);
}

const StagedCopy* CopyReads::sent_to(const ScalarNode& read) const {
    return read.operand.is_copy() ? &copies_.at(read.operand.copy()) : nullptr;
}

Nest CopyReads::sent(const Nest& nest, const Loop& rows, int but_for, bool scattered) const {
    if (copies_.empty()) return nest;
    return map_reads(nest, [&](const Scalar& s) -> Scalar {
        const auto copy = copies_.find(s->operand.value());
        if (copy == copies_.end() || s->operand.value() == but_for) return s;
        // A copy in memory is for sums that read past the border; others need not keep it there.
        const Value& value = values_.list[static_cast<std::size_t>(s->operand.value())];
        if (copy->second.in_memory && value.storage == Value::Storage::stored &&
            nest.combine == Combine::none && s->guards.empty())
            return s;
        const Shape& shape = value.shape;
        if (!in_own_row(*s, s->guards, nest, rows, shape)) return s;
        auto r = std::make_shared<ScalarNode>(*s);
        r->operand = Operand::of_copy(s->operand.value());
        if (copy->second.outside && (scattered || covers(copy->second, *s, nest, shape))) {
            r->guards.clear();
            r->otherwise = nullptr;
        }
        return r;
    });
}

}  // namespace bitale
