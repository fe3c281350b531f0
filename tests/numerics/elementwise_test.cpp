// Every row of the elementwise table on every dtype that it computes on, for awkward shapes and special
// values, on the CPU device against the oracle. All cases of a dtype are one compiled function.
#include "ops/elementwise/elementwise.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;
using namespace bitale::test;

namespace {

const std::vector<DType> computing = {boolean, int8,   int16,  int32,   int64,  uint8,
                                      uint16,  uint32, uint64, float32, float64};

// Allowed error of float results, in units in the last place. Correctly rounded operations have none: their
// double result, rounded once more to float32, is the float32 result. The floor of a rounded quotient may be
// the next integer.
Tolerance tolerance_of(const std::string& op, DType dtype) {
    static const std::map<std::string, double> list = {
        {"exp", 2},   {"exp2", 2},    {"expm1", 3},    {"log", 2},      {"log2", 2},    {"log10", 2},
        {"log1p", 3}, {"sin", 3},     {"cos", 3},      {"tan", 4},      {"asin", 3},    {"acos", 3},
        {"atan", 3},  {"sinh", 4},    {"cosh", 4},     {"tanh", 3},     {"pow", 4},     {"erf", 4},
        {"erfc", 6},  {"sigmoid", 4}, {"softplus", 4}, {"log1mexp", 8}, {"logcosh", 6}, {"asinh", 3},
        {"acosh", 3}, {"atanh", 3},   {"atan2", 3},    {"cbrt", 2}};
    const auto at = list.find(op);
    // The larger operand and what the other one adds cancel around 0.
    if (op == "logaddexp") return {.ulps = 4, .absolute = dtype == float64 ? 8e-16 : 4e-7};
    if (op == "floordiv") return {.ulps = 1, .absolute = 1};
    return {.ulps = at == list.end() ? 0 : at->second};
}

struct ElementwiseOperands {
    Expr a, b, c;           // [m, n]
    Expr row, column, one;  // [n], [m, 1], scalar
    Expr turned, strided;   // [n, m] and [2 * m, n + 3], read as [m, n]
    Expr condition;
    std::vector<Expr> inputs;
};

ElementwiseOperands operands_of(DType dtype) {
    ElementwiseOperands o;
    const Expr a = input(dtype, 2, "a"), b = input(dtype, 2, "b"), c = input(dtype, 2, "c"),
               row = input(dtype, 1, "row"), column = input(dtype, Dims{-1, 1}, "column"),
               one = input(dtype, 0, "one"), turned = input(dtype, 2, "turned"),
               wide = input(dtype, 2, "wide"), condition = input(boolean, 2, "condition");
    o = {a,         b, c, row, column, one, transpose(turned), wide[{Slice{0, {}, 2}, Slice{-2, 0, -1}}],
         condition, {}};
    o.inputs = {a, b, c, row, column, one, turned, wide, condition};
    return o;
}

std::vector<Array> arguments_of(DType dtype, std::int64_t m, std::int64_t n, Random& random) {
    return {special_array(dtype, {m, n}, random, 0),  special_array(dtype, {m, n}, random, 1),
            special_array(dtype, {m, n}, random, 2),  special_array(dtype, {n}, random, 0),
            special_array(dtype, {m, 1}, random, 0),  special_array(dtype, {}, random, 0),
            special_array(dtype, {n, m}, random, 1),  special_array(dtype, {2 * m, n + 2}, random, 0),
            special_array(boolean, {m, n}, random, 1)};
}

std::vector<Case> cases_of(DType dtype, const ElementwiseOperands& x) {
    std::vector<Case> cases;
    auto turn = static_cast<std::size_t>(dtype);
    for (const Op* op : elementwise_ops()) {
        if (!computes_on(op, dtype)) continue;
        // Operands of equal shape always; of the other arrangements one, each time the next.
        const auto add = [&](const char* shape, const std::vector<Expr>& operands) {
            cases.push_back({op->name + " " + shape, elementwise(op, operands, Where::current()),
                             tolerance_of(op->name, dtype)});
        };
        if (op->name == "where") {
            add("plain", {x.condition, x.a, x.b});
            add("broadcast", {x.condition, x.row, x.one});
        } else if (op->arity == 1) {
            const std::vector<std::pair<const char*, Expr>> others = {
                {"transposed", x.turned}, {"strided", x.strided}, {"vector", x.row}, {"scalar", x.one}};
            add("plain", {x.a});
            const auto& [name, a] = others[turn++ % others.size()];
            add(name, {a});
        } else if (op->arity == 2) {
            const std::vector<std::pair<const char*, std::vector<Expr>>> others = {
                {"row", {x.a, x.row}},           {"column", {x.column, x.b}},   {"scalar", {x.one, x.b}},
                {"transposed", {x.turned, x.b}}, {"strided", {x.a, x.strided}}, {"outer", {x.row, x.column}}};
            add("plain", {x.a, x.b});
            const auto& [name, operands] = others[turn++ % others.size()];
            add(name, operands);
        } else {
            add("plain", {x.a, x.b, x.c});
            add("broadcast", {x.a, x.column, x.row});
            add("scalar", {x.a, x.one, x.turned});
        }
    }
    return cases;
}

}  // namespace

TEST_CASE("every elementwise op on every dtype agrees with the oracle") {
    for (const DType dtype : computing) {
        const ElementwiseOperands x = operands_of(dtype);
        OnTwoDevices both(x.inputs, cases_of(dtype, x), fmt::format("elementwise_{}", name_of(dtype)));
        Random random(static_cast<std::uint64_t>(dtype) + 1);
        for (const Dims& shape : {Dims{0, 3}, Dims{3, 0}, Dims{1, 1}, Dims{17, 1}, Dims{1, 17}, Dims{5, 13},
                                  Dims{37, 43}, Dims{2, 1029}, Dims{1029, 3}}) {
            INFO(name_of(dtype) << " " << text_of(shape));
            CHECK(both(arguments_of(dtype, shape[0], shape[1], random)) == "");
        }
    }
}

TEST_CASE("casts between every pair of dtypes agree with the oracle") {
    std::vector<Expr> inputs;
    std::vector<Case> cases;
    for (int from = 0; from < dtype_count; ++from) {
        const Expr x = input(static_cast<DType>(from), 1, "x");
        inputs.push_back(x);
        for (int to = 0; to < dtype_count; ++to)
            cases.push_back({fmt::format("{} to {}", name_of(x.dtype()), name_of(static_cast<DType>(to))),
                             cast(x, static_cast<DType>(to))});
    }
    OnTwoDevices both(inputs, cases, "casts");
    Random random(1);
    for (const std::int64_t n : {0, 1, 17, 100, 2500}) {
        std::vector<Array> arguments;
        for (const Expr& x : inputs) arguments.push_back(special_array(x.dtype(), {n}, random, 0));
        CHECK(both(arguments) == "");
    }
}
