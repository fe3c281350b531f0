// Elementwise functions, casts, views, concatenations, random numbers, and optimizers by themselves.
#include <cstring>

#include "tests/corpus/corpus.h"

using namespace bitale;          // NOLINT
using namespace bitale::corpus;  // NOLINT

namespace {

struct Row {
    const char *name, *rule, *traits;
    double low, high;
    Expr (*make)(const Expr& a, const Expr& b, const Expr& c);
    bool is(const char* trait) const { return std::strstr(traits, trait) != nullptr; }
};

const Row table[] = {
#define BITALE_UNARY(name, rule, text, reference, gradient, cost, traits, low, high) \
    {#name, #rule, #traits,                                                          \
     low,   high,  [](const Expr& a, const Expr&, const Expr&) { return bitale::name(a); }},
#define BITALE_BINARY(name, rule, text, reference, ga, gb, cost, traits, low, high) \
    {#name, #rule, #traits,                                                         \
     low,   high,  [](const Expr& a, const Expr& b, const Expr&) { return bitale::name(a, b); }},
#define BITALE_TERNARY(name, rule, text, reference, ga, gb, gc, cost, traits, low, high) \
    {#name, #rule, #traits,                                                              \
     low,   high,  [](const Expr& a, const Expr& b, const Expr& c) { return bitale::name(a, b, c); }},
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
};

bool computes_on(const Row& row, DType dtype) {
    if (std::strcmp(row.rule, "random_bits") == 0) return dtype == uint64;
    if (dtype == boolean) return !row.is("numbers_only") && !row.is("floats_only");
    const bool floats = dtype == float32 || dtype == float64;
    return floats ? !row.is("integers_only") : !row.is("floats_only");
}

// Every function of the dtype on arguments from its domain.
void every_function(Builder& b, DType dtype) {
    const bool floats = dtype == float32 || dtype == float64;
    const std::vector<Length> shape = {unknown(b.size(300, 7)), 37};
    const Expr condition = b.input(boolean, shape, "condition", {0, 1});
    std::vector<Expr> x;
    for (const char* name : {"a", "b", "c"})
        x.push_back(
            b.input(dtype, shape, name, floats ? Range{0, 1} : Range{0, dtype == boolean ? 1.0 : 9.0}));
    for (const Row& row : table) {
        if (!computes_on(row, dtype)) continue;
        const auto argument = [&](std::size_t k) {
            return floats ? x[k] * (row.high - row.low) + row.low : x[k];
        };
        const Expr first = std::strcmp(row.name, "where") == 0 ? condition : argument(0);
        Expr y = row.make(first, argument(1), argument(2));
        // Integers leave the domains of some functions, and machines differ in the sign of a NaN.
        if (!floats && y.dtype() == float32) y = where(logical_or(isnan(y), isinf(y)), 0, y);
        b.output(y, row.name);
    }
}

// An optimizer by itself: gradients are as long as the parameters.
template <class F>
void optimizer(Builder& b, F&& updates_of) {
    std::vector<Shared> parameters;
    Expr loss;
    for (const std::int64_t length : {b.size(300000, 700), b.size(1000, 100), b.size(10, 10)}) {
        const std::string n = std::to_string(parameters.size());
        parameters.push_back(b.variable({length}, "p" + n));
        const Expr term = sum(parameters.back() * b.floats({length}, "g" + n));
        loss = loss.is_null() ? term : loss + term;
    }
    b.update(updates_of(loss, parameters));
}

}  // namespace

GRAPH(functions_float32) { every_function(b, float32); }
GRAPH(functions_float64) { every_function(b, float64); }
GRAPH(functions_int32) { every_function(b, int32); }
GRAPH(functions_uint64) { every_function(b, uint64); }
GRAPH(functions_boolean) { every_function(b, boolean); }

GRAPH(gradients_of_functions) {
    const Expr x = b.floats({unknown(b.size(10000, 50))}, "x", {0.2, 0.8}),
               y = b.floats({1, 50}, "y", {1, 2});
    const Expr one[] = {exp(x),      log(x),        sqrt(x),  sin(x),      tanh(x),  sigmoid(x),
                        softplus(x), erf(x),        abs(x),   relu(x),     log1p(x), asin(x),
                        atan(x),     reciprocal(x), expm1(x), log1mexp(-x)};
    Expr cost = sum(pow(x, 2.5));
    for (const Expr& f : one) cost = cost + sum(f);
    b.output(grad(cost, x), "gradient");
    const Expr z = b.floats({30, 50}, "z", {0.2, 0.8});
    const std::vector<Expr> two = grad(sum(maximum(z, y - 1) * logaddexp(z, y) / y), {z, y});
    b.output(two[0], "gradient of z");
    b.output(two[1], "gradient of y");
}

GRAPH(casts) {
    for (const DType from : {boolean, int8, int64, uint8, float16, bfloat16, float32, float64}) {
        const Expr x =
            b.input(from, {unknown(50)}, "x" + std::to_string(static_cast<int>(from)),
                    {from == boolean || from == uint8 ? 0.0 : -100.0, from == boolean ? 1.0 : 100.0});
        for (const DType to : {boolean, int8, int64, uint8, float16, bfloat16, float32, float64})
            if (to != from)
                b.output(cast(x, to), std::to_string(static_cast<int>(from)) + " to " +
                                          std::to_string(static_cast<int>(to)));
    }
}

GRAPH(broadcasts) {
    const Expr m = b.floats({unknown(b.size(1000, 12)), 30}, "m"), row = b.floats({30}, "row"),
               column = b.floats({unknown(b.size(1000, 12)), 1}, "column"), s = b.floats({}, "s");
    b.output((m * row + column) * s, "sum");
    b.output(where(gt(m, row), column, s), "choice");
    b.output(clip(m, -0.5, 0.5) % 0.3, "rest");
    const std::vector<Expr> g = grad(sum(sqr(m * row + column)), {row, column});
    b.output(g[0], "gradient of the row");
    b.output(g[1], "gradient of the column");
}

GRAPH(views) {
    const Expr x = b.floats({b.size(60, 6), 20, 34}, "x");
    b.output(transpose(x), "transpose");
    b.output(transpose(x, {1, 0, 2}) * 2, "transpose of rows");
    b.output(reshape(x, {-1, 17}) + 1, "reshape");
    b.output(flip(x, 2), "flip");
    b.output(x[{colon, Slice{.step = -2}, Slice{1, 33, 3}}], "steps");
    b.output(pad(x, {{0, 1}, {2, 0}, {1, 1}}, 1), "pad");
    b.output(x[{-1, colon, 3}], "column");
    b.output(squeeze(x[{colon, Slice{4, 5}}], 1), "squeeze");
    b.output(exp(transpose(x, {2, 1, 0})) + exp(transpose(flip(x, 0), {2, 1, 0})), "two of them");
}

GRAPH(concatenate_rows) {
    const Expr x = b.floats({b.size(2000, 20), 64}, "x"), y = b.floats({b.size(1000, 10), 64}, "y");
    b.output(concatenate({x, y, x}, 0), "rows");
}

GRAPH(concatenate_columns) {
    const Expr x = b.floats({unknown(b.size(2000, 20)), 64}, "x"),
               y = b.floats({unknown(b.size(2000, 20)), 30}, "y");
    const Expr z = concatenate({x, exp(y), x * 2}, 1);
    b.output(z, "columns");
    const std::vector<Expr> g = grad(sum(sqr(z)), {x, y});
    b.output(g[0], "gradient of x");
    b.output(g[1], "gradient of y");
}

GRAPH(concatenate_unknown) {
    std::vector<Expr> parts;
    for (int k = 0; k < 12; ++k) parts.push_back(b.floats({unknown(3 + k), 8}, "x" + std::to_string(k)));
    b.output(concatenate(parts), "rows");
}

GRAPH(random_numbers) {
    RandomStream random(7);
    b.output(random.uniform({b.size(1000000, 1000)}), "uniform");
    b.output(random.normal({b.size(1000000, 1001)}, 1, 3), "normal");
    b.output(sum(random.uniform({b.size(1000, 10), 30}, -1, 2), {1}), "sums");
}

GRAPH(dropout_gradient) {
    RandomStream random(8);
    const Expr x = b.floats({unknown(b.size(1000, 12)), 200}, "x");
    const Expr y = dropout(tanh(x), 0.3, random);
    b.output(y, "y");
    b.output(grad(sum(sqr(y)), x), "gradient");
}

GRAPH(optimizer_sgd) {
    optimizer(b, [](const Expr& loss, const std::vector<Shared>& p) { return sgd(loss, p, 0.1); });
}
GRAPH(optimizer_momentum) {
    optimizer(b, [](const Expr& loss, const std::vector<Shared>& p) {
        return momentum(loss, p, 0.1, {.momentum = 0.8, .weight_decay = 0.01});
    });
}
GRAPH(optimizer_adam) {
    optimizer(b, [](const Expr& loss, const std::vector<Shared>& p) { return adam(loss, p); });
}
GRAPH(optimizer_adadelta) {
    optimizer(b, [](const Expr& loss, const std::vector<Shared>& p) { return adadelta(loss, p); });
}

GRAPH(swap_variables) {
    const Shared a = b.variable({100}, "a"), c = b.variable({100}, "c"),
                 count = b.variable({}, "count", {0, 0}, int64);
    b.update({{a, Expr(c)}, {c, Expr(a)}, {count, count + 1}});
    b.output(sum(a * c), "product");
}
