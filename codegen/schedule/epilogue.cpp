#include "codegen/schedule/epilogue.h"

#include <memory>
#include <utility>
#include <vector>

#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"

namespace bitale {

Segment schedule_epilogue(const Group& group, std::size_t first, const GemmCall& call, int slice,
                          const SegmentContext& context, KernelBuilder& builder, std::string& notes) {
    const int product = group.values[0];
    const Int across = ceildiv(call.n, call.slice_columns);
    Segment segment;
    segment.tasks = ceildiv(call.m, call.slice_rows) * across;
    segment.task = make_loop("slice", segment.tasks).variable;
    const Int first_row = floordiv(segment.task, across) * call.slice_rows,
              first_column = mod(segment.task, across) * call.slice_columns;
    for (std::size_t i = first; i < group.values.size(); ++i) {
        const int v = group.values[i];
        const Value& value = context.values.list[static_cast<std::size_t>(v)];
        const Nest full = fully_composed_nest(context.values, v);
        const Loop row = make_loop("row", min(call.slice_rows, call.m - first_row)),
                   column = make_loop("column", min(call.slice_columns, call.n - first_column));
        const std::vector<Int> at{first_row + row.variable, first_column + column.variable};
        Substitution here;
        for (std::size_t d = 0; d < at.size(); ++d)
            if (const std::uint64_t id = full.parallel[d].variable.symbol_id()) here.emplace(id, at[d]);
        Nest nest = substitute(full, here);
        nest.parallel = {row, column};
        nest = map_reads(nest, [&](const Scalar& s) -> Scalar {
            auto r = std::make_shared<ScalarNode>(*s);
            if (s->operand.value() == product && !context.leaves_group(product)) {
                r->operand = Operand::of_place(builder.global(
                    slice, call.dtype, {Int(call.slice_rows), Int(call.slice_columns)}, false));
                r->at = {row.variable, column.variable};
                return r;
            }
            r->operand = Operand::of_place(context.in_memory(s->operand.value(), builder));
            return r;
        });
        Member member;
        member.nest = std::move(nest);
        const Type type = value.stored_type();
        for (const int buffer : context.buffers_to_write(v))
            member.destinations.push_back({builder.global(buffer, type.dtype, type.shape, true), at});
        segment.title += (i > first ? " + " : "") + title_of(*value.node);
        segment.body.push_back(comment_of(*value.node));
        for (Stmt& s : schedule_pointwise(member, context.target, builder))
            segment.body.push_back(std::move(s));
    }
    notes += "  on each slice of " + std::to_string(call.slice_rows) + " rows and " +
             std::to_string(call.slice_columns) + " columns, right after the library has computed it\n";
    if (!context.leaves_group(product))
        notes += "  the product itself is not stored: a slice is used up in the cache\n";
    return segment;
}

}  // namespace bitale
