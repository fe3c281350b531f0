#include "codegen/schedule/made.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "codegen/kernel/quotients.h"
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
    std::array<std::int64_t, 2> step{1, 1};
};

// `in_runs`: also along an axis that is joined of two, as rows of images are.
bool moves_by_one(const PartOfPiece& part, std::size_t axis, bool in_runs, const ShapeOf& shape_of) {
    // Indices that are looked up are read once for what they lead to.
    Nest elements = part.nest;
    elements.lets.clear();
    const Int& variable = part.inside[axis].variable;
    return unit_stride(elements, variable, shape_of) ||
           (in_runs && unit_stride_in_runs(elements, variable, shortest_run, shape_of));
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
    const auto parts_of = [&](const std::vector<Piece>& whole) {
        std::vector<PartOfPiece> parts;
        for (const Piece& from : whole) {
            PartOfPiece& part = parts.emplace_back();
            part.axis = from.axis;
            std::array<Int, 2> count = length, before{0, 0};  // `before`: in the part, before the piece
            if (from.step > 1) {
                const auto numbers_before = [&](const Int& at) {
                    return max(0, ceildiv(at - from.start, from.step));
                };
                before[from.axis] = numbers_before(first[from.axis]);
                part.step[from.axis] = from.step;
                part.begin[from.axis] = from.start + from.step * before[from.axis] - first[from.axis];
                count[from.axis] = numbers_before(first[from.axis] + length[from.axis]) - before[from.axis];
            } else if (whole.size() > 1) {
                const Int end = from.start + from.nest.parallel[from.axis].extent - first[from.axis];
                part.begin[from.axis] = max(0, from.start - first[from.axis]);
                count[from.axis] = min(length[from.axis], end) - part.begin[from.axis];
                before[from.axis] = part.begin[from.axis] + first[from.axis] - from.start;
            }
            part.inside[across] = make_loop(side == 0 ? "row" : "column", count[across]);
            part.inside[along] = make_loop("term", count[along]);
            Substitution here;
            for (const std::size_t d : {across, along})
                if (const std::uint64_t id = from.nest.parallel[d].variable.symbol_id())
                    here.emplace(id, (d == from.axis && whole.size() > 1 ? before[d] : first[d]) +
                                         part.inside[d].variable);
            part.nest = map_reads(substitute(from.nest, here), [&](const Scalar& s) -> Scalar {
                auto r = std::make_shared<ScalarNode>(*s);
                r->operand = Operand::of_place(context.in_memory(s->operand.value(), builder));
                return r;
            });
        }
        return parts;
    };
    const auto is_turned = [&](const std::vector<PartOfPiece>& parts) {
        const auto all_move = [&](std::size_t axis, bool in_runs) {
            return std::all_of(parts.begin(), parts.end(), [&](const PartOfPiece& part) {
                return moves_by_one(part, axis, in_runs, builder.shapes());
            });
        };
        return all_move(0, true) && !all_move(1, false) && (all_move(0, false) || !all_move(1, true));
    };
    std::vector<Piece> whole = pieces_of(full);
    if (whole.empty()) whole = pieces_by_remainder(full);
    std::vector<PartOfPiece> parts = parts_of(whole);
    bool turned = !whole.empty() && is_turned(parts);
    // A few parts that take turns along the lanes are computed side by side (schedule/pointwise.cpp).
    constexpr std::int64_t few = 4;
    if (whole.empty() || (!turned && whole[0].step > 1 && whole[0].step <= few)) {
        whole = {{full, along, 0}};
        parts = parts_of(whole);
        turned = is_turned(parts);
    }
    const bool in_parts = whole.size() > 1;
    const std::size_t outer = turned ? 1 : 0, inner = 1 - outer;
    (side == 0 ? call.transpose_a : call.transpose_b) = turned;
    const std::int64_t outer_extent = outer == across ? width : depth,
                       inner_extent = outer == across ? depth : width;
    const DType dtype = side == 0 ? call.dtype_of_a() : call.dtype_of_b();
    const int place = builder.global(piece, dtype, {Int(outer_extent), Int(inner_extent)}, true);
    segment.title = side == 0 ? "pieces of a" : "pieces of b";
    segment.body.push_back(comment(segment.title));
    for (PartOfPiece& part : parts) {
        const Loop &rows = part.inside[outer], &columns = part.inside[inner];
        const Int count = part.inside[part.axis].extent;
        Member member;
        member.nest = std::move(part.nest);
        member.nest.parallel = {rows, columns};
        member.destinations = {{place,
                                {part.begin[outer] + part.step[outer] * rows.variable,
                                 part.begin[inner] + part.step[inner] * columns.variable}}};
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
