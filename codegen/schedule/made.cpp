#include "codegen/schedule/made.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "codegen/library/made.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/pieces.h"

namespace bitale {

namespace {

// What one kernel loop computes of a piece: `begin` is where in the piece.
struct PartOfPiece {
    Nest nest;
    std::size_t axis = 0;  // that the parts lie along
    std::array<Loop, 2> inside;
    std::array<Int, 2> begin{0, 0};
};

bool moves_by_one(const PartOfPiece& part, std::size_t axis, const ShapeOf& shape_of) {
    // Indices that are looked up are read once for what they lead to.
    Nest elements = part.nest;
    elements.lets.clear();
    return unit_stride(elements, part.inside[axis].variable, shape_of);
}

}  // namespace

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
    std::array<Int, 2> first, length;  // of the piece, along both axes
    first[across] = floordiv(segment.task, pieces) * width;
    first[along] = mod(segment.task, pieces) * depth;
    length[across] = min(width, extent - first[across]);
    length[along] = min(depth, terms - first[along]);
    // An operand in parts, as a concatenation is, asks no element where it lies:
    //
    //     for each part: for its rows: for its terms in the piece: piece[row, term] = part[row, term]
    std::vector<Piece> whole = pieces_of(full);
    const bool in_parts = !whole.empty();
    if (!in_parts) whole.push_back({full, along, 0});
    std::vector<PartOfPiece> parts;
    for (const Piece& from : whole) {
        PartOfPiece& part = parts.emplace_back();
        part.axis = from.axis;
        std::array<Int, 2> count = length;
        if (in_parts) {
            const Int end = from.start + from.nest.parallel[from.axis].extent - first[from.axis];
            part.begin[from.axis] = max(0, from.start - first[from.axis]);
            count[from.axis] = min(length[from.axis], end) - part.begin[from.axis];
        }
        part.inside[across] = make_loop(side == 0 ? "row" : "column", count[across]);
        part.inside[along] = make_loop("term", count[along]);
        Substitution here;
        for (const std::size_t d : {across, along})
            if (const std::uint64_t id = from.nest.parallel[d].variable.symbol_id())
                here.emplace(id, first[d] + part.begin[d] + part.inside[d].variable -
                                     (d == from.axis ? from.start : Int(0)));
        part.nest = map_reads(substitute(from.nest, here), [&](const Scalar& s) -> Scalar {
            auto r = std::make_shared<ScalarNode>(*s);
            r->operand = Operand::of_place(context.in_memory(s->operand.value(), builder));
            return r;
        });
    }
    const auto all_move = [&](std::size_t axis) {
        return std::all_of(parts.begin(), parts.end(), [&](const PartOfPiece& part) {
            return moves_by_one(part, axis, builder.shapes());
        });
    };
    const bool turned = all_move(0) && !all_move(1);
    const std::size_t outer = turned ? 1 : 0, inner = 1 - outer;
    (side == 0 ? call.transpose_a : call.transpose_b) = turned;
    const std::int64_t outer_extent = outer == across ? width : depth,
                       inner_extent = outer == across ? depth : width;
    const int place = builder.global(piece, DType::float32, {Int(outer_extent), Int(inner_extent)}, true);
    segment.title = side == 0 ? "pieces of a" : "pieces of b";
    segment.body.push_back(comment(segment.title));
    for (PartOfPiece& part : parts) {
        const Loop &rows = part.inside[outer], &columns = part.inside[inner];
        const Int count = part.inside[part.axis].extent;
        Member member;
        member.nest = std::move(part.nest);
        member.nest.parallel = {rows, columns};
        member.destinations = {
            {place, {part.begin[outer] + rows.variable, part.begin[inner] + columns.variable}}};
        Stmts body = schedule_pointwise(member, context.target, builder);
        if (in_parts) body = {when({{0 - count, IntRange::lowest, 0}}, std::move(body))};
        append(segment.body, std::move(body));
    }
    notes += "  pieces of " + std::to_string(side == 0 ? width : depth) + " x " +
             std::to_string(side == 0 ? depth : width) + ", each right before the library multiplies it\n";
    if (in_parts) notes += "  " + std::to_string(parts.size()) + " parts by themselves\n";
    return segment;
}

}  // namespace bitale
