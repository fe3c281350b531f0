// What the schedules of planes share.
#pragma once

#include <cstdint>
#include <functional>

#include "codegen/schedule/builder.h"

namespace bitale {

// Scratch of a plane, or of as many of its rows as stay in the fastest cache; what a long row may take.
constexpr std::int64_t kept_bytes = 24 << 10, most_plane_bytes = 256 << 10;

constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// Points are computed in so many at a time: as many as the widest register has.
std::int64_t plane_lanes(DType dtype);

// A whole register may be read where a row of these elements ends.
bool readable_past_the_end(const KernelBuilder& builder, const ScalarNode& read);

// Several planes, those along the last loop before them, or rows of one plane.
struct PlaneBlock {
    Int plane, planes, first, rows;  // the first plane, how many; the first row, how many
};
// How many planes, or rows of one, at a time for scratch of so many bytes; false where one row is too long.
// Points of several planes are computed in one loop, so `alike` says that nothing but what they have in
// scratch depends on the plane.
bool choose_planes(const Nest& nest, std::int64_t rows, bool alike,
                   const std::function<std::int64_t(std::int64_t planes, std::int64_t rows)>& bytes,
                   std::int64_t& planes_at_once, std::int64_t& rows_at_once);
// All blocks, under the loops around them.
Stmts over_planes(const Nest& nest, std::int64_t planes_at_once, std::int64_t rows_at_once, std::int64_t rows,
                  const std::function<Stmts(const PlaneBlock&)>& body);
// For each plane of the block: `plane` counts them where there can be several.
Stmts in_planes(const Nest& nest, const PlaneBlock& block, const Int& plane, Stmts body);

}  // namespace bitale
