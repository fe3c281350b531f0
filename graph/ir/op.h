// Op: the one record that says everything about an operation. Adding an op is writing one; nothing else
// changes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitale/error.h"
#include "graph/ir/attributes.h"
#include "graph/ir/opcode.h"

namespace bitale {

struct Node;
using NodePtr = std::shared_ptr<const Node>;
using Nodes = std::vector<NodePtr>;
struct Nest;
struct Op;

enum class OpKind : std::uint8_t {
    leaf,    // input, shared, constant
    map,     // elementwise: one scalar in per operand, one out; described by `map`
    view,    // moves or repeats elements without arithmetic: reshape, permute, slice, rows, gather, pad ...
    reduce,  // any nest with reduced axes: sum, contract, conv, pooling ...
    opaque,  // has no nest: a routine of the runtime computes it as a whole
    composite,  // has `decompose`; gone before code generation
};

// What code generation and the oracle need to know of a scalar function.
struct MapInfo {
    std::string text;  // C expression over the argument names a, b, c: "a + b", "b_exp(a)"
    std::string integer_text =
        {};  // the same for integers and booleans where it differs: "b_add(a, b)" wraps
    std::string integer_title = {};  // Op::title of integers: "maximum" for the relu of an index
    Opcode opcode = Opcode::other;   // each of the others belongs to one op
    int cost = 1;                    // rough cycles per element: 1 for an add, 4 for a division, 20 for exp
    bool commutative = false;
    bool maps_zero_to_zero = false;  // f(0) = 0 (unary)
    bool non_decreasing = false;     // a <= b implies f(a) <= f(b) (unary)
    double low = -4, high = 4;       // where tests draw arguments from
};

// Two lengths that must be the same number at every call; `what` completes "... must be equal", unless it is
// the whole sentence (where b == max(a, b) stands for an inequality).
struct Equality {
    Int a, b;
    std::string what;
    bool is_sentence = false;
    bool is_index = false;  // a place out of range: IndexError, else ShapeError
};

// Every element of the integer tensor `value` must lie in [low, high), or the call fails before anything is
// written.
struct Check {
    NodePtr value;
    Int low, high;
    std::string what;  // "a label of categorical_crossentropy", completes "... is out of range"
    Where where;
};

// Which tensor of a convolution an op computes from the other two. Its attributes are "stride", "dilation",
// "pad" and "flip".
enum class Convolution : std::uint8_t { forward, image_gradient, filter_gradient };

// What an opaque op says to code generation: a routine that the runtime has, and the numbers that it needs.
struct Routine {
    std::string name;
    std::vector<Int> sizes;
};

struct Op {
    std::string name;
    // What reports call it where that is another word: `slice` for `rows`. title_of(node) looks here.
    std::string title{};
    OpKind kind = OpKind::composite;
    int arity = -1;        // -1: any
    std::string result{};  // what reports call its result where that is stored: "a convolution"
    std::optional<Convolution> convolution{};
    bool takes_rows = false;  // the result is rows of the first operand, chosen at the call
    bool is_stored = false;   // the result goes to memory as soon as it is known: its readers come late
    bool draws = false;       // random numbers, by the counter of a stream, its last operand

    // The result's dtype and shape, or a thrown ShapeError/TypeError whose text names op, dtypes and shapes.
    std::function<Type(const Nodes& inputs, const Attributes& attributes, Where where)> infer{};
    // Lengths that infer could neither prove equal nor unequal; checked at the call. May be empty.
    std::function<std::vector<Equality>(const Node& node)> equalities{};
    // The op on lengths: its value when the operands are integer scalars known at the call (add, mul, cast
    // ...).
    std::function<Int(const Node& node, const std::vector<Int>& inputs)> as_length{};
    // Values that must be checked on the device. May be empty.
    std::function<std::vector<Check>(const Node& node)> checks{};
    // Gradients with respect to each input, given that of the output; null: none flows (integers, labels).
    std::function<Nodes(const NodePtr& node, const NodePtr& gradient)> gradient{};
    // The oracle: plain loops. Floats arrive and leave as float64 arrays, integers in their own dtype.
    std::function<Array(const Node& node, const std::vector<Array>& inputs)> evaluate{};
    // The index map as data: the loop nest that computes the node (view and reduce kinds; map has a generic
    // one).
    std::function<Nest(const Node& node)> nest{};
    // Opaque kind. The operands and the result are then in memory as plain row-major tensors.
    std::function<Routine(const Node& node)> routine{};
    // The same value from simpler nodes (composite kind).
    std::function<NodePtr(const NodePtr& node)> decompose{};

    std::shared_ptr<const MapInfo> map{};  // kind map only
};

// Every op by name, for rules, tests, documentation. Op records register once and live forever.
const Op* register_op(Op op);  // returns its permanent address; InternalError for a second one of that name
const Op* find_op(const std::string& name);  // null if unknown
const Op* op_of(Opcode opcode);              // InternalError if none is registered
Opcode opcode_of(const Op& op);
std::vector<const Op*> all_ops();  // sorted by name

}  // namespace bitale
