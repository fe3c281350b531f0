#include "codegen/schedule/order.h"

#include <algorithm>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/access.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/chooser.h"

namespace bitale {

namespace {

// Elements of a task, and how many tasks share long rows: each has room of its own for one of them.
constexpr double elements_in_order = 8192, rows_of_unknown_length = 8;
constexpr std::int64_t tasks_of_long_rows = 64, blocks_of_long_rows = 512;
// Of a transpose, which are copied together: of a cache line of their elements, all are taken at once.
constexpr std::int64_t most_rows_together = 16;
constexpr std::int64_t off_the_same_set = 16;  // elements between rows, for lengths that are powers of two

// Keys and positions, all of 32 bits or of 64.
std::int64_t words_of_element(DType element, const Target& target) {
    return bits_of(element) <= 32 ? 2 : chooser_of(target).words_in_order;
}

std::int64_t bytes_of_element(DType element, const Target& target) {
    return bytes_of(element) + words_of_element(element, target) * bytes_of(DType::uint64);
}

// Of scratch, for what is sorted and what else the task keeps there.
std::int64_t most_bytes_in_order(const Target& target) { return target.local_bytes / 2; }

// The innermost axis of rows, where the elements of all rows at one point of a row lie beside each other, as
// in a transpose.
std::optional<std::size_t> axis_across(const Nest& nest) {
    const std::size_t axis = nest.parallel.size() - 2;
    if (nest.parallel.size() < 2 || !nest.lets.empty()) return {};
    const Loop &row = nest.parallel[axis], &each = nest.reduced[0];
    if (!row.variable.symbol_id() || typical(row.extent) < most_rows_together) return {};
    bool across = true, any = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (s.at.empty() || !depends_on(ScalarNode(s), each.variable.symbol_id())) return;
        any = true;
        across = across && !depends_on(s.at.back(), each.variable.symbol_id()) &&
                 axis_along(s, row.variable) == s.at.size() - 1;
    });
    return any && across ? std::optional(axis) : std::nullopt;
}

// Scratch, or where that is too small, memory of which each task has its own part.
class Room {
  public:
    Room(const OrderTask& task, bool in_scratch, const SegmentContext& context, KernelBuilder& builder)
        : task_(task), in_scratch_(in_scratch), context_(context), builder_(builder) {}

    int make(DType dtype, const Int& count, const char* name, Stmts& declared) {
        if (in_scratch_) {
            const int place = builder_.scratch(Place::Scope::local, dtype, {count});
            declared.push_back(declare(place));
            return place;
        }
        const Type type{dtype, {task_.tasks, count}};
        return builder_.global(context_.new_buffer(type, name, "rows that are sorted, one of each task",
                                                   BufferInfo::Role::task_rows),
                               type.dtype, type.shape, true);
    }
    std::vector<Int> at(const Int& element) const {
        return in_scratch_ ? std::vector<Int>{element} : std::vector<Int>{task_.task, element};
    }

  private:
    const OrderTask& task_;
    const bool in_scratch_;
    const SegmentContext& context_;
    KernelBuilder& builder_;
};

}  // namespace

std::int64_t rows_of_orders_on_gpu(const std::vector<Nest>& nests, const Target& target) {
    std::int64_t rows = 0;
    for (const Nest& nest : nests) {
        if (!is_order(nest.combine)) continue;
        const std::int64_t bytes = bytes_of_element(nest.body->dtype, target);
        const Int &length = nest.reduced[0].extent, &all = nest.parallel[0].extent;
        const bool fits = length.is_constant() && length.constant() * bytes <= most_bytes_in_order(target);
        const std::int64_t own =
            all.is_constant() && !fits ? ceildiv(all, blocks_of_long_rows).constant() : 1;
        rows = std::max({rows, own, std::int64_t{1}});
    }
    return rows;
}

std::optional<RowsOfMember> rows_of_order(const Nest& nest) {
    if (!is_order(nest.combine)) return {};
    const double length = std::max(1.0, typical_count(nest.reduced)),
                 inner = std::max(1.0, typical_count({nest.parallel.begin() + 1, nest.parallel.end() - 1}));
    const bool known = nest.reduced[0].extent.is_constant();
    const double together = known ? elements_in_order / (length * inner) : rows_of_unknown_length;
    auto rows = static_cast<std::int64_t>(std::max(1.0, together));
    if (known && length <= elements_in_order && axis_across(nest)) rows = std::max(rows, most_rows_together);
    if (together < 1 && nest.parallel[0].extent.is_constant())
        rows = std::max(rows, ceildiv(nest.parallel[0].extent, tasks_of_long_rows).constant());
    // Rows that are sorted in scratch take no memory of each task.
    return RowsOfMember{rows, known && length <= elements_in_order ? 1 : rows};
}

//     for rows, some at a time where they lie beside each other:
//         for k: for row of some: elements[row, k] = x[k, row]
//         for row of some: y[row] = order of elements[row]
Stmts schedule_order(const Member& member, const OrderTask& task, const SegmentContext& context,
                     KernelBuilder& builder) {
    const Loop each = member.nest.reduced[0], last = member.nest.parallel.back();
    const DType dtype = member.nest.body->dtype;
    const std::int64_t words = words_of_element(dtype, context.target),
                       bytes = bytes_of_element(dtype, context.target);
    const std::int64_t left = most_bytes_in_order(context.target) - task.used_bytes;
    const bool in_scratch = each.extent.is_constant() && bytes * each.extent.constant() <= left;
    const std::optional<std::size_t> axis =
        in_scratch && !context.target.tasks_have_threads() ? axis_across(member.nest) : std::nullopt;
    std::int64_t together = 1;
    Int pitch = each.extent;
    if (in_scratch) {
        const std::int64_t all = bytes * each.extent.constant();
        if (axis) {
            const std::int64_t apart = each.extent.constant() + off_the_same_set;
            while (together < most_rows_together && all + 2 * together * apart * bytes_of(dtype) <= left)
                together *= 2;
            if (together > 1) pitch = apart;
        }
        task.used_bytes += all + (together > 1 ? together * pitch.constant() * bytes_of(dtype) : 0);
    }
    Member one = member;
    Loop block, row;
    if (together > 1) {
        const Loop rows = member.nest.parallel[*axis];
        block = make_loop("block", ceildiv(rows.extent, together));
        row = {Int::symbol("row", {0, together - 1}), min(together, rows.extent - together * block.variable)};
        const Substitution place{{rows.variable.symbol_id(), together * block.variable + row.variable}};
        one.nest.parallel[*axis] = block;
        one.nest = substitute(one.nest, place);
        for (Destination& to : one.destinations)
            for (Int& x : to.at) x = substitute(x, place);
    }
    const Nest& nest = one.nest;
    Stmts body;
    Room room(task, in_scratch, context, builder);
    const int elements = room.make(dtype, together * pitch, "row", body),
              space = room.make(DType::uint64, words * each.extent, "sorted", body);
    const Int first_element = together > 1 ? pitch * row.variable : Int(0);

    Member copy;
    copy.nest = nest;
    copy.nest.parallel = {each};
    if (together > 1) copy.nest.parallel.push_back(row);
    copy.nest.reduced.clear();
    copy.nest.combine = Combine::none;
    copy.nest.dtype = dtype;
    copy.destinations = {{elements, room.at(first_element + each.variable)}};
    Stmts collected = schedule_pointwise(copy, context.target, builder);
    collected.push_back(barrier());
    Substitution first;
    if (const std::uint64_t id = last.variable.symbol_id()) first[id] = 0;
    std::vector<Int> at = one.destinations[0].at;
    for (Int& x : at) x = substitute(x, first);
    Stmts sorted;
    sorted.push_back(sort_row(one.destinations[0].place, at, nest.combine,
                              place_read(dtype, elements, room.at(first_element)),
                              place_read(DType::uint64, space, room.at(0)), each.extent, last.extent));
    sorted.push_back(barrier());
    if (one.destinations.size() > 1) {
        Member others = copy;
        others.nest.parallel = {last};
        others.nest.lets.clear();
        others.nest.dtype = nest.dtype;
        others.nest.body = place_read(nest.dtype, one.destinations[0].place, one.destinations[0].at);
        others.destinations.assign(one.destinations.begin() + 1, one.destinations.end());
        append(sorted, schedule_pointwise(others, context.target, builder));
        sorted.push_back(barrier());
    }
    if (together > 1) sorted = {loop(row.variable, 0, row.extent, Binding::serial, std::move(sorted))};
    append(collected, std::move(sorted));
    for (std::size_t d = nest.parallel.size() - 1; d-- > 0;)
        if (const Loop& l = nest.parallel[d]; l.variable.symbol_id())
            collected = {loop(l.variable, 0, l.extent, Binding::serial, std::move(collected))};
    append(body, std::move(collected));
    return body;
}

Segment schedule_order_of_vector(int value, const Nest& placed, const SegmentContext& context,
                                 KernelBuilder& builder, const std::string& title) {
    const Value& own = context.values.list[static_cast<std::size_t>(value)];
    const Type type = own.stored_type();
    Member member;
    member.nest = placed;
    for (const int buffer : context.buffers_to_write(value))
        member.destinations.push_back(
            {builder.global(buffer, type.dtype, type.shape, true), {placed.parallel[0].variable}});
    Segment segment;
    segment.title = title;
    segment.tasks = 1;
    segment.task = 0;
    segment.body = {comment_of(*own.node)};
    std::int64_t used = 0;
    append(segment.body, schedule_order(member, {0, 1, used}, context, builder));
    return segment;
}

}  // namespace bitale
