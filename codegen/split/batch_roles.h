// How the values of a graph depend on the rows of a batch, by the index maps of their nests.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/nest.h"

namespace bitale {

// What is the batch: the length that is this symbol, or, where lengths are known, the first axis of these
// values.
struct Batch {
    std::uint64_t symbol = 0;
    std::unordered_set<const Node*> begins{};
    std::int64_t rows = 0;  // their first length
};

struct BatchRole {
    enum class Kind : std::uint8_t {
        whole,    // reads no row of the batch, or totals over all of them alone
        rows,     // each element along `axis` depends on one row of the batch, and on whole values
        partial,  // a sum, product, maximum, minimum, any, all, or the position of a maximum or minimum over
                  // values of that kind: rows can be combined in parts
    };
    Kind kind = Kind::whole;
    int axis = 0;
    // Along `axis` come blocks one after another, each over the whole batch: element e of block b is of row
    // e / blocks[b]. {1}: a batch, {t}: a batch joined with an axis of t, {1, 1}: two batches concatenated.
    std::vector<std::int64_t> blocks{1};
    // Pass over the batch in which a `rows` or `partial` value can be computed; of a `whole` one the first
    // pass that can read it. A mean of the batch that its rows are compared with makes a second pass.
    int pass = 0;
    Combine combine = Combine::none;  // of a partial value
    // For each operand that is whole: the axis along which the node reads it row by row, or -1, and how many
    // of its elements there belong to a row.
    struct Slice {
        int axis = -1;
        std::int64_t elements = 1;
    };
    std::vector<Slice> sliced;

    bool is_rows() const { return kind == Kind::rows; }
    // First pass that can read all of it.
    int complete() const { return kind == Kind::partial ? pass + 1 : pass; }
};

struct BatchRoles {
    std::unordered_map<const Node*, BatchRole> of;
    std::string obstacle;  // why the graph cannot be computed part by part; empty: it can
    std::string cure;      // what to do about it
    Where where;           // of the node that is the obstacle
};

// `graph` consists of primitives.
BatchRoles batch_roles(const Graph& graph, const Batch& batch);

// Whether a value repeats its elements along the axis.
bool repeats_along(const Node& node, int axis);

}  // namespace bitale
