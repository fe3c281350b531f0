// From a row to an op record: type rule, gradient, oracle, lengths.
#include "ops/elementwise/rows.h"

#include <unordered_map>

#include "bitale/ops.h"
#include "graph/base/options.h"
#include "ops/dsl/build.h"
#include "ops/dsl/literal.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/shape/view.h"

namespace bitale {

namespace table_row {

namespace {

// Filled once, when the table is registered. Leaked, as op records are.
std::unordered_map<const Op*, Row>& known_rows() {
    static auto& map = *new std::unordered_map<const Op*, Row>;
    return map;
}

std::string operand_dtypes(const Nodes& inputs) {
    std::string s;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        s += std::string(i == 0                   ? ""
                         : i + 1 == inputs.size() ? " and "
                                                  : ", ") +
             std::string(name_of(inputs[i]->type.dtype));
    return s;
}

bool admits(const Traits& traits, Rule rule, DType dtype) {
    if (is_half(dtype)) return false;
    if (rule == Rule::random_bits) return dtype == DType::uint64;
    if (rule == Rule::floating) return is_float(dtype);
    if (dtype == DType::boolean) return traits.booleans;
    return is_float(dtype) ? traits.floats : traits.integers;
}

DType result_of(Rule rule, DType operands) {
    return rule == Rule::logical ? DType::boolean : rule == Rule::random_bits ? DType::uint32 : operands;
}

// The shape of a map: operands that are no scalars agree; a known length is preferred to a symbol.
Shape map_shape(const char* name, const Nodes& inputs, Where where) {
    const Node* first = nullptr;
    Shape shape;
    for (const NodePtr& input : inputs) {
        if (input->type.rank() == 0) continue;
        if (!first) {
            first = input.get();
            shape = input->type.shape;
            continue;
        }
        bool fits = input->type.rank() == static_cast<int>(shape.size());
        for (std::size_t i = 0; fits && i < shape.size(); ++i) {
            const Int& length = input->type.shape[i];
            const IntRange difference = (length - shape[i]).range();
            fits = difference.low <= 0 && difference.high >= 0;
            if (length.is_constant()) shape[i] = length;
        }
        if (!fits)
            throw ShapeError(where, std::string(name) + ": the shapes of " + describe(*first) + " and " +
                                        describe(*input) + " differ");
    }
    return shape;
}

struct Written {
    const Node* node = nullptr;
    std::size_t axis = 0;
    bool is_expanded = false;  // by axes of length 1, as matmul does
};

// What the user wrote of an operand's axis, where the operand was broadcast, cast or expanded for its sake.
Written as_written(const Node& operand, std::size_t axis) {
    Written w{&operand, axis};
    while (w.node->op == expand_op() || w.node->op == cast_op() || w.node->op == reshape_op()) {
        const Node& x = *w.node->inputs[0];
        const Shape &outer = w.node->type.shape, &inner = x.type.shape;
        std::size_t at = w.axis;
        if (w.node->op == reshape_op()) {
            Shape rest;
            for (std::size_t i = 0; i < outer.size(); ++i) {
                if (!outer[i].is(1)) rest.push_back(outer[i]);
                if (i < w.axis && outer[i].is(1)) --at;
            }
            if (rest != inner || outer[w.axis].is(1)) return w;
            w.is_expanded = true;
        } else {
            const std::size_t missing = outer.size() - inner.size();
            if (w.axis < missing || !(inner[w.axis - missing] == outer[w.axis])) return w;
            at -= missing;
        }
        w.node = &x;
        w.axis = at;
    }
    return w;
}

std::string unlike_operands(const Node& node, const Node& first, const Node& second, std::size_t axis) {
    const Written a = as_written(first, axis), b = as_written(second, axis);
    const std::string lengths = unlike_lengths(*a.node, a.axis, *b.node, b.axis);
    const std::string operands = describe(*a.node) + " and " + describe(*b.node) + ": ";
    if (node.op->name == "mul" && a.is_expanded && b.is_expanded) {
        const bool sums = a.axis + 1 == a.node->type.shape.size() && b.axis + 2 == b.node->type.shape.size();
        return "matmul of " + operands +
               (sums ? "it sums over an axis of both, but " + lengths + "; transpose or reshape one operand"
                     : "the numbers of matrices must be equal, but " + lengths);
    }
    const std::string cure = vector_cure(*a.node, *b.node);
    return node.op->name + " of " + operands + "the lengths must be equal, but " + lengths +
           (cure.empty() ? "; only an axis that is declared with length 1 is broadcast" : cure);
}

std::vector<Equality> map_equalities(const Node& node) {
    std::vector<Equality> r;
    const Node* first = nullptr;
    for (const NodePtr& input : node.inputs) {
        if (input->type.rank() == 0) continue;
        if (!first) {
            first = input.get();
            continue;
        }
        for (std::size_t i = 0; i < input->type.shape.size(); ++i)
            if (!(first->type.shape[i] == input->type.shape[i]))
                r.push_back({first->type.shape[i], input->type.shape[i],
                             unlike_operands(node, *first, *input, i), true});
    }
    return r;
}

Type infer(const Row& row, const Nodes& inputs, Where where) {
    const std::size_t first = row.rule == Rule::selecting ? 1 : 0;
    const DType dtype = inputs[first]->type.dtype;
    bool fits =
        admits(row.traits, row.rule, dtype) && (first == 0 || inputs[0]->type.dtype == DType::boolean);
    for (std::size_t i = first; i < inputs.size(); ++i) fits &= inputs[i]->type.dtype == dtype;
    if (!fits)
        type_error(where, row.name, "does not compute on " + operand_dtypes(inputs) + "; cast the operands");
    return {result_of(row.rule, dtype), map_shape(row.name, inputs, where)};
}

Nodes gradient(const Row& row, const NodePtr& node, const NodePtr& g) {
    Nodes r(node->inputs.size());
    if (!is_float(node->type.dtype)) return r;
    std::vector<Expr> operands;
    for (const NodePtr& input : node->inputs) operands.push_back(wrap(input));
    operands.resize(3);
    const std::vector<Expr> flows = row.gradient(wrap(g), operands, wrap(node));
    for (std::size_t i = 0; i < r.size(); ++i) {
        if (flows[i].is_null()) continue;
        // A scalar operand was repeated over the whole result.
        const bool repeated = node->inputs[i]->type.rank() == 0 && flows[i].rank() > 0;
        r[i] = (repeated ? sum(flows[i]) : flows[i]).node();
    }
    return r;
}

// a < 0 and the like decide where one side has values that the other dtype has not; what is left is compared
// in uint64.
Expr compared(const Op* op, const Expr& a, const Expr& b, Where where) {
    const bool signed_first = is_signed_integer(a.dtype());
    const Arg negative = lt(Arg(signed_first ? a : b, where), Arg(0, where));
    const auto wide = [&](const Expr& x) { return cast(x, DType::uint64, where); };
    const Arg both(elementwise(op, {wide(a), wide(b)}, where), where);
    // What the comparison says of a negative number and an unsigned one.
    const std::string& name = op->name;
    const bool holds =
        name == "neq" || (signed_first ? name == "lt" || name == "le" : name == "gt" || name == "ge");
    return holds ? logical_or(negative, both) : logical_and(Arg(logical_not(negative), where), both);
}

// Comparisons and logic of integers without a common dtype are exact all the same; null for other operands.
Expr exact_logic(const Op* op, const std::vector<Expr>& given, Where where) {
    if (given.size() != 2 || given[0].is_weak() || given[1].is_weak()) return {};
    if (!share_no_integer(given[0].dtype(), given[1].dtype())) return {};
    if (op->name.starts_with("logical_"))
        return elementwise(op, {cast(given[0], DType::boolean, where), cast(given[1], DType::boolean, where)},
                           where);
    return compared(op, given[0], given[1], where);
}

// The cast of one of the operands that cures an error.
std::string cure_of(const std::vector<Expr>& given, std::size_t operand, DType dtype) {
    constexpr const char* places[] = {"the first operand", "the second operand", "the third operand"};
    return cast_text(given[operand].node(), dtype, given.size() == 1 ? "the operand" : places[operand]);
}

// A literal as the dtype that it meets. Throws TypeError with the cast of the operand that has this dtype.
Expr fitted(const char* op, const std::vector<Expr>& given, std::size_t literal, DType dtype, Where where) {
    const Expr& number = given[literal];
    if (literal_fits(number, dtype)) return strengthen(number, dtype, where);
    std::string cure;
    for (const DType wider : {DType::int16, DType::int32, DType::int64, DType::float64})
        for (std::size_t i = 0; i < given.size() && cure.empty(); ++i)
            if (!given[i].is_weak() && given[i].dtype() == dtype && bytes_of(wider) > bytes_of(dtype) &&
                is_float(wider) == is_float(dtype) && literal_fits(number, wider))
                cure = "; write " + cure_of(given, i, wider);
    type_error(where, operation_text(op, given),
               "the literal " + digits_of(number) + " does not fit in " + std::string(name_of(dtype)) +
                   (cure.empty() ? "; cast the other operand to a wider dtype" : cure));
}

// An unsigned dtype has no numbers below 0: `byte - 128` would wrap for most bytes, without a word.
void reject_wrapping_literal(const std::vector<Expr>& given, Where where) {
    if (!given[0].is_weak() && !given[1].is_weak()) return;
    const bool literal_last = given[1].is_weak();
    const Expr &tensor = given[literal_last ? 0 : 1], &literal = given[literal_last ? 1 : 0];
    if (!is_unsigned_integer(tensor.dtype()) || is_float(literal.dtype())) return;
    const DType dtype = tensor.dtype();
    const Array converted = constant_value(fitted("sub", given, literal_last ? 1 : 0, dtype, where).node());
    // x - 0 and 255 - x never wrap.
    const Array harmless = Array(literal_last ? std::uint64_t{0} : ~std::uint64_t{0}).as(dtype);
    if (same(converted, harmless)) return;
    const std::string name(name_of(dtype)), number = std::to_string(converted.item<std::uint64_t>()),
                                            wider(name_of(dtype == DType::uint8    ? DType::int16
                                                          : dtype == DType::uint16 ? DType::int32
                                                                                   : DType::int64));
    const std::string word = word_for(tensor, "x"), wide = "cast(" + word + ", " + wider + ")",
                      narrow = "cast(" + number + ", " + name + ")";
    const std::string difference = literal_last ? wide + " - " + number : number + " - " + wide;
    const std::string wrapping = literal_last ? word + " - " + narrow : narrow + " - " + word;
    type_error(where, operation_text("sub", given),
               name + " has no negative numbers, so a difference with the literal " + number +
                   " may wrap; write " + difference + ", or " + wrapping + " where it is to wrap");
}

// Operands so far meet in `common`, and with the dtype of this one in none.
[[noreturn]] void refuse_mixture(const Op* op, const std::vector<Expr>& given, std::size_t first,
                                 DType common, std::size_t operand, Where where) {
    const DType own = given[operand].dtype();
    // The integer is cast: to float64 beside it, and to int64 what only uint64 holds.
    const bool integers = share_no_integer(common, own);
    const auto gives_way = [&](const Expr& x) {
        return !x.is_weak() && (integers ? x.dtype() == DType::uint64 : is_integer(x.dtype()));
    };
    std::size_t weaker = operand;
    for (std::size_t i = first; i < operand && !gives_way(given[weaker]); ++i)
        if (gives_way(given[i])) weaker = i;
    type_error(where, operation_text(op->name, given),
               std::string(name_of(common)) + " and " + std::string(name_of(own)) + " do not mix; write " +
                   cure_of(given, weaker, integers ? DType::int64 : DType::float64));
}

// A map of literals is a literal: computed now, in double precision.
Expr fold(const Row& row, const std::vector<Expr>& operands, Where where) {
    const std::size_t first = row.rule == Rule::selecting ? 1 : 0;
    bool real = row.rule == Rule::floating;
    std::optional<DType> dtype;
    for (std::size_t i = first; i < operands.size(); ++i) {
        const DType own = operands[i].dtype();
        real |= is_float(own);
        if (is_float(own)) continue;
        const std::optional<DType> both = dtype ? promote(*dtype, own) : own;
        if (!both)
            type_error(where, row.name,
                       "literals of uint64 and of a signed dtype have no common integer dtype; cast one, as "
                       "in std::uint64_t(1)");
        dtype = both;
    }
    const DType common = row.rule == Rule::random_bits ? DType::uint64 : real ? DType::float64 : *dtype;
    if (!admits(row.traits, row.rule, common))
        type_error(where, row.name, "does not compute on " + std::string(name_of(common)));
    std::vector<Array> values;
    for (std::size_t i = 0; i < operands.size(); ++i)
        values.push_back(constant_value(operands[i].node()).as(i < first ? DType::boolean : common));
    const Array value = row.reference(values, result_of(row.rule, common), {});
    return Expr(make_constant(value, where), true);
}

}  // namespace

Int wrapped(const Int& x, DType dtype) {
    const int bits = bits_of(dtype);
    if (dtype == DType::boolean) return min(max(x, -x), 1);
    if (bits >= 32 || !is_integer(dtype)) return x;
    const std::int64_t count = std::int64_t{1} << bits, low = is_signed_integer(dtype) ? -count / 2 : 0;
    return mod(x - low, count) + low;
}

Int remainder(const Int& a, const Int& b) {
    const IntRange range = b.range();
    const Int rest = mod(a, b);
    return range.low > 0 || range.high < 0 ? rest : rest * min(max(b, -b), 1);
}

WideFunction wide_function_of(const Op* op) { return known_rows().at(op).wide; }
bool is_logical(const Op* op) { return known_rows().at(op).rule == Rule::logical; }

const Op* register_row(Row row) {
    const std::string name = row.name;
    MapInfo map;
    map.text = row.text.floats;
    map.integer_text = row.text.integers;
    map.integer_title = row.traits.integer_title;
    map.opcode = row.traits.opcode;
    map.cost = row.cost;
    map.commutative = row.traits.commutative;
    map.maps_zero_to_zero = row.traits.zero_to_zero;
    map.non_decreasing = row.traits.non_decreasing;
    map.low = row.low;
    map.high = row.high;

    Op op;
    op.name = name;
    op.kind = OpKind::map;
    op.arity = row.arity;
    op.map = std::make_shared<const MapInfo>(std::move(map));
    op.infer = [row](const Nodes& inputs, const Attributes&, Where where) {
        return infer(row, inputs, where);
    };
    op.equalities = map_equalities;
    op.gradient = [row](const NodePtr& node, const NodePtr& g) { return gradient(row, node, g); };
    op.evaluate = [row](const Node& node, const std::vector<Array>& inputs) {
        const DType dtype = node.type.dtype;
        return row.reference(inputs, is_float(dtype) ? DType::float64 : dtype, static_dims(node.type.shape));
    };
    if (row.traits.length)
        op.as_length = [row](const Node& node, const std::vector<Int>& inputs) {
            return wrapped(row.traits.length(inputs), node.type.dtype);
        };
    const Op* registered = register_op(std::move(op));
    known_rows().emplace(registered, std::move(row));
    return registered;
}

}  // namespace table_row

using table_row::Row;
using table_row::Rule;

bool computes_on(const Op* op, DType dtype) {
    const Row& row = table_row::known_rows().at(op);
    return table_row::admits(row.traits, row.rule, dtype);
}

Expr elementwise(const Op* op, const std::vector<Expr>& given, Where where) {
    const Row& row = table_row::known_rows().at(op);
    bool literals = true;
    for (const Expr& x : given) {
        require_present(op->name.c_str(), {&x}, where);
        literals &= x.is_weak();
    }
    if (literals) return table_row::fold(row, given, where);
    const bool theano = options().promotion == Options::Promotion::theano;
    if (row.rule == Rule::logical)
        if (Expr exact = table_row::exact_logic(op, given, where); !exact.is_null()) return exact;
    if (op == sub_op() && !theano) table_row::reject_wrapping_literal(given, where);

    const std::size_t first = row.rule == Rule::selecting ? 1 : 0;
    std::optional<DType> common;
    for (std::size_t i = first; i < given.size(); ++i) {
        if (given[i].is_weak()) continue;
        const DType own = given[i].dtype();
        if (is_half(own))
            type_error(where, operation_text(op->name, given),
                       std::string(name_of(own)) + " is for storage only; compute on " +
                           table_row::cure_of(given, i, DType::float32));
        const std::optional<DType> both = common ? promote(*common, own, options().promotion) : own;
        if (!both && row.rule != Rule::random_bits)
            table_row::refuse_mixture(op, given, first, *common, i, where);
        common = both ? both : own;
    }
    for (std::size_t i = first; i < given.size(); ++i) {
        if (!given[i].is_weak()) continue;
        // Of literals alone, a real number is a float32.
        const DType own = given[i].dtype();
        // Theano takes an integer for the smallest signed dtype: a difference of bytes and 128 is int16.
        if (op == sub_op() && theano && common && is_unsigned_integer(*common) && !is_float(own))
            common = promote(*common, smallest_signed(constant_value(given[i].node())), options().promotion);
        else
            common = promote_literal(own, common ? *common : is_float(own) ? DType::float32 : own);
    }
    if (row.rule == Rule::floating && !is_float(*common)) common = DType::float32;

    std::vector<Expr> operands;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const DType wanted = i < first                       ? DType::boolean
                             : row.rule == Rule::random_bits ? DType::uint64
                                                             : *common;
        if (row.rule == Rule::random_bits && !given[i].is_weak() && given[i].dtype() != wanted)
            type_error(where, operation_text(op->name, given),
                       "the operands are uint64, not " + std::string(name_of(given[i].dtype())) + "; write " +
                           table_row::cure_of(given, i, DType::uint64));
        operands.push_back(
            i < first ? cast(given[i], wanted, where)
                      : cast(table_row::fitted(op->name.c_str(), given, i, wanted, where), wanted, where));
    }
    if (!table_row::admits(row.traits, row.rule, operands[first].dtype())) {
        const std::string dtype(name_of(operands[first].dtype()));
        std::size_t odd = first;
        while (odd + 1 < given.size() && (given[odd].is_weak() || given[odd].dtype() != *common)) ++odd;
        type_error(where, operation_text(op->name, given),
                   "it does not compute on " + dtype + "; write " +
                       table_row::cure_of(given, odd, row.traits.floats ? DType::float32 : DType::int32));
    }
    return apply(op, broadcast(operands, op->name.c_str(), where), {}, where);
}

}  // namespace bitale
