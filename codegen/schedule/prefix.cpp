#include "codegen/schedule/prefix.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/prefix.h"
#include "codegen/schedule/chooser.h"
#include "codegen/schedule/loops.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

// As many chains of operations as hide the time of one.
constexpr std::int64_t rows_at_once = 4;
constexpr double elements_of_prefix_task = 4096;
// What takes that many cycles an element is computed in vector lanes, so many places of a row at a time,
// before they are walked.
constexpr int worth_lanes = 4;
constexpr std::int64_t places_ahead = 256;
// Columns of a task: long runs of each row, and results so far that stay in the nearest cache.
constexpr std::int64_t most_columns = 1024, fewest_columns_of_task = 64, column_tasks = 2;

// A prefix as a walk: the element that a step adds, over the loops around and the steps, and where it is
// kept.
class Walk {
  public:
    explicit Walk(const Member& member) : member_(member), form_(*prefix_form(member.nest)) {
        const Nest& nest = member.nest;
        const auto place = nest.parallel.begin() + static_cast<std::ptrdiff_t>(form_.place);
        step_ = form_.reverse ? make_loop("step", place->extent) : *place;
        before_.assign(nest.parallel.begin(), place);
        std::copy_if(place + 1, nest.parallel.end(), std::back_inserter(behind_),
                     [](const Loop& l) { return l.variable.symbol_id() != 0; });
        if (form_.reverse)
            for (Destination& d : member_.destinations)
                for (Int& x : d.at)
                    x = substitute(x, {{place->variable.symbol_id(), place->extent - 1 - step_.variable}});
        element_ = nest;
        element_.guards.clear();
        element_ = substitute(element_, {{nest.reduced[0].variable.symbol_id(), step_.variable}});
        element_.reduced.clear();
    }

    const Loop& step() const { return step_; }
    bool inclusive() const { return form_.inclusive; }
    // Where a whole row of columns is stored past the caches, if it is as it is summed up.
    const Destination* past(const Int& column, const KernelBuilder& builder) const {
        const Destination& to = member_.destinations.front();
        const Place& place = builder.ir.places[static_cast<std::size_t>(to.place)];
        const std::optional<Int> step = stride_of(offset_of(place, to.at), column);
        return member_.past && member_.nest.dtype == dtype() && step && step->is(1) ? &to : nullptr;
    }
    const std::vector<Loop>& before() const { return before_; }
    const std::vector<Loop>& behind() const { return behind_; }
    DType dtype() const { return accumulator_of(member_.nest); }
    bool worth_lanes() const { return cost_of(element_) >= bitale::worth_lanes; }
    // What is combined of an element: itself, or the two parts of a pair.
    std::vector<Scalar> parts(const Nest& element) const {
        return is_pair() ? element.body->arguments : std::vector<Scalar>{element.body};
    }
    // The other way round.
    Scalar of_parts(const std::vector<Scalar>& parts) const {
        return is_pair() ? scalar_apply(affine_pair(), parts[0]->dtype, parts) : parts[0];
    }

    // The element over these loops instead of the nest's.
    Nest element(std::vector<Loop> loops, const Substitution& here = {}) const {
        Nest r = substitute(element_, here);
        r.parallel = std::move(loops);
        return r;
    }

    Stmt start(int running, const std::vector<Int>& at) const {
        const bool affine = member_.nest.combine == Combine::affine;
        return set(running, at, neutral(affine ? Combine::sum : member_.nest.combine, dtype()));
    }

    // The place's element to the result so far.
    Stmts add(int running, const std::vector<Int>& at, const Scalar& body, LoopBuilder& loops) const {
        return loops.guarded({combined(running, at, body)});
    }

    // One step of one result: `body` is that of element(), under the lets that are pending in `loops`.
    Stmts one(int running, const std::vector<Int>& at, const Scalar& body, LoopBuilder& loops,
              const Substitution& here = {}) const {
        const Stmts kept = substitute(stores(member_, place_read(dtype(), running, at)), here);
        Stmts r;
        if (!form_.inclusive) append(r, kept);
        append(r, add(running, at, body, loops));
        if (form_.inclusive) append(r, kept);
        return r;
    }

  private:
    bool is_pair() const { return member_.nest.combine == Combine::affine; }

    Stmt combined(int running, const std::vector<Int>& at, const Scalar& body) const {
        const auto in = [&](const Scalar& s) { return scalar_cast(dtype(), s); };
        if (member_.nest.combine != Combine::affine)
            return accumulate(running, at, member_.nest.combine, in(body));
        const Scalar product =
            scalar_apply(Opcode::mul, dtype(), {in(body->arguments[0]), place_read(dtype(), running, at)});
        return set(running, at, scalar_apply(Opcode::add, dtype(), {product, in(body->arguments[1])}));
    }

    Member member_;
    PrefixForm form_;
    Loop step_;
    std::vector<Loop> before_, behind_;
    Nest element_;
};

std::vector<Loop> with(std::vector<Loop> loops, const Loop& last) {
    loops.push_back(last);
    return loops;
}

// The elements of some rows for the next places, computed in vector lanes, and how they are read.
struct Ahead {
    Loop inside;             // the place among those that are computed at once
    std::vector<int> parts;  // scratch of [row, inside]
    std::vector<DType> dtypes;
};

Ahead make_ahead(const Walk& walk, std::int64_t rows, KernelBuilder& builder) {
    const Int& length = walk.step().extent;
    const std::int64_t width =
        length.is_constant() ? std::min(length.constant(), places_ahead) : places_ahead;
    Ahead r;
    r.inside = {Int::symbol("inside", {0, width - 1}), width};
    for (const Scalar& part : walk.parts(walk.element({}))) {
        r.dtypes.push_back(part->dtype);
        r.parts.push_back(builder.scratch(Place::Scope::local, part->dtype, {Int(rows), Int(width)}));
    }
    return r;
}

// Some places of some rows at a time: their elements in vector lanes, then the walk along them.
Stmts walk_ahead(const Walk& walk, const Loop& row, int running, const Substitution& here,
                 const Target& target, KernelBuilder& builder) {
    const std::int64_t rows = row.extent.constant();
    const Ahead ahead = make_ahead(walk, rows, builder);
    const Loop& step = walk.step();
    const Int begin = Int::symbol("begin", step.variable.range()),
              count = min(ahead.inside.extent, step.extent - begin);
    Stmts body, elements;
    for (const int part : ahead.parts) body.push_back(declare(part));
    Substitution at_step;
    if (const std::uint64_t id = step.variable.symbol_id()) at_step[id] = begin + ahead.inside.variable;
    std::vector<Loop> loops{{ahead.inside.variable, count}};
    if (rows > 1) loops.insert(loops.begin(), row);
    std::vector<Scalar> read;
    for (std::size_t k = 0; k < ahead.parts.size(); ++k) {
        const std::vector<Int> at{row.variable, ahead.inside.variable};
        Member part;
        part.nest = substitute(walk.element(loops, here), at_step);
        part.nest.body = walk.parts(part.nest)[k];
        part.nest.dtype = ahead.dtypes[k];
        part.nest.combine = Combine::none;
        part.destinations = {{ahead.parts[k], at}};
        append(elements, schedule_pointwise(part, target, builder));
        read.push_back(place_read(ahead.dtypes[k], ahead.parts[k], at));
    }
    LoopBuilder none(Nest{}, false);
    const Int next = Int::symbol("next", ahead.inside.variable.range());
    Stmts one = substitute(walk.one(running, {row.variable}, walk.of_parts(read), none, here), at_step);
    if (rows > 1) one = {loop(row.variable, 0, rows, Binding::unrolled, std::move(one))};
    elements.push_back(
        loop(next, 0, count, Binding::serial, substitute(one, {{ahead.inside.variable.symbol_id(), next}})));
    body.push_back(
        loop(begin, 0, step.extent, Binding::serial, std::move(elements), ahead.inside.extent.constant()));
    return body;
}

Stmts walk_rows(const Walk& walk, const Target& target, KernelBuilder& builder) {
    std::vector<Loop> rows = walk.before();
    Loop last{0, 1};
    if (!rows.empty()) {
        last = rows.back();
        rows.pop_back();
    }
    const auto some = [&](const Int& first, std::int64_t count) {
        const Int row = count > 1 ? Int::symbol("row", {0, count - 1}) : Int(0);
        const int running = builder.scratch(Place::Scope::private_, walk.dtype(), {Int(count)});
        Substitution here;
        if (const std::uint64_t id = last.variable.symbol_id()) here[id] = first + row;
        const auto each = [&](Stmts body) {
            return count > 1 ? Stmts{loop(row, 0, count, Binding::unrolled, std::move(body))}
                             : std::move(body);
        };
        std::vector<Loop> around = with(rows, walk.step());
        if (row.symbol_id()) around.push_back({row, count});
        const Nest own = walk.element(around, here);
        if (walk.worth_lanes()) {
            LoopBuilder outer(own, false);
            return outer.nest(rows, [&](LoopBuilder&) {
                Stmts body{declare(running)};
                append(body, each({walk.start(running, {row})}));
                append(body, walk_ahead(walk, {row, count}, running, here, target, builder));
                return body;
            });
        }
        LoopBuilder loops(own);
        return loops.nest(
            rows,
            [&](LoopBuilder& inner) {
                Stmts body{declare(running)};
                append(body, each({walk.start(running, {row})}));
                append(body, inner.nest(
                                 {walk.step()},
                                 [&](LoopBuilder& innermost) {
                                     return each(walk.one(running, {row}, own.body, innermost, here));
                                 },
                                 Binding::serial, row));
                return body;
            },
            Binding::serial, row);
    };
    if (!last.variable.symbol_id()) return some(0, 1);
    const Int whole = floordiv(last.extent, rows_at_once) * rows_at_once,
              first = Int::symbol("rows", last.variable.range());
    Stmts body;
    if (last.extent.range().high >= rows_at_once)
        body.push_back(loop(first, 0, whole, Binding::serial, some(first, rows_at_once), rows_at_once));
    if (!(last.extent - whole).is(0)) {
        const Int rest = Int::symbol("rows", last.variable.range());
        body.push_back(loop(rest, whole, last.extent, Binding::serial, some(rest, 1)));
    }
    return body;
}

// The loop behind the place in lanes.
Stmts walk_columns(const Walk& walk, KernelBuilder& builder) {
    BITALE_CHECK(walk.behind().size() == 1, "columns of several axes in one walk");
    const Loop column = walk.behind()[0];
    const int running = builder.scratch(Place::Scope::local, walk.dtype(), {column.extent.range().high});
    const std::vector<Int> at{column.variable};
    const Nest own = walk.element(with(with(walk.before(), walk.step()), column));
    LoopBuilder loops(own), clear(own, false);
    return loops.nest(walk.before(), [&](LoopBuilder& inner) {
        Stmts body{declare(running)};
        append(body,
               clear.nest(
                   {column}, [&](LoopBuilder&) { return Stmts{walk.start(running, at)}; }, Binding::simd));
        const Destination* past = walk.past(column.variable, builder);
        append(body, inner.nest({walk.step()}, [&](LoopBuilder& of_step) {
            Stmts added = of_step.nest(
                {column},
                [&](LoopBuilder& innermost) {
                    return past ? walk.add(running, at, own.body, innermost)
                                : walk.one(running, at, own.body, innermost);
                },
                Binding::simd);
            if (!past) return added;
            std::vector<Int> to = past->at;
            for (Int& x : to) x = substitute(x, {{column.variable.symbol_id(), 0}});
            added.insert(walk.inclusive() ? added.end() : added.begin(),
                         streaming_store(past->place, to, running, column.extent));
            return added;
        }));
        return body;
    });
}

}  // namespace

std::int64_t cpu::columns_of_prefix(const Int& columns) {
    if (!columns.is_constant()) return most_columns;
    std::int64_t width = most_columns;
    while (width > fewest_columns_of_task && width * column_tasks > columns.constant()) width /= 2;
    return width;
}

std::int64_t gpu::columns_of_prefix(const Int&) { return 256; }

std::optional<RowsOfMember> rows_of_prefix(const Nest& nest) {
    if (!is_prefix(nest) || nest.parallel.size() < 2) return {};
    const double row = typical_count({nest.parallel.begin() + 1, nest.parallel.end()}),
                 times = std::max(1.0, elements_of_prefix_task / std::max(1.0, row * double{rows_at_once}));
    // Those side by side are of the axis before the place.
    return RowsOfMember{static_cast<std::int64_t>(times) * rows_at_once,
                        prefix_form(nest)->place > 1 ? 1 : rows_at_once};
}

Stmts schedule_prefix(const Member& member, const Target& target, KernelBuilder& builder) {
    const Walk walk(member);
    return walk.behind().empty() ? walk_rows(walk, target, builder) : walk_columns(walk, builder);
}

Stmts schedule_prefix_in_threads(const Member& member, KernelBuilder& builder) {
    const Walk walk(member);
    std::vector<Loop> points = walk.before();
    points.insert(points.end(), walk.behind().begin(), walk.behind().end());
    const Nest own = walk.element(with(points, walk.step()));
    LoopBuilder loops(own);
    return loops.threads(points, [&](LoopBuilder& inner) {
        const int running = builder.scratch(Place::Scope::private_, walk.dtype(), {});
        Stmts body{declare(running), walk.start(running, {})};
        append(body, inner.nest({walk.step()}, [&](LoopBuilder& of_step) {
            return walk.one(running, {}, own.body, of_step);
        }));
        return inner.substituted(body);
    });
}

Segment schedule_prefix_of_columns(int value, const Nest& placed, bool past, const SegmentContext& context,
                                   KernelBuilder& builder, const std::string& title) {
    const PrefixForm form = *prefix_form(placed);
    const Type type = context.values.list[static_cast<std::size_t>(value)].stored_type();
    // The axes that are cut into tasks: all but the place, of the last one behind it a part.
    std::vector<std::size_t> axes;
    for (std::size_t d = 0; d < placed.parallel.size(); ++d)
        if (d != form.place && placed.parallel[d].variable.symbol_id()) axes.push_back(d);
    const bool has_columns = !axes.empty() && axes.back() > form.place;
    const Int columns = has_columns ? placed.parallel[axes.back()].extent : Int(1);
    const std::int64_t width = chooser_of(context.target).columns_of_prefix(columns);
    const bool cut = columns.range().high > width;
    Shape tasks;
    for (const std::size_t d : axes) tasks.push_back(placed.parallel[d].extent);
    if (has_columns) tasks.back() = cut ? ceildiv(columns, width) : Int(1);

    Segment segment;
    segment.title = title;
    segment.tasks = count_of(tasks);
    segment.task = make_loop("task", segment.tasks).variable;
    const std::vector<Int> task = unflattened(segment.task, tasks);
    Substitution here;
    std::vector<Loop> loops{placed.parallel[form.place]};
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Loop& l = placed.parallel[axes[i]];
        if (!has_columns || axes[i] != axes.back()) {
            here[l.variable.symbol_id()] = task[i];
        } else if (cut) {
            const Int first = task[i] * width, inside = Int::symbol("column", {0, width - 1});
            here[l.variable.symbol_id()] = first + inside;
            loops.push_back({inside, min(width, columns - first)});
        } else {
            loops.push_back(l);
        }
    }
    Member member;
    member.nest = substitute(placed, here);
    member.nest.parallel = loops;
    std::vector<Int> at;
    for (const Loop& l : placed.parallel) at.push_back(substitute(l.variable, here));
    for (const int buffer : context.buffers_to_write(value))
        member.destinations.push_back({builder.global(buffer, type.dtype, type.shape, true), at});
    member.past = past && member.destinations.size() == 1 && context.target.stores_read_lines;
    segment.body = {comment_of(*context.values.list[static_cast<std::size_t>(value)].node)};
    append(segment.body, schedule_reduce(member, context.target, builder));
    return segment;
}

}  // namespace bitale
