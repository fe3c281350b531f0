// What a row of the table is made of: the vocabulary of its columns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bitale/expr.h"
#include "graph/ir/op.h"

namespace bitale::table_row {

// How the operands' dtypes decide about the result's.
enum class Rule : std::uint8_t { same, floating, logical, selecting, random_bits };

struct Text {
    Text(const char* all) : floats(all) {}  // NOLINT
    Text(const char* of_floats, const char* of_integers) : floats(of_floats), integers(of_integers) {}
    std::string floats, integers;
};

struct Traits {
    bool commutative = false, zero_to_zero = false, non_decreasing = false;
    bool floats = true, integers = true, booleans = true;  // dtypes of the operands
    const char* integer_title = "";                        // MapInfo
    Opcode opcode = Opcode::other;                         // MapInfo
    std::function<Int(const std::vector<Int>&)> length{};
};

inline Traits operator|(Traits a, const Traits& b) {
    a.commutative |= b.commutative;
    a.zero_to_zero |= b.zero_to_zero;
    a.non_decreasing |= b.non_decreasing;
    a.floats &= b.floats;
    a.integers &= b.integers;
    a.booleans &= b.booleans;
    if (*b.integer_title) a.integer_title = b.integer_title;
    if (b.opcode != Opcode::other) a.opcode = b.opcode;
    if (b.length) a.length = b.length;
    return a;
}

inline Traits known(Opcode opcode) { return {.opcode = opcode}; }

inline Traits of_integers_called(const char* title) { return {.integer_title = title}; }

inline Traits as_length(Int (*f)(const Int&)) {
    return {.length = [f](const std::vector<Int>& x) { return f(x[0]); }};
}
inline Traits as_length(Int (*f)(const Int&, const Int&)) {
    return {.length = [f](const std::vector<Int>& x) { return f(x[0], x[1]); }};
}

// One evaluation of all gradient columns: null expressions where none flows.
using Gradient = std::vector<Expr> (*)(const Expr& g, const std::vector<Expr>& operands, const Expr& y);
// The reference over whole arrays: operands of equal length, or of one element.
using Reference = Array (*)(const std::vector<Array>& operands, DType result, const Dims& shape);

// The function of floats in long double, its operands one after the other; null where floats are not
// computed.
using WideFunction = long double (*)(const long double* operands);

struct Row {
    const char* name;
    int arity;
    Rule rule;
    Text text;
    Reference reference;
    WideFunction wide;
    Gradient gradient;
    int cost;
    Traits traits;
    double low, high;
};

// What a length becomes when it is stored as the dtype. Exact for narrow integers; with 32 bits and more
// lengths do not come near the limits, and the algebra can prove more without them.
Int wrapped(const Int& x, DType dtype);

// mod(a, b), and 0 where b is 0 as for integers of every dtype.
Int remainder(const Int& a, const Int& b);

WideFunction wide_function_of(const Op* op);
bool is_logical(const Op* op);  // gives booleans

// The op record of a row, registered.
const Op* register_row(Row row);

}  // namespace bitale::table_row
