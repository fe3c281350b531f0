#include "graph/ir/node.h"

#include <algorithm>
#include <new>

#include "graph/base/lines.h"
#include "graph/base/text.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/borrowed.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/length_input.h"
#include "graph/ir/shared.h"

namespace bitale {

std::string text_of(const Origin& origin) {
    return printable(origin.title.empty() ? origin.what : origin.title) + at_line(origin.where);
}

std::string text_of(const std::vector<Origin>& origins) {
    std::string text;
    for (const Origin& origin : origins) text += (text.empty() ? "" : ", ") + text_of(origin);
    return text;
}

Node::~Node() {
    // The thread's list of nodes to drop: the outermost destructor drains what the inner ones append.
    thread_local Nodes* pending = nullptr;
    if (pending) {
        try {
            for (NodePtr& p : inputs) pending->push_back(std::move(p));
        } catch (const std::bad_alloc&) {  // the rest goes by itself, one destructor within the other
        }
        return;
    }
    Nodes list = std::move(inputs);
    pending = &list;
    while (!list.empty()) {
        const NodePtr last = std::move(list.back());
        list.pop_back();
    }
    pending = nullptr;
}

namespace {

// Of the lengths that are known: an array could not have more (array_bytes.h). Lengths of a call are refused
// by the call.
void require_countable(const std::string& what, const Type& type, Where where) {
    std::int64_t elements = 1;
    bool counts = true, is_empty = false;
    for (const Int& length : type.shape) {
        if (!length.is_constant()) continue;
        const std::int64_t n = length.constant();
        if (n < 0) throw ShapeError(where, what + ": a length of " + text_of(type) + " is negative");
        is_empty |= n == 0;
        counts = counts && !__builtin_mul_overflow(elements, std::max<std::int64_t>(n, 1), &elements);
    }
    if (counts && (is_empty || elements <= most_bytes / bytes_of(type.dtype))) return;
    throw ShapeError(where, what + ": " + text_of(type) + " has more " + (counts ? "bytes" : "elements") +
                                " than can be counted");
}

}  // namespace

NodePtr make_node(const Op* op, Nodes inputs, Attributes attributes, Where where, std::string name) {
    BITALE_CHECK(op, "a node without an op");
    for (const NodePtr& p : inputs) BITALE_CHECK(p, "a null operand of " + op->name);
    BITALE_CHECK(op->arity < 0 || static_cast<std::size_t>(op->arity) == inputs.size(),
                 "operand count of " + op->name);
    auto node = std::make_shared<Node>();
    node->type = op->infer(inputs, attributes, where);
    require_countable(op->name, node->type, where);
    node->op = op;
    node->inputs = std::move(inputs);
    node->attributes = std::move(attributes);
    node->where = where;
    node->name = std::move(name);
    return node;
}

namespace {

const Op* leaf(const char* name) {
    Op op;
    op.name = name;
    op.kind = OpKind::leaf;
    op.arity = 0;
    return register_op(std::move(op));
}

constexpr const char* stands_for = "stands_for";  // attribute of a constant: the op of a leaf

NodePtr make_leaf(const Op* op, Type type, Attributes attributes, Where where, std::string name) {
    auto node = std::make_shared<Node>();
    node->op = op;
    node->type = std::move(type);
    node->attributes = std::move(attributes);
    node->where = where;
    node->name = std::move(name);
    return node;
}

}  // namespace

const Op* input_op() {
    static const Op* op = leaf("input");
    return op;
}
const Op* shared_op() {
    static const Op* op = leaf("shared");
    return op;
}
const Op* constant_op() {
    static const Op* op = leaf("constant");
    return op;
}

namespace {

NodePtr make_input(Type type, std::string name, Where where, IntRange values) {
    require_countable("input " + in_quotes(name), type, where);
    Attributes attributes;
    if (type.rank() == 0 && is_integer(type.dtype))
        attributes.set("symbol", Int::symbol(name.empty() ? "scalar" : name, values));
    return make_leaf(input_op(), std::move(type), std::move(attributes), where, std::move(name));
}

}  // namespace

NodePtr make_input(Type type, std::string name, Where where) {
    return make_input(std::move(type), std::move(name), where, {IntRange::lowest, IntRange::highest});
}

NodePtr make_length_input(std::string name, Where where) {
    return make_input({DType::int64, {}}, std::move(name), where, {0, IntRange::highest});
}

NodePtr make_shared_node(const SharedPtr& shared, Where where) {
    if (!shared)
        throw GraphError(where,
                         "an empty shared variable is used, or one that was moved from; create it with "
                         "shared(value, name)");
    const Reading reading(shared->turns);
    return make_leaf(shared_op(), {shared->value.dtype(), shape_of(shared->value.shape())},
                     {{"shared", shared}}, where, shared->name);
}

NodePtr make_constant(Array value, Where where) {
    Type type{value.dtype(), shape_of(value.shape())};
    return make_leaf(constant_op(), std::move(type),
                     {{"value", std::make_shared<const Array>(ArrayMemory::own(value))}}, where, {});
}

NodePtr make_stand_in(const Node& leaf, Array value) {
    Type type{value.dtype(), shape_of(value.shape())};
    return make_leaf(
        constant_op(), std::move(type),
        {{"value", std::make_shared<const Array>(std::move(value))}, {stands_for, leaf.op->name}}, leaf.where,
        leaf.name);
}

bool is_constant(const NodePtr& node) { return node->op == constant_op(); }

const Array& constant_value(const NodePtr& node) {
    BITALE_CHECK(is_constant(node), "not a constant: " + describe(*node));
    return *node->attributes.get<std::shared_ptr<const Array>>("value");
}

SharedPtr shared_of(const NodePtr& node) {
    return node->op == shared_op() ? node->attributes.get<SharedPtr>("shared") : nullptr;
}

std::string title_of(const Node& node) {
    if (!node.title.empty()) return node.title;
    // A node that a rewrite made has its statements, and no title of its own.
    for (const Origin& origin : node.origins)
        if (!origin.title.empty() && origin.what == node.op->name) return origin.title;
    if (node.op->map && !node.op->map->integer_title.empty() && is_integer(node.type.dtype))
        return node.op->map->integer_title;
    return node.op->title.empty() ? node.op->name : node.op->title;
}

std::string describe(const Node& node) {
    const Attribute* leaf = node.attributes.find(stands_for);
    const std::string kind = leaf ? std::get<std::string>(*leaf) : title_of(node);
    std::string s = node.name.empty() ? kind : in_quotes(node.name);
    // A routine packs its results into one, of a shape that the user has not seen.
    const bool packs = node.op->kind == OpKind::opaque && !node.inputs.empty();
    s += packs ? " (of " + text_of(node.inputs[0]->type) + ")" : " (" + text_of(node.type) + ")";
    return s + at_line(node.where);
}

std::string message_of(const Equality& equality, const Node& node) {
    const std::string where = node.where.line ? node.where.text() + ": " : "";
    if (has_marks(equality.what)) return where + equality.what;
    return where + equality.what + (equality.is_sentence ? "" : " must be equal") + ", in " + describe(node);
}

}  // namespace bitale
