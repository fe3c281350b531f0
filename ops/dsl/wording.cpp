#include "ops/dsl/wording.h"

#include "graph/base/numbers.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/node.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

std::string literal_text(const Array& value) {
    return is_float(value.dtype()) ? number_text(value.at(0)) : std::to_string(value.item<std::int64_t>());
}

// Which view of a vector lies along this axis of a tensor of so many axes.
std::string along_axis(const std::string& vector, std::size_t axis, std::size_t rank) {
    if (rank == 4 && axis == 1) return "channel(" + vector + ")";
    if (axis + 2 == rank) return "expand_dims(" + vector + ", 1)";
    std::string ones;
    for (std::size_t i = axis + 1; i < rank; ++i) ones += ", 1";
    return "reshape(" + vector + ", {-1" + ones + "})";
}

// Of operands within operands up to this depth.
std::string text_of_program(const NodePtr& node, int depth) {
    const std::string& op = node->op->name;
    if (!node->name.empty()) return printable(node->name);
    if (is_constant(node)) return node->type.rank() == 0 ? literal_text(constant_value(node)) : "";
    if (depth == 0) return "";
    if (op == "cast" || op == "expand") return text_of_program(node->inputs[0], depth - 1);
    const char* sign = op == "add"   ? " + "
                       : op == "sub" ? " - "
                       : op == "mul" ? " * "
                       : op == "div" ? " / "
                                     : nullptr;
    if (!sign) return "";
    std::string sides[2];
    for (std::size_t i = 0; i < 2; ++i) {
        sides[i] = text_of_program(node->inputs[i], depth - 1);
        if (sides[i].empty()) return "";
        if (sides[i].find(' ') != std::string::npos) sides[i] = "(" + sides[i] + ")";
    }
    return sides[0] + sign + sides[1];
}

}  // namespace

std::string axes_text(int rank) {
    if (rank == 0) return "a scalar has no axes";
    if (rank == 1) return "its axis is 0, or -1";
    const std::string between = rank == 2 ? " and " : " to ";
    return "axes are 0" + between + std::to_string(rank - 1) + ", or -1" + between + "-" +
           std::to_string(rank);
}

int checked_axis(int axis, const Expr& x, const char* op, Where where) {
    require_present(op, {&x}, where);
    const int rank = x.rank();
    if (axis < -rank || axis >= rank)
        throw IndexError(where, std::string(op) + " of " + describe(*x.node()) + ": there is no axis " +
                                    std::to_string(axis) + "; " + axes_text(rank));
    return axis < 0 ? axis + rank : axis;
}

std::string word_for(const Expr& operand, const char* place) {
    const std::string& name = operand.node()->name;
    return name.empty() ? place : printable(name);
}

void require_present(const char* op, std::initializer_list<const Expr*> operands, Where where) {
    for (const Expr* x : operands)
        if (x->is_null())
            throw GraphError(where, std::string(op) +
                                        ": an operand is an empty expression, a default Expr or "
                                        "one that was moved from; assign it before");
}

std::string operation_text(const std::string& op, const std::vector<Expr>& operands) {
    std::string s = op + " of ";
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const Node& node = *operands[i].node();
        s += i == 0 ? "" : i + 1 == operands.size() ? " and " : ", ";
        s += operands[i].is_weak() ? "the number " + literal_text(constant_value(operands[i].node()))
                                   : describe(node);
    }
    return s;
}

std::string unlike_lengths(const Node& a, std::size_t axis_a, const std::string& length_a, const Node& b,
                           std::size_t axis_b, const std::string& length_b) {
    const bool alike = a.name == b.name;
    const auto word = [&](const Node& x, const char* place) {
        return x.name.empty() || alike ? place : in_quotes(x.name);
    };
    return "axis " + std::to_string(axis_a) + " of " + word(a, "the first operand") + " has length " +
           length_a + " and axis " + std::to_string(axis_b) + " of " + word(b, "the second operand") +
           " has length " + length_b;
}

std::string unlike_lengths(const Node& a, std::size_t axis_a, const Node& b, std::size_t axis_b) {
    return unlike_lengths(a, axis_a, number_found(), b, axis_b, number_there());
}

std::string with_source(const std::string& what, const Node& elements) {
    const Node* x = &elements;
    while (x->name.empty() && !x->inputs.empty() && (x->op->kind == OpKind::view || x->op == cast_op()))
        x = x->inputs[0].get();
    return x->name.empty() ? what : with_sentence(what, what + " in " + in_quotes(x->name));
}

std::string vector_cure(const Node& a, const Node& b) {
    const bool first = a.type.rank() == 1;
    const Node &vector = first ? a : b, &tensor = first ? b : a;
    const Shape& shape = tensor.type.shape;
    if (vector.type.rank() != 1 || shape.size() < 2) return "";
    const Int& length = vector.type.shape[0];
    const std::string name = vector.name.empty() ? "the vector" : printable(vector.name);
    // Of images the channels are meant before anything else.
    std::vector<std::size_t> axes;
    if (shape.size() == 4) axes.push_back(1);
    for (std::size_t i = 0; i + 1 < shape.size(); ++i)
        if (shape.size() != 4 || i != 1) axes.push_back(i);
    const auto each = [&](std::size_t axis) {
        return shape.size() == 4 && axis == 1 ? std::string("each channel")
               : axis == 0                    ? std::string("each row")
                                              : "each place of axis " + std::to_string(axis);
    };
    for (const std::size_t axis : axes)
        if (shape[axis] == length)
            return "; for a number for " + each(axis) + " write " + along_axis(name, axis, shape.size());
    if (!never_equal(shape[axes[0]], length))
        return "; if " + name + " has a number for " + each(axes[0]) + ", write " +
               along_axis(name, axes[0], shape.size());
    return "";
}

std::string cast_text(const std::shared_ptr<const Node>& operand, DType dtype, const char* place) {
    const std::string text = program_text(operand);
    return "cast(" + (text.empty() ? place : text) + ", " + std::string(name_of(dtype)) + ")";
}

std::string program_text(const std::shared_ptr<const Node>& node) {
    constexpr int depth = 4;
    constexpr std::size_t most = 40;
    const std::string text = text_of_program(node, depth);
    return text.size() > most ? "" : text;
}

}  // namespace bitale
