#include "codegen/schedule/check.h"

#include <cstddef>
#include <vector>

#include "codegen/nest/compose.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/rows_of_task.h"
#include "graph/ir/fault_text.h"

namespace bitale {

namespace {

const Check& check_of(const Group& group, const SegmentContext& context) {
    return context.graph.checks[static_cast<std::size_t>(group.checks[0])];
}

}  // namespace

std::int64_t rows_of_check(const Group& group, const SegmentContext& context) {
    return check_of(group, context).value->type.shape.empty() ? 1 : pointwise_block;
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
    for (std::size_t d = 0; d < nest.parallel.size(); ++d)
        element = element * (d < type.shape.size() ? type.shape[d] : Int(1)) + nest.parallel[d].variable +
                  (d == 0 ? rows.task * rows.block : Int(0));
    const int errors = builder.global(context.errors_buffer(), DType::int64, {Int(4)}, true);
    builder.ir.errors_buffer = builder.ir.places[errors].buffer;
    Segment segment;
    segment.title = "check of " + title_of(checked);
    segment.tasks = ceildiv(group.extent, rows.block);
    segment.task = rows.task;
    LoopBuilder loops(nest);
    const auto body = [&](LoopBuilder& inner) {
        return inner.substituted({check(group.checks[0], nest.body, checked.low, checked.high, element)});
    };
    segment.body = context.target.tasks_have_threads() ? loops.threads(nest.parallel, body)
                                                       : loops.nest(nest.parallel, body);
    return segment;
}

}  // namespace bitale
