#include "codegen/plan/calls.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "codegen/library/made.h"
#include "codegen/library/slices.h"

namespace bitale {

namespace {

void describe(const GemmCall& call, Step& step) {
    Int count = 1;
    if (call.strides)
        for (const GemmStrides::Batch& batch : call.strides->batches) count = count * batch.count;
    step.flops = 2 * count * call.m * call.n * call.k;
}

GemmStep::Moved moved_by(const GemmCall& call) {
    Int count = 1, of_a = 1, of_b = 1;
    if (call.strides)
        for (const GemmStrides::Batch& batch : call.strides->batches) {
            if (!batch.adds()) count = count * batch.count;
            if (!batch.a.is(0)) of_a = of_a * batch.count;
            if (!batch.b.is(0)) of_b = of_b * batch.count;
        }
    const Int element = bytes_of(call.dtype);
    return {call.made_a ? Int(0) : bytes_of(call.dtype_of_a()) * of_a * call.m * call.k,
            call.made_b ? Int(0) : bytes_of(call.dtype_of_b()) * of_b * call.k * call.n, 0,
            call.bias ? element * call.n : Int(0), element * count * call.m * call.n};
}

void describe(const ConvCall& call, Step& step) {
    const auto count = [](const ConvTensor& t) { return t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]; };
    const std::array<Int, 4>& f = call.filters.shape;
    step.flops = 2 * count(call.output) * f[1] * f[2] * f[3];
    step.bytes =
        4 * (count(call.image) + count(call.filters) + count(call.output) + (call.bias ? f[0] : Int(0)));
}

void describe(const RoutineCall& /*call*/, Step& /*step*/) {}

}  // namespace

void describe_call(const LibraryCall& library, Step& step) {
    step.why = library.why;
    step.flops = library.flops;
    step.bytes = library.bytes;
    std::visit([&](const auto& c) { describe(c, step); }, library.call);
}

BufferInfo workspace_of(const RoutineCall& call, const Node& node) {
    return {BufferInfo::Kind::arena,
            0,
            call.name + " workspace",
            {call.dtype, {call.workspace}},
            "a routine of the runtime works in it",
            node.origins};
}

void describe_operands(const LibraryCall& library, const Values& values, const Target& target, GemmStep& gemm,
                       Step& step) {
    GemmCall& call = gemm.call;
    call.made_a = is_made(values.list[library.operands[0]]);
    call.made_b = is_made(values.list[library.operands[1]]);
    gemm.moved = moved_by(call);
    constexpr double fewest = 128;
    call.symmetric = target.library_in_tasks && library.operands[0] == library.operands[1] &&
                     call.transpose_a != call.transpose_b && call.m == call.n && !call.bias && !call.relu &&
                     !call.strides && typical(call.m) >= fewest;
    if (call.symmetric) step.why += "; a matrix times its own transpose: one half, mirrored";
}

void cut_into_slices(GemmCall& call) {
    const auto size = [](const Int& x) { return static_cast<std::int64_t>(typical(x)); };
    if (call.made_a || call.made_b || call.symmetric) {
        constexpr std::int64_t unknown_depth = 512;
        const std::int64_t k =
            call.k.is_constant() ? call.k.constant() : std::max(size(call.k), unknown_depth);
        const GemmSlices slices =
            slices_in_pieces(size(call.m), size(call.n), k,
                             {call.made_a, call.made_b, call.symmetric, call.transpose_b,
                              bytes_of(call.dtype_of_b()), call.parameter});
        call.slice_rows = slices.rows;
        call.slice_columns = slices.columns;
        call.piece_depth = slices.depth;
        return;
    }
    Int depth = call.k;
    if (call.strides)
        for (const GemmStrides::Batch& batch : call.strides->batches)
            if (batch.adds()) depth = depth * batch.count;
    const GemmSlices slices =
        slices_of(size(call.m), size(call.n), size(depth), call.transpose_b && !call.transpose_a,
                  call.parameter, call.strides.has_value(), 1, bytes_of(call.dtype_of_b()));
    call.slice_rows = slices.rows;
    call.slice_columns = slices.columns;
    call.slice_depth = slices.of_depth > 1 ? slices.depth : 0;
}

}  // namespace bitale
