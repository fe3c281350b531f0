// The rows of bitale/elementwise_table.h turned into ops and public functions.
#include "ops/elementwise/elementwise.h"

#include <cmath>

#include "bitale/ops.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/reference.h"
#include "ops/elementwise/rows.h"
#include "ops/random/philox.h"

namespace bitale {

namespace {

using table_row::as_length;
using table_row::known;
using table_row::of_integers_called;
using table_row::register_row;
using table_row::Rule;
using table_row::Text;
using table_row::Traits;

// The word of the gradient columns.
constexpr struct None {
    operator Expr() const { return {}; }
} none;

// f(a, b, c) for every element of the result; an operand with one element is repeated.
template <Rule rule, class F>
Array computed(const std::vector<Array>& x, DType result, const Dims& shape, F f) {
    Array r(result, shape);
    const Array &first = x[0], &second = x[x.size() > 1 ? 1 : 0], &third = x[x.size() > 2 ? 2 : 0];
    const auto step = [](const Array& operand) { return operand.size() == 1 ? 0 : 1; };
    const int step_a = step(first), step_b = step(second), step_c = step(third);
    const auto loop = [&](auto a_type, auto b_type, auto result_type) {
        using A = decltype(a_type);
        using B = decltype(b_type);
        using R = decltype(result_type);
        if constexpr (std::is_invocable_v<F, A, B, B>) {
            const A* a = static_cast<const A*>(first.data());
            const B* b = static_cast<const B*>(second.data());
            const B* c = static_cast<const B*>(third.data());
            R* out = static_cast<R*>(r.mutable_data());
            for (std::int64_t i = 0; i < r.size(); ++i)
                out[i] = static_cast<R>(f(a[i * step_a], b[i * step_b], c[i * step_c]));
        } else {
            BITALE_CHECK(false, "an elementwise op on a dtype that it does not compute on");
        }
    };
    if constexpr (rule == Rule::floating) {
        loop(double{}, double{}, double{});
    } else if constexpr (rule == Rule::random_bits) {
        loop(std::uint64_t{}, std::uint64_t{}, std::uint32_t{});
    } else {
        dispatch(rule == Rule::selecting ? second.dtype() : first.dtype(), [&](auto t) {
            using T = decltype(t);
            if constexpr (Number<T> && !std::is_same_v<T, float>) {
                if constexpr (rule == Rule::logical)
                    loop(t, t, bool{});
                else if constexpr (rule == Rule::selecting)
                    loop(bool{}, t, t);
                else
                    loop(t, t, t);
            } else {
                BITALE_CHECK(false, "the oracle computes in float64");
            }
        });
    }
    return r;
}

// The same function of long doubles.
template <Rule rule, class F>
table_row::WideFunction in_long_double(F) {
    using L = long double;
    if constexpr (rule == Rule::random_bits || !std::is_invocable_v<F, L, L, L>)
        return nullptr;
    else
        return [](const L* x) -> L { return static_cast<L>(F{}(x[0], x[1], x[2])); };
}

// All rows are registered together, in the order of the table.
struct Table {
#define BITALE_UNARY(name, ...) const Op* name;
#define BITALE_BINARY(name, ...) const Op* name;
#define BITALE_TERNARY(name, ...) const Op* name;
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
};

// `value` and `flows` are expressions over the names that the lambdas give them.
#define BITALE_ROW(name, arity, rule, text, value, flows, cost, traits, low, high)                         \
    register_row({#name, arity, Rule::rule, text,                                                          \
                  [](const std::vector<Array>& x, DType result, const Dims& shape) {                       \
                      return computed<Rule::rule>(                                                         \
                          x, result, shape,                                                                \
                          []([[maybe_unused]] auto a, [[maybe_unused]] auto b,                             \
                             [[maybe_unused]] auto c) -> std::decay_t<decltype(value)> { return value; }); \
                  },                                                                                       \
                  in_long_double<Rule::rule>(                                                              \
                      []([[maybe_unused]] auto a, [[maybe_unused]] auto b,                                 \
                         [[maybe_unused]] auto c) -> std::decay_t<decltype(value)> { return value; }),     \
                  []([[maybe_unused]] const Expr& g, const std::vector<Expr>& operands,                    \
                     [[maybe_unused]] const Expr& y) -> std::vector<Expr> {                                \
                      [[maybe_unused]] const Expr &a = operands[0], &b = operands[1], &c = operands[2];    \
                      return flows;                                                                        \
                  },                                                                                       \
                  cost, traits, low, high}),
#define BITALE_UNARY(name, rule, text, value, da, cost, traits, low, high) \
    BITALE_ROW(name, 1, rule, text, value, (std::vector<Expr>{da}), cost, traits, low, high)
#define BITALE_BINARY(name, rule, text, value, da, db, cost, traits, low, high) \
    BITALE_ROW(name, 2, rule, text, value, (std::vector<Expr>{da, db}), cost, traits, low, high)
#define BITALE_TERNARY(name, rule, text, value, da, db, dc, cost, traits, low, high) \
    BITALE_ROW(name, 3, rule, text, value, (std::vector<Expr>{da, db, dc}), cost, traits, low, high)

const Table& table() {
    // The words of the traits column; here, because graphs may be built before main.
    const Traits plain{};
    const Traits commutative{.commutative = true};
    const Traits zero_to_zero{.zero_to_zero = true};
    const Traits non_decreasing{.non_decreasing = true};
    const Traits floats_only{.integers = false, .booleans = false};
    const Traits integers_only{.floats = false};
    const Traits numbers_only{.booleans = false};
    static const Table t{
#include "bitale/elementwise_table.h"
    };
    return t;
}

#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
#undef BITALE_ROW

Where line_of(std::initializer_list<const Arg*> operands) {
    for (const Arg* x : operands)
        if (x->where.line) return x->where;
    return {};
}

Expr from_row(const Op* op, std::initializer_list<const Arg*> operands) {
    return expressing([&] {
        std::vector<Expr> list;
        list.reserve(operands.size());
        for (const Arg* x : operands) list.push_back(x->expr);
        return elementwise(op, list, line_of(operands));
    });
}

}  // namespace

#define BITALE_UNARY(name, ...)                    \
    const Op* name##_op() { return table().name; } \
    Expr name(const Arg& a) { return from_row(name##_op(), {&a}); }
#define BITALE_BINARY(name, ...)                   \
    const Op* name##_op() { return table().name; } \
    Expr name(const Arg& a, const Arg& b) { return from_row(name##_op(), {&a, &b}); }
#define BITALE_TERNARY(name, ...)                  \
    const Op* name##_op() { return table().name; } \
    Expr name(const Arg& a, const Arg& b, const Arg& c) { return from_row(name##_op(), {&a, &b, &c}); }
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY

const std::vector<const Op*>& elementwise_ops() {
    static const auto& list = *new std::vector<const Op*>{
#define BITALE_UNARY(name, ...) name##_op(),
#define BITALE_BINARY(name, ...) name##_op(),
#define BITALE_TERNARY(name, ...) name##_op(),
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
    };
    return list;
}

void register_elementwise_ops() {
    table();
    cast_op();
}

}  // namespace bitale
