// Values: every node of the graph as a nest, and the decision how each exists at run time. Nothing is stored
// that can be recomputed cheaply where it is read; what is stored carries the reason for the report.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/library/call.h"
#include "codegen/nest/access.h"
#include "codegen/target.h"
#include "codegen/tune/tuner.h"
#include "graph/ir/graph.h"
#include "graph/ir/nest.h"

namespace bitale {

// What a size decision assumes for a length that is not known: its upper bound when small; else what follows
// from 128 for each unknown axis.
double typical(const Int& x);
double typical_count(const std::vector<Loop>& loops);
double typical_elements(const Node& node);
// By the origin that has the node's own line: views and rewrites add those of what they took in.
bool is_of_gradient(const Node& node);

struct Value {
    enum class Storage : std::uint8_t {
        leaf,     // input, shared variable or constant: a buffer that exists already
        inlined,  // recomputed wherever it is read
        staged,   // like inlined, but a kernel that reads it often keeps a copy of the part it needs
        stored,   // computed once into memory (or into a kernel's scratch, when one kernel alone reads it)
    };
    NodePtr node;
    Nest nest;  // operands are value numbers; leaves have none
    Storage storage = Storage::leaf;
    Shape shape;                     // as it lies in memory: the node's, or with its axes in another order
    std::vector<std::size_t> order;  // which axes of the node these are; empty: as they come
    std::string reason;              // of stored values
    bool packed = false;             // a transposed copy: in memory though it only moves elements
    bool searched = false;           // keys in ascending order, in which sums over runs find theirs
    bool required = false;           // output, update or checked value: must reach memory
    bool feeds_product = false;      // a library reads it
    bool made_in_pieces = false;  // a library's product needs it, and would rather make it (library/made.h)
    // What a library demands of the order: rows of a product, or a convolution that is fastest channel-last.
    enum class Order : std::uint8_t { free, plain, channel_last };
    Order wanted_order = Order::free;
    std::optional<LibraryCall> by_library;  // the call that computes it
    bool absorbed = false;                  // exists only inside of the library call of another value
    std::string why_generated;              // why a convolution is generated, or a gradient has its form
    std::vector<int> users;                 // value numbers
    int together = -1;  // of reductions that one loop computes (group/together.h): what they share, else -1
    Type stored_type() const { return {node->type.dtype, shape}; }
};

inline bool is_reduction(const Nest& nest) { return nest.combine != Combine::none; }

// Elements, at usual lengths.
double count_of(const Value& value);

// For nodes that begin what a gradient computes again: the values that have to be there before
// (group/again.h).
using Waits = std::unordered_map<const Node*, Nodes>;

struct Values {
    std::vector<Value> list;  // operands before users
    std::unordered_map<const Node*, int> number;
    Waits waits{};
    const Value& of(const NodePtr& node) const { return list[number.at(node.get())]; }
    ShapeOf shapes() const {
        return
            [this](Operand of) -> const Shape& { return list[static_cast<std::size_t>(of.value())].shape; };
    }

    // From here on nothing in `list` changes, so compositions, which are asked for many times, are kept.
    void settle() { composed = fully_composed = std::vector<std::optional<Nest>>(list.size()); }
    mutable std::vector<std::optional<Nest>> composed, fully_composed;  // empty before settle()
};

// How many elements a nest makes, or combines. Of keys, sorted or not, each belongs to one row, or place;
// along a prefix each place adds one element; a row is put in order as a whole.
double iterations(const Nest& nest);

// `required` are the roots of the graph. A product that the library will compute makes its operands stored.
// The tuner may be null. Values that wait come after what they wait for.
Values decide_storage(const Graph& graph, const Target& target, Tuner* tuner, const Waits& waits = {});

// The nest of a stored or staged value with everything inlined: reads leaves, stored and staged values only.
Nest composed_nest(const Values& values, int value);
// The same, with staged values inlined too.
Nest fully_composed_nest(const Values& values, int value);
// A sum over a data set, not over a batch, none of whose terms is looked up: its order is decided by all that
// it is made of, whatever is copied or stored on the way (in_rows).
bool is_of_data(const Values& values, int value);
// Likewise of any nest whose operands are values.
Nest fully_composed_nest(const Values& values, const Nest& nest);
// In a sum over runs, a row that is looked up by the very key of a point is the row of the result: a gradient
// that reads the table which it updates reads its own row alone. Both compositions say so; this says it of
// another one.
Nest in_own_rows(const Values& values, const Nest& nest);

}  // namespace bitale
