// Patterns as algebra: the operators and functions of the language, over patterns. For rule files only.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "graph/rewrite/pattern.h"
#include "graph/rewrite/rule.h"

namespace bitale {

inline Pattern operator+(const Pattern& a, const Pattern& b) { return Pattern::apply("add", {a, b}); }
inline Pattern operator-(const Pattern& a, const Pattern& b) { return Pattern::apply("sub", {a, b}); }
inline Pattern operator*(const Pattern& a, const Pattern& b) { return Pattern::apply("mul", {a, b}); }
inline Pattern operator/(const Pattern& a, const Pattern& b) { return Pattern::apply("div", {a, b}); }
inline Pattern operator-(const Pattern& a) { return Pattern::apply("neg", {a}); }

namespace algebra {

// log(x), maximum(x, y), where(c, x, y) ...: every row of the elementwise table.
#define BITALE_UNARY(name, ...) \
    inline Pattern name(const Pattern& a) { return Pattern::apply(#name, {a}); }
#define BITALE_BINARY(name, ...) \
    inline Pattern name(const Pattern& a, const Pattern& b) { return Pattern::apply(#name, {a, b}); }
#define BITALE_TERNARY(name, ...)                                               \
    inline Pattern name(const Pattern& a, const Pattern& b, const Pattern& c) { \
        return Pattern::apply(#name, {a, b, c});                                \
    }
#include "bitale/elementwise_table.h"
// The other ops; their attributes are carried over.
BITALE_UNARY(cast)
BITALE_UNARY(reshape)
BITALE_UNARY(permute)
BITALE_UNARY(expand)
BITALE_UNARY(slice)
BITALE_UNARY(place_slice)
BITALE_UNARY(flip)
BITALE_UNARY(pad)
BITALE_UNARY(concat)
BITALE_UNARY(sum)
BITALE_UNARY(prod)
BITALE_UNARY(max)
BITALE_UNARY(min)
BITALE_UNARY(softmax)
BITALE_UNARY(log_softmax)
BITALE_UNARY(max_pool)
BITALE_UNARY(pool_winner)
BITALE_UNARY(disconnected_grad)
BITALE_BINARY(unpool)
BITALE_BINARY(scatter)
BITALE_BINARY(conv_grad_w)
BITALE_BINARY(conv_grad_x)
BITALE_BINARY(crossentropy_labels)
BITALE_BINARY(crossentropy_dense)
BITALE_BINARY(softmax_crossentropy_labels)
BITALE_BINARY(softmax_crossentropy_dense)
BITALE_BINARY(binary_crossentropy)
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY

inline Pattern any(const char* name) { return Pattern::any(name); }
inline Pattern constant(const char* name) { return Pattern::constant(name); }

// Guards.
inline Condition of_integers(const Pattern& x) {
    return [x](const Match& m) { return !is_float(m[x]->type.dtype); };
}
inline Condition of_floats(const Pattern& x) {
    return [x](const Match& m) { return is_float(m[x]->type.dtype); };
}

inline bool is_named(const NodePtr& node, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), node->op->name) != names.end();
}

// Whether it is a reduction over its "axes" that keeps the others, as those of ops/reduce/reduce.h are.
inline bool reduces(const NodePtr& node) {
    return is_named(node, {"sum", "prod", "max", "min", "supremum", "any", "all", "argmax", "argmin"});
}

}  // namespace algebra
}  // namespace bitale
