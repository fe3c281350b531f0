// Node: one value of a computation graph. Immutable; its type is known as soon as it exists.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/attributes.h"
#include "graph/ir/op.h"

namespace bitale {

// The user's statements that a node stands for. Rewrites hand them on and append the rule's name.
struct Origin {
    Where where;
    std::string what;          // op or variable name as the user wrote it
    bool of_gradient = false;  // of that statement, but made by grad
    std::string title{};       // what reports say in place of `what`, or empty
};
std::string text_of(const Origin& origin);  // "dot at net.cpp:12"
std::string text_of(const std::vector<Origin>& origins);

struct Node {
    const Op* op = nullptr;
    Nodes inputs;
    Attributes attributes;
    Type type;
    Where where;
    std::string name;                // given by the user, or empty
    std::vector<Origin> origins;     // filled by import; sorted, unique
    std::vector<std::string> rules;  // names of the rewrites that made it
    bool of_gradient = false;        // made by grad; `where` is the line of what was differentiated
    std::string title;               // what reports call it in place of its op's title, or empty

    Node() = default;
    Node(const Node&) = default;
    Node& operator=(const Node&) = delete;
    ~Node();  // iterative: a chain of any length is destroyed on a small stack
};

// Builds a node; the op's type rule runs at once and throws ShapeError or TypeError with the user's line.
NodePtr make_node(const Op* op, Nodes inputs, Attributes attributes = {}, Where where = {},
                  std::string name = {});

// The leaves.
const Op* input_op();     // integer scalars: attribute "symbol", the Int that stands for the argument's value
const Op* shared_op();    // attribute "shared"
const Op* constant_op();  // attribute "value"
NodePtr make_input(Type type, std::string name, Where where);
NodePtr make_shared_node(const SharedPtr& shared, Where where);
NodePtr make_constant(Array value, Where where = {});
// A constant in place of an input or a shared variable, which messages go on naming as the user does.
NodePtr make_stand_in(const Node& leaf, Array value);

bool is_constant(const NodePtr& node);
const Array& constant_value(const NodePtr& node);  // InternalError unless is_constant
SharedPtr shared_of(const NodePtr& node);          // null unless the node is a shared variable

// The word for its op in what users read: `slice` for `rows`, "gradient of relu" for the selection of one.
std::string title_of(const Node& node);
// "exp at net.cpp:12" or "x (float32 [n, 3]) at net.cpp:3", for messages.
std::string describe(const Node& node);
// "net.cpp:12: ... must be equal, in add (float32 [n])", for the call that breaks it.
std::string message_of(const Equality& equality, const Node& node);

}  // namespace bitale
