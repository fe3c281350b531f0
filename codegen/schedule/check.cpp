#include "codegen/schedule/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/rows_of_task.h"
#include "graph/ir/fault_text.h"

namespace bitale {

namespace {

const Check& check_of(const Group& group, const SegmentContext& context) {
    return context.graph.checks[static_cast<std::size_t>(group.checks[0])];
}

// For each row of the last loop first whether any element is outside, in lanes, and then, if so, which.
Stmts check_in_lanes(const Nest& nest, const Check& checked, const Stmt& each, KernelBuilder& builder) {
    // Twice as many lanes where 32 bits hold the indices and their bounds.
    const IntRange low = checked.low.range(), high = checked.high.range();
    const bool narrow = bits_of(nest.body->dtype) <= 32 && nest.body->dtype != DType::uint32 &&
                        std::min(low.low, high.low) >= INT32_MIN &&
                        std::max(low.high, high.high) <= INT32_MAX;
    const DType dtype = narrow ? DType::int32 : DType::int64;
    const int outside = builder.scratch(Place::Scope::private_, dtype, {});
    const Scalar value = scalar_cast(dtype, nest.body);
    const auto add_if = [&](Opcode compare, const Int& bound) {
        const Scalar limit = scalar_cast(dtype, scalar_index(DType::int64, bound));
        return accumulate(outside, {}, Combine::max,
                          scalar_cast(dtype, scalar_apply(compare, DType::boolean, {value, limit})));
    };
    const std::vector<Loop> around(nest.parallel.begin(), nest.parallel.end() - 1),
        last{nest.parallel.back()};
    LoopBuilder loops(nest);
    return loops.nest(around, [&](LoopBuilder& inner) {
        Stmts body{declare(outside), set(outside, {}, scalar_integer(dtype, 0))};
        append(body, inner.nest(
                         last,
                         [&](LoopBuilder& at) {
                             return at.substituted(
                                 {add_if(Opcode::lt, checked.low), add_if(Opcode::ge, checked.high)});
                         },
                         Binding::simd));
        const Int found = Int::symbol("outside", {0, 1});
        body.push_back(let(found, place_read(dtype, outside, {}), 2));
        body.push_back(
            when({{found, 1, 2}}, inner.nest(last, [&](LoopBuilder& at) { return at.substituted({each}); })));
        return body;
    });
}

}  // namespace

std::int64_t rows_of_check(const Group& group, const SegmentContext& context) {
    const Shape& shape = check_of(group, context).value->type.shape;
    if (shape.empty()) return 1;
    double inner = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) inner *= typical(shape[d]);
    const double rows = static_cast<double>(pointwise_block) / std::max(inner, 1.0);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
}

Segment schedule_check(const Group& group, const TaskRows& rows, const SegmentContext& context,
                       KernelBuilder& builder, const std::function<Nest(const Nest&)>& with_places) {
    const Check& checked = check_of(group, context);
    const int v = context.values.number.at(checked.value.get());
    const Type& type = checked.value->type;
    Nest nest;
    std::vector<Int> at;
    for (const Int& extent : type.shape) {
        nest.parallel.push_back(make_loop("i", extent));
        at.push_back(nest.parallel.back().variable);
    }
    nest.dtype = type.dtype;
    nest.body = scalar_read(type.dtype, Operand::of_value(v), at);
    nest = simplify(compose(nest, [&](int operand) -> const Nest* {
        const Value& o = context.values.list[operand];
        const bool computed = o.storage == Value::Storage::inlined || o.storage == Value::Storage::staged;
        return computed ? &o.nest : nullptr;
    }));
    nest = with_places(rows.cut(nest));
    Int element = 0;
    if (!type.shape.empty()) {
        std::vector<Int> here;
        for (const Loop& l : nest.parallel) here.push_back(l.variable);
        const std::vector<Int> place = rows.whole(std::move(here));
        for (std::size_t d = 0; d < place.size(); ++d)
            element = element * (d < type.shape.size() ? type.shape[d] : Int(1)) + place[d];
    }
    const int errors = builder.global(context.errors_buffer(), DType::int64, {Int(4)}, true);
    builder.ir.errors_buffer = builder.ir.places[errors].buffer;
    Segment segment;
    segment.title = "check of " + title_of(checked);
    segment.tasks = ceildiv(group.extent, rows.block);
    segment.task = rows.task;
    const Stmt each = check(group.checks[0], nest.body, checked.low, checked.high, element);
    if (context.target.has_vectors() && !nest.parallel.empty() && nest.lets.empty() && nest.guards.empty()) {
        segment.body = check_in_lanes(nest, checked, each, builder);
        return segment;
    }
    LoopBuilder loops(nest);
    const auto body = [&](LoopBuilder& inner) { return inner.substituted({each}); };
    segment.body = context.target.tasks_have_threads() ? loops.threads(nest.parallel, body)
                                                       : loops.nest(nest.parallel, body);
    return segment;
}

}  // namespace bitale
