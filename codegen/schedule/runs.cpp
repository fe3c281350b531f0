#include "codegen/schedule/runs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/ahead.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/pointwise.h"

namespace bitale {

namespace {

constexpr std::int64_t most_sums = 8192;  // of a task at a time

Int first_row(const TaskRows& rows) { return rows.block == 1 ? rows.task : rows.task * rows.block; }

// How the axes behind the rows are walked: the outer ones around the list, the others for each of its places.
struct RestLoops {
    std::vector<Loop> outer, inner;
    Substitution with;  // of a last axis that is cut into blocks
    Int block = 0;      // their variable
    Int end = 0;        // the length of that axis
    std::int64_t width = 0;
};

RestLoops rest_loops(const std::vector<Loop>& rest, std::int64_t rows) {
    const std::int64_t most = std::max<std::int64_t>(1, most_sums / rows);
    RestLoops r;
    std::size_t first = rest.size();
    std::int64_t count = 1;
    while (first > 0 && rest[first - 1].extent.is_constant() &&
           count * rest[first - 1].extent.constant() <= most)
        count *= std::max<std::int64_t>(1, rest[--first].extent.constant());
    r.outer.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(first));
    r.inner.assign(rest.begin() + static_cast<std::ptrdiff_t>(first), rest.end());
    if (!r.inner.empty() || r.outer.empty()) return r;
    const Loop last = r.outer.back();
    r.outer.pop_back();
    r.width = most;
    r.end = last.extent;
    r.block = Int::symbol("block", {0, std::max<std::int64_t>(0, last.extent.range().high - 1)});
    const Int point = Int::symbol("point", {0, most - 1});
    r.with = {{last.variable.symbol_id(), r.block + point}};
    r.inner = {{point, min(most, last.extent - r.block)}};
    return r;
}

class Runs {
  public:
    Runs(const Member& member, const Nest& whole, const TaskRows& rows, const RunPart& part,
         KernelBuilder& builder)
        : member_(member),
          whole_(whole),
          form_(*run_form(whole)),
          rows_(rows),
          part_(part),
          builder_(builder),
          rest_(rest_loops({whole.parallel.begin() + 1, whole.parallel.end()}, rows.block)),
          dtype_(accumulator_of(whole)) {
        std::erase_if(whole_.lets, [&](const Let& l) { return l.symbol.symbol_id() == form_.key; });
        whole_.guards.clear();
        Shape extents{Int(rows.block)};
        if (rest_.width > 0) extents.emplace_back(rest_.width);
        if (rest_.width == 0)
            for (const Loop& l : rest_.inner) extents.push_back(l.extent);
        sums_ = builder.scratch(Place::Scope::local, dtype_, extents);
    }

    Stmts run() {
        LoopBuilder loops(points());
        return loops.nest(
            rest_.outer,
            [&](LoopBuilder& inner) {
                Stmts body{declare(sums_)};
                if (rest_.width == 0) {
                    append(body, block(inner));
                } else {
                    body.push_back(
                        loop(rest_.block, 0, rest_.end, Binding::serial, block(inner), rest_.width));
                }
                return body;
            },
            Binding::serial, place_);
    }

  private:
    // Of a point of the list, over the loops behind the rows: the row is that of its key.
    Nest points() {
        Substitution with = rest_.with;
        const Int row = first_row(rows_);
        const Int list_place = part_.first + place_;
        with[whole_.reduced[0].variable.symbol_id()] = list_place;
        with[whole_.parallel[0].variable.symbol_id()] = row + inside_;
        Nest points = substitute(whole_, with);
        points.parallel = rest_.outer;
        points.parallel.insert(points.parallel.end(), rest_.inner.begin(), rest_.inner.end());
        points.reduced = {{place_, part_.last - part_.first}};
        if (inside_.symbol_id()) {
            const Scalar key = scalar_cast(DType::int64, scalar_read(form_.dtype, form_.keys, {list_place}));
            points.lets.insert(
                points.lets.begin(),
                {inside_, scalar_apply(Opcode::sub, DType::int64, {key, scalar_index(DType::int64, row)}),
                 rows_.block});
        }
        value_ = scalar_cast(dtype_, points.body);
        loop_ = points.reduced[0];
        return points;
    }

    std::vector<Int> at(const Int& row) const {
        std::vector<Int> at{row};
        for (const Loop& l : rest_.inner) at.push_back(l.variable);
        return at;
    }

    Stmts block(LoopBuilder& around) {
        Nest results;
        results.parallel = rest_.inner;
        const Int row = rows_.block > 1 ? Int::symbol("row", {0, rows_.block - 1}) : Int(0);
        std::vector<Loop> of_results = rest_.inner;
        if (rows_.block > 1) of_results.insert(of_results.begin(), {row, member_.nest.parallel[0].extent});
        results.parallel = of_results;
        LoopBuilder clear(results), store(results);
        Stmts body = clear.nest(
            of_results, [&](LoopBuilder&) { return Stmts{set(sums_, at(row), scalar_integer(dtype_, 0))}; },
            Binding::simd);
        // A sum of one term is that term, -0 too, as where the loop over a single key is left out.
        const Stmt add = whole_.reduced[0].extent.is(1)
                             ? set(sums_, at(inside_), value_)
                             : accumulate(sums_, at(inside_), Combine::sum, value_);
        append(body, around.nest({loop_}, [&](LoopBuilder& inner) {
            Stmts each = ahead();
            append(each, inner.nest(
                             rest_.inner, [&](LoopBuilder& innermost) { return innermost.guarded({add}); },
                             Binding::simd));
            return each;
        }));
        Substitution here = rest_.with;
        if (rows_.block > 1)
            if (const std::uint64_t id = member_.nest.parallel[0].variable.symbol_id()) here[id] = row;
        append(body, store.nest(
                         of_results,
                         [&](LoopBuilder&) {
                             return substitute(stores(member_, place_read(dtype_, sums_, at(row))), here);
                         },
                         Binding::simd));
        return body;
    }

    // The rows that later places of the list read: of this run, and of those that follow.
    Stmts ahead() const {
        const Loop& list = whole_.reduced[0];
        return substitute(ask_ahead(whole_, list.variable, list.extent, builder_),
                          {{list.variable.symbol_id(), part_.first + place_},
                           {whole_.parallel[0].variable.symbol_id(), first_row(rows_)}});
    }

    const Member& member_;
    Nest whole_;
    const RunForm form_;
    const TaskRows& rows_;
    const RunPart& part_;
    KernelBuilder& builder_;
    const RestLoops rest_;
    const DType dtype_;
    int sums_ = -1;
    const Int place_ = Int::symbol("place", whole_.reduced[0].variable.range());
    const Int inside_ = rows_.block > 1 ? Int::symbol("inside", {0, rows_.block - 1}) : Int(0);
    Scalar value_;
    Loop loop_;
};

// ---- rows that do not change

using IsRead = std::function<bool(const ScalarNode&)>;

// Zero, or false, wherever `zero` reads are, of either sign, as long as what it is multiplied with is finite.
bool is_zero(const Scalar& s, const IsRead& zero) {
    const auto part = [&](std::size_t k) { return is_zero(s->arguments[k], zero); };
    switch (s->kind) {
        case ScalarNode::Kind::constant: return s->number == 0 && s->integer == 0;
        case ScalarNode::Kind::read: return s->guards.empty() && zero(*s);
        case ScalarNode::Kind::cast: return part(0);
        case ScalarNode::Kind::index: return false;
        case ScalarNode::Kind::select: return part(0) && is_zero(s->otherwise, zero);
        case ScalarNode::Kind::apply: break;
    }
    switch (opcode_of(*s->op)) {
        case Opcode::mul: return part(0) || part(1);
        case Opcode::div: return part(0);
        case Opcode::where: return (part(1) || part(0)) && part(2);
        case Opcode::add:
        case Opcode::sub:
        case Opcode::gt:
        case Opcode::lt:
        case Opcode::neq: return part(0) && part(1);
        default: return s->op->map->maps_zero_to_zero && s->arguments.size() == 1 && part(0);
    }
}

// The element of `old` wherever `zero` reads are 0.
bool is_kept(const Scalar& s, const IsRead& old, const IsRead& zero) {
    if (s->kind == ScalarNode::Kind::read) return s->guards.empty() && old(*s);
    if (s->kind == ScalarNode::Kind::cast) {
        // To a wider dtype, or back.
        const Scalar& inner = s->arguments[0];
        return is_float(s->dtype) && is_float(inner->dtype) && is_kept(inner, old, zero);
    }
    if (applies(*s, Opcode::sub))
        return is_kept(s->arguments[0], old, zero) && is_zero(s->arguments[1], zero);
    if (applies(*s, Opcode::where))
        return is_zero(s->arguments[0], zero) && is_kept(s->arguments[2], old, zero);
    if (applies(*s, Opcode::add))
        for (const std::size_t k : {0U, 1U})
            if (is_kept(s->arguments[k], old, zero) && is_zero(s->arguments[1 - k], zero)) return true;
    return false;
}

// No cast on the way is narrower than the variable.
bool casts_are_wide(const Scalar& s, DType dtype) {
    return !any_part(s, [&](const ScalarNode& part) {
        return part.kind == ScalarNode::Kind::cast && is_float(part.dtype) && part.dtype != dtype &&
               bits_of(part.dtype) <= bits_of(dtype);
    });
}

}  // namespace

std::int64_t rows_of_runs(const std::vector<Nest>& nests) {
    constexpr std::int64_t elements = 4096, most = 256, fewest_tasks = 32;
    double row = 0, rows = 0;
    for (const Nest& nest : nests) {
        if (!sums_runs(nest)) continue;
        row = std::max(row, typical_count({nest.parallel.begin() + 1, nest.parallel.end()}));
        rows = typical(nest.parallel[0].extent);
    }
    if (row == 0) return 0;
    const auto block =
        static_cast<std::int64_t>(std::min(static_cast<double>(elements) / row, rows / fewest_tasks));
    return std::clamp<std::int64_t>(block, 1, most);
}

RunPart find_part(int list, const TaskRows& rows, const Int& all, const KernelBuilder& builder,
                  Stmts& before) {
    const Int keys = builder.ir.places[static_cast<std::size_t>(list)].extents[0];
    const IntRange range{0, keys.range().high};
    RunPart part{Int::symbol("first", range), Int::symbol("last", range)};
    const Int row = first_row(rows);
    const Int some =
        all.is_constant() ? ceildiv(keys * rows.block, std::max<std::int64_t>(1, all.constant())) : 1;
    before.push_back(search(part.first, list, 0, keys, row, 0));
    before.push_back(search(part.last, list, part.first, keys, row + rows.block, some));
    return part;
}

Stmts schedule_runs(const Member& member, const Nest& whole, const TaskRows& rows, const RunPart& part,
                    KernelBuilder& builder) {
    return Runs(member, whole, rows, part, builder).run();
}

std::optional<int> list_of_changed_rows(const Group& group, const SegmentContext& context) {
    if (std::none_of(group.values.begin(), group.values.end(),
                     [&](int v) { return sums_runs(context.grouping.nests[v]); }))
        return {};
    std::set<int> lists, zero;
    for (const int v : group.values) {
        const Nest nest = fully_composed_nest(context.values, v);
        std::vector<Int> identity;
        for (const Loop& l : nest.parallel) identity.push_back(l.variable);
        // A row without keys is zero as a whole, whichever of its elements is read.
        const IsRead is_zero_read = [&](const ScalarNode& s) {
            return zero.contains(s.operand.value()) && !s.at.empty() && !identity.empty() &&
                   s.at[0] == identity[0];
        };
        const bool leaves = context.leaves_group(v);
        if (const std::optional<RunForm> form = run_form(nest)) {
            if (leaves) return {};
            lists.insert(form->keys.value());
            zero.insert(v);
        } else if (!leaves) {
            if (nest.combine == Combine::none && is_zero(nest.body, is_zero_read)) zero.insert(v);
        } else {
            const std::vector<int> to = context.buffers_to_write(v);
            const IsRead is_old = [&](const ScalarNode& s) {
                return s.at == identity &&
                       context.values.list[s.operand.value()].storage == Value::Storage::leaf &&
                       context.buffer_to_read(s.operand.value()) == to[0];
            };
            if (to.size() != 1 || nest.combine != Combine::none || nest.parallel.empty() ||
                !is_kept(nest.body, is_old, is_zero_read) || !casts_are_wide(nest.body, nest.dtype))
                return {};
        }
    }
    if (lists.size() != 1) return {};
    return *lists.begin();
}

Stmts ask_for_rows(const Group& group, const Int& place, const Int& last_key,
                   const std::function<Scalar(const Int& place)>& key, const SegmentContext& context,
                   KernelBuilder& builder) {
    constexpr std::int64_t distance = 16, longest_row = 4096;
    const IntRange rows{0, std::max<std::int64_t>(0, group.extent.range().high - 1)};
    Stmts all;
    for (const int v : group.values) {
        if (!context.leaves_group(v)) continue;
        const Type type = context.values.list[v].stored_type();
        const Int row = count_of(Shape(type.shape.begin() + 1, type.shape.end()));
        if (!row.is_constant() || row.constant() * bytes_of(type.dtype) > longest_row) continue;
        const Int later = Int::symbol("later", rows);
        all.push_back(let(later, key(min(place + distance, last_key)), group.extent));
        std::vector<Int> at(type.shape.size(), 0);
        at[0] = later;
        all.push_back(prefetch(builder.global(context.buffers_to_write(v)[0], type.dtype, type.shape, true),
                               at, std::max<std::int64_t>(1, row.constant() * bytes_of(type.dtype))));
    }
    return all;
}

}  // namespace bitale
