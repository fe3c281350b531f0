#include "codegen/library/gemm.h"

#include <cstddef>

namespace bitale {

namespace {

// The operand is stored as a row-major [rows, columns] matrix, whatever its own axes.
bool reads(const ScalarNode& s, const Shape& stored, const Int& row, const Int& column, const Int& columns) {
    if (!s.guards.empty() || s.at.size() != stored.size()) return false;
    Int offset = 0;
    for (std::size_t d = 0; d < s.at.size(); ++d) offset = offset * stored[d] + s.at[d];
    return offset == row * columns + column;
}

// Of a product of int32, what is cast.
const ScalarNode& factor_of(const ScalarNode& s) {
    return s.kind == ScalarNode::Kind::cast ? *s.arguments[0] : s;
}

}  // namespace

bool takes_integers(DType a, DType b) { return (a == DType::uint8 || a == DType::int8) && b == DType::int8; }

bool has_products_of(DType dtype, const Target& target) {
    return (dtype == DType::float32 && target.has_gemm) || (dtype == DType::float64 && target.has_gemm_f64) ||
           (dtype == DType::int32 && target.has_gemm_int8);
}

std::optional<GemmCall> match_matrices(const Nest& nest, const ScalarNode& a, const ScalarNode& b,
                                       const ShapeOf& shape_of) {
    if (nest.combine != Combine::sum || nest.parallel.size() != 2 || nest.reduced.size() != 1 ||
        !nest.guards.empty() || !nest.lets.empty())
        return {};
    if (a.kind != ScalarNode::Kind::read || b.kind != ScalarNode::Kind::read) return {};
    const Int &m = nest.parallel[0].variable, &n = nest.parallel[1].variable, &k = nest.reduced[0].variable;
    const Shape &stored_a = shape_of(a.operand), &stored_b = shape_of(b.operand);
    GemmCall call;
    call.m = nest.parallel[0].extent;
    call.n = nest.parallel[1].extent;
    call.k = nest.reduced[0].extent;
    call.transpose_a = !reads(a, stored_a, m, k, call.k);
    call.transpose_b = !reads(b, stored_b, k, n, call.n);
    if (call.transpose_a && !reads(a, stored_a, k, m, call.m)) return {};
    if (call.transpose_b && !reads(b, stored_b, n, k, call.k)) return {};
    return call;
}

std::optional<LibraryCall> match_gemm(const Nest& nest, const ShapeOf& shape_of, const Target& target) {
    const DType dtype = nest.dtype;
    if (!has_products_of(dtype, target) || !nest.body || !applies(*nest.body, Opcode::mul)) return {};
    const ScalarNode &a = factor_of(*nest.body->arguments[0]), &b = factor_of(*nest.body->arguments[1]);
    if (dtype == DType::int32 ? !takes_integers(a.dtype, b.dtype) : a.dtype != dtype || b.dtype != dtype)
        return {};
    std::optional<GemmCall> call = match_matrices(nest, a, b, shape_of);
    if (!call) return {};
    call->dtype = dtype;
    call->unsigned_a = dtype == DType::int32 && a.dtype == DType::uint8;
    call->precision = target.precision;
    return LibraryCall{*call, {a.operand.value(), b.operand.value()}, {}, {}};
}

}  // namespace bitale
