// Sums of bytes in memory over the rows of a matrix, whose columns are the results: exact in any order, so
// rows are read as they lie, as vectors of bytes.
//
//     for each chunk of rows:
//         for each row:  parts[chunk][all columns] += the bytes of the row
//     for each column:  result = the sum of its parts
#pragma once

#include <optional>
#include <vector>

#include "codegen/nest/access.h"
#include "codegen/nest/tree.h"
#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

struct ByteColumns {
    const ScalarNode* byte = nullptr;  // the read
    std::size_t results = 0;           // so many loops over results are the columns: the last ones
    Int width = 1;                     // columns, side by side
    Loop rows;                         // the last of the reduced loops
    Int far;                           // from one row to the next
    std::vector<Loop> outer;           // the reduced loops that are left
};

// Of an integer sum over 8-bit elements along the `reduced` loops, of which none may be left: one row.
std::optional<ByteColumns> byte_columns(const Nest& nest, const std::vector<Loop>& reduced,
                                        const ShapeOf& shape_of);

// On a CPU, of such a sum that is long enough and whose results are the columns: chunks of the first reduced
// loop. Sums of small integers are exact: the order is free.
std::optional<ReductionTree> order_of_byte_columns(const Nest& nest, const ShapeOf& shape_of);

// A chunk of the first reduced loop, `count` iterations from `begin` on, for which `row` stands in the nest;
// nothing where the chunk has no such columns. The chunk may be cut into so many `parts` of its columns.
struct ChunkOfColumns {
    Nest nest;  // of the chunk
    Int parts = 1;
};
std::optional<ChunkOfColumns> chunk_of_columns(const Member& member, const KernelBuilder& builder,
                                               const Int& row, const Int& begin, const Int& count);
// The sums of part number `part` to place[number, columns].
Stmts schedule_columns(const ChunkOfColumns& chunk, const KernelBuilder& builder, int place,
                       const Int& number, const Int& part);
// Sums in chunks of their first reduced loop, `rows`, if all of them are over such columns: the bodies of the
// segment's tasks, each of which has a part of the columns of a chunk.
struct SumInChunks {
    const Member* member = nullptr;
    int place = -1;  // of the partial results
};
bool schedule_chunks_of_columns(const std::vector<SumInChunks>& sums, const Loop& rows,
                                const KernelBuilder& builder, Segment& segment);
// One iteration of the first reduced loop, added to place[number, columns].
std::optional<Stmts> add_row_of_columns(const Member& member, const KernelBuilder& builder, int place,
                                        const Int& number);

// A sum that is complete within the task; nothing where columns are few or unknown in number, or rows few.
std::optional<Stmts> schedule_byte_columns(const Member& member, KernelBuilder& builder);

}  // namespace bitale
