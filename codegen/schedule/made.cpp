#include "codegen/schedule/made.h"

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "codegen/library/made.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"

namespace bitale {

Segment schedule_pieces(int value, int side, GemmCall& call, int piece, const SegmentContext& context,
                        KernelBuilder& builder, std::string& notes) {
    const std::size_t across = side == 0 ? 0 : 1, along = 1 - across;  // the slice's axis, and the depth
    const std::int64_t width = side == 0 ? call.slice_rows : call.slice_columns, depth = call.piece_depth;
    const Nest full = made_operand(context.values, value, side);
    const Int &extent = full.parallel[across].extent, &terms = full.parallel[along].extent;
    const Int pieces = ceildiv(terms, depth);
    Segment segment;
    segment.tasks = ceildiv(extent, width) * pieces;
    segment.task = make_loop("piece", segment.tasks).variable;
    const Int first = floordiv(segment.task, pieces) * width, term = mod(segment.task, pieces) * depth;
    std::array<Loop, 2> inside;
    inside[across] = make_loop(side == 0 ? "row" : "column", min(width, extent - first));
    inside[along] = make_loop("term", min(depth, terms - term));
    Substitution here;
    for (const auto& [axis, begin] : {std::pair{across, first}, std::pair{along, term}})
        if (const std::uint64_t id = full.parallel[axis].variable.symbol_id())
            here.emplace(id, begin + inside[axis].variable);
    Nest nest = substitute(full, here);
    nest = map_reads(nest, [&](const Scalar& s) -> Scalar {
        auto r = std::make_shared<ScalarNode>(*s);
        r->operand = Operand::of_place(context.in_memory(s->operand.value(), builder));
        return r;
    });
    // Indices that are looked up are read once for what they lead to.
    Nest elements = nest;
    elements.lets.clear();
    const bool turned = unit_stride(elements, inside[0].variable, builder.shapes()) &&
                        !unit_stride(elements, inside[1].variable, builder.shapes());
    const std::size_t outer = turned ? 1 : 0;
    (side == 0 ? call.transpose_a : call.transpose_b) = turned;
    nest.parallel = {inside[outer], inside[1 - outer]};
    const std::int64_t outer_extent = outer == across ? width : depth,
                       inner_extent = outer == across ? depth : width;
    Member member;
    member.nest = std::move(nest);
    member.destinations = {
        {builder.global(piece, DType::float32, {Int(outer_extent), Int(inner_extent)}, true),
         {inside[outer].variable, inside[1 - outer].variable}}};
    segment.title = side == 0 ? "pieces of a" : "pieces of b";
    segment.body.push_back(comment(segment.title));
    for (Stmt& s : schedule_pointwise(member, context.target, builder)) segment.body.push_back(std::move(s));
    notes += "  pieces of " + std::to_string(side == 0 ? width : depth) + " x " +
             std::to_string(side == 0 ? depth : width) + ", each right before the library multiplies it\n";
    return segment;
}

}  // namespace bitale
