// How a library's product is cut into slices, each of them a task of its own.
#pragma once

#include <cstdint>

#include "codegen/program.h"

namespace bitale {

// Parts of the depth, whose results are added in order, and each of them a grid of slices of so many rows and
// columns of the result, row by row of the grid.
struct GemmSlices {
    std::int64_t rows = 0, columns = 0, depth = 0;           // of a slice; the last ones may be smaller
    std::int64_t of_rows = 0, of_columns = 0, of_depth = 0;  // how many there are
    std::int64_t of_grid() const { return of_rows * of_columns; }
};

// By the shape alone, so that the bits do not depend on the number of threads. `whole`: the depth is not cut.
// Of each of many products of one shape: fewer of them, the more products there are. `element`: bytes of one
// of the factors.
GemmSlices slices_of(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b,
                     GemmCall::Parameter parameter, bool whole = false, std::int64_t products = 1,
                     std::int64_t element = 4);
// The same cuts of another shape.
GemmSlices slices_of(std::int64_t m, std::int64_t n, std::int64_t k, const GemmSlices& sizes);

// Products with operands that are made piece by piece, or whose result mirrors itself.
struct Pieces {
    bool made_a = false, made_b = false, symmetric = false, transpose_b = false;
    std::int64_t element = 4;  // bytes of it
    GemmCall::Parameter parameter = GemmCall::Parameter::none;
};
// Rows and columns of a slice, and as its depth that of a piece.
GemmSlices slices_in_pieces(std::int64_t m, std::int64_t n, std::int64_t k, const Pieces& how);
// The grid of a shape that is cut so: parts of the depth, each of them some pieces, or `whole`, all of it.
GemmSlices slices_in_pieces(std::int64_t m, std::int64_t n, std::int64_t k, const GemmSlices& sizes,
                            bool symmetric, bool whole);

}  // namespace bitale
