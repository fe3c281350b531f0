// Runs a Nest point by point, so that an op's index map can be compared with its oracle. Floats are float64
// and integers themselves, as in Op::evaluate; every read is checked against the operand's shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "graph/ir/nest.h"
#include "graph/walk/traverse.h"
#include "tests/support/catch.h"

namespace bitale::test {

using SymbolValues = std::map<std::uint64_t, std::int64_t>;

inline DType oracle_dtype(DType t) { return is_float(t) ? DType::float64 : t; }
inline Array widened(const Array& x) { return x.as(oracle_dtype(x.dtype())); }

class NestInterpreter {
  public:
    NestInterpreter(const Nest& nest, const std::vector<Array>& operands, SymbolValues symbols = {})
        : nest_(nest), operands_(operands), values_(std::move(symbols)) {}

    Array run() {
        Dims shape;
        for (const Loop& loop : nest_.parallel) shape.push_back(number(loop.extent));
        Array result(oracle_dtype(nest_.dtype), shape);
        std::int64_t to = 0;
        each(nest_.parallel, 0, [&] { write(result, to++, point()); });
        return result;
    }

  private:
    std::int64_t number(const Int& x) const { return evaluate(x, values_); }

    template <class F>
    void each(const std::vector<Loop>& loops, std::size_t depth, F&& f) {
        if (depth == loops.size()) return f();
        const std::int64_t extent = number(loops[depth].extent);
        const std::uint64_t symbol = loops[depth].variable.symbol_id();
        for (std::int64_t i = 0; i < extent; ++i) {
            if (symbol)
                values_[symbol] = i;
            else
                REQUIRE((extent == 1 && loops[depth].variable.is(0)));
            each(loops, depth + 1, f);
        }
    }

    bool hold(const std::vector<Guard>& guards) const {
        for (const Guard& g : guards) {
            const std::int64_t x = number(g.value);
            if (x < number(g.low) || x >= number(g.high)) return false;
        }
        return true;
    }

    Array body() {
        bind_lets();
        return scalar(*nest_.body);
    }

    void bind_lets() {
        for (const Let& let : nest_.lets) {
            const std::int64_t high = std::max<std::int64_t>(number(let.extent) - 1, 0);
            REQUIRE(let.symbol.symbol_id() != 0);
            values_[let.symbol.symbol_id()] =
                std::clamp<std::int64_t>(scalar(*let.value).to_vector<std::int64_t>()[0], 0, high);
        }
    }

    // One element of the result.
    Array point() {
        if (nest_.combine == Combine::none) {
            REQUIRE(nest_.reduced.empty());
            return body();
        }
        if (is_order(nest_.combine)) return ordered();
        const DType wide = oracle_dtype(nest_.accumulator);
        Array total = identity(wide), best(wide, {});
        std::int64_t index = 0, chosen = -1;
        each(nest_.reduced, 0, [&] {
            const std::int64_t at = index++;
            if (!hold(nest_.guards)) return;
            if (nest_.combine == Combine::affine) {
                bind_lets();
                const double a = scalar(*nest_.body->arguments[0]).at(0),
                             b = scalar(*nest_.body->arguments[1]).at(0);
                total = Array(a * total.at(0) + b);
                return;
            }
            const Array x = body().as(wide);
            switch (nest_.combine) {
                case Combine::sum:
                case Combine::prod:
                case Combine::any:
                case Combine::all: total = combined(total, x); return;
                default: break;
            }
            if (chosen >= 0 && !better(x, best)) return;
            best = x;
            chosen = at;
        });
        switch (nest_.combine) {
            case Combine::max:
                if (chosen < 0) return Array(-std::numeric_limits<double>::infinity());
                return best.as(oracle_dtype(nest_.dtype));
            case Combine::min: REQUIRE(chosen >= 0); return best.as(oracle_dtype(nest_.dtype));
            case Combine::argmax:
            case Combine::argmin: REQUIRE(chosen >= 0); return Array(chosen).as(nest_.dtype);
            default: return total.as(oracle_dtype(nest_.dtype));
        }
    }

    // The point that comes at the place that the last loop says.
    Array ordered() {
        const std::uint64_t id = nest_.parallel.back().variable.symbol_id();
        const std::int64_t place = id ? values_.at(id) : 0;
        std::vector<long double> keys;  // exact for all dtypes
        each(nest_.reduced, 0, [&] {
            const Array x = body();
            keys.push_back(x.dtype() == DType::uint64
                               ? static_cast<long double>(x.to_vector<std::uint64_t>()[0])
                               : static_cast<long double>(x.at(0)));
        });
        const bool down = nest_.combine == Combine::order_down;
        std::vector<std::int64_t> order(keys.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
            const long double a = keys[static_cast<std::size_t>(down ? j : i)],
                              b = keys[static_cast<std::size_t>(down ? i : j)];
            return !std::isnan(a) && (std::isnan(b) || a < b);
        });
        return Array(order[static_cast<std::size_t>(place)]).as(nest_.dtype);
    }

    Array identity(DType dtype) const {
        const bool one = nest_.combine == Combine::prod || nest_.combine == Combine::all;
        return Array(one ? 1 : 0).as(dtype);
    }

    Array combined(const Array& a, const Array& b) const {
        return dispatch(a.dtype(), [&](auto t) -> Array {
            using T = decltype(t);
            if constexpr (!Number<T>)
                throw std::logic_error("half types do not accumulate");
            else {
                const T x = a.view<T>()[0], y = b.view<T>()[0];
                if (nest_.combine == Combine::any) return Array(static_cast<T>(x || y));
                if (nest_.combine == Combine::all) return Array(static_cast<T>(x && y));
                const bool add = nest_.combine == Combine::sum;
                if constexpr (std::is_floating_point_v<T>)
                    return Array(add ? x + y : x * y);
                else {
                    const auto u = static_cast<std::uint64_t>(x), v = static_cast<std::uint64_t>(y);
                    return Array(static_cast<T>(add ? u + v : u * v));
                }
            }
        });
    }

    bool better(const Array& a, const Array& b) const {
        const bool greater = nest_.combine == Combine::max || nest_.combine == Combine::argmax;
        return dispatch(a.dtype(), [&](auto t) -> bool {
            using T = decltype(t);
            if constexpr (!Number<T>)
                throw std::logic_error("half types are not compared");
            else {
                const T x = a.view<T>()[0], y = b.view<T>()[0];
                if constexpr (std::is_floating_point_v<T>) {
                    if (std::isnan(y)) return false;
                    if (std::isnan(x)) return true;
                }
                return greater ? x > y : x < y;
            }
        });
    }

    Array scalar(const ScalarNode& s) {
        switch (s.kind) {
            case ScalarNode::Kind::constant:
                return (is_float(s.dtype) ? Array(s.number) : Array(s.integer)).as(oracle_dtype(s.dtype));
            case ScalarNode::Kind::index: return Array(number(s.index)).as(oracle_dtype(s.dtype));
            case ScalarNode::Kind::read: return hold(s.guards) ? read(s) : scalar(*s.otherwise);
            case ScalarNode::Kind::cast: return scalar(*s.arguments[0]).as(oracle_dtype(s.dtype));
            case ScalarNode::Kind::select: return scalar(hold(s.guards) ? *s.arguments[0] : *s.otherwise);
            case ScalarNode::Kind::apply: break;
        }
        Nodes leaves;
        std::vector<Array> arguments;
        for (const Scalar& a : s.arguments) {
            leaves.push_back(make_input({a->dtype, {}}, "", {}));
            arguments.push_back(scalar(*a));
        }
        NodePtr& node = applied_[&s];
        if (!node) node = make_node(s.op, std::move(leaves));
        REQUIRE(node->type.dtype == s.dtype);
        return s.op->evaluate(*node, arguments);
    }

    Array read(const ScalarNode& s) const {
        const Array& x = operands_.at(static_cast<std::size_t>(s.operand.number()));
        REQUIRE(x.dtype() == oracle_dtype(s.dtype));
        REQUIRE(s.at.size() == x.shape().size());
        std::int64_t linear = 0;
        for (std::size_t i = 0; i < s.at.size(); ++i) {
            const std::int64_t at = number(s.at[i]);
            if (at < 0 || at >= x.shape()[i])
                throw std::out_of_range("operand " + std::to_string(s.operand.number()) + " is read at " +
                                        std::to_string(at) + " of axis " + std::to_string(i) + ", shape " +
                                        text_of(x.shape()));
            linear = linear * x.shape()[i] + at;
        }
        Array r(x.dtype(), {});
        const auto size = static_cast<std::size_t>(bytes_of(x.dtype()));
        std::memcpy(r.mutable_data(),
                    static_cast<const char*>(x.data()) + static_cast<std::size_t>(linear) * size, size);
        return r;
    }

    static void write(Array& to, std::int64_t i, const Array& value) {
        REQUIRE(value.dtype() == to.dtype());
        const auto size = static_cast<std::size_t>(bytes_of(to.dtype()));
        std::memcpy(static_cast<char*>(to.mutable_data()) + static_cast<std::size_t>(i) * size, value.data(),
                    size);
    }

    const Nest& nest_;
    const std::vector<Array>& operands_;
    SymbolValues values_;
    std::map<const ScalarNode*, NodePtr> applied_;
};

inline Array interpret(const Nest& nest, const std::vector<Array>& operands,
                       const SymbolValues& symbols = {}) {
    return NestInterpreter(nest, operands, symbols).run();
}

// Values whose sums and products are exact, so that no order of adding them matters.
inline Array sample(DType dtype, const Dims& shape, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::vector<double> values;
    for (std::int64_t i = count_of(shape); i > 0; --i) {
        const int number = static_cast<int>(random() % 41) - 20;
        values.push_back(is_float(dtype) ? number / 8.0 : number);
    }
    const Array numbers(values, shape);
    // By way of int64, which wraps: unsigned dtypes get large values.
    return is_integer(dtype) ? numbers.as(DType::int64).as(dtype) : numbers.as(dtype);
}

// Element by element: the same dtype, shape and values, NaN like NaN.
inline void require_same(const Array& a, const Array& b) {
    REQUIRE(a.dtype() == b.dtype());
    REQUIRE(a.shape() == b.shape());
    for (std::int64_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a.at(i)) && std::isnan(b.at(i))) continue;
        if (a.at(i) == b.at(i)) continue;
        FAIL("element " << i << ": " << a.at(i) << " is not " << b.at(i) << "; " << a.text() << " and "
                        << b.text());
    }
}

// The oracle's value of one node, for operands given as they are.
inline Array oracle(const NodePtr& node, const std::vector<Array>& operands) {
    std::vector<Array> wide;
    for (const Array& x : operands) wide.push_back(widened(x));
    return node->op->evaluate(*node, wide);
}

// The node over operands of known lengths, and the values of the symbols that this fixes. Symbols that are no
// length of an operand are taken from `symbols`, which grows.
inline NodePtr with_known_lengths(const NodePtr& node, const std::vector<Array>& operands,
                                  SymbolValues& symbols) {
    Nodes leaves;
    for (std::size_t k = 0; k < operands.size(); ++k) {
        const Shape& shape = node->inputs[k]->type.shape;
        REQUIRE(shape.size() == operands[k].shape().size());
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (const std::uint64_t id = shape[i].symbol_id()) symbols[id] = operands[k].shape()[i];
        leaves.push_back(is_constant(node->inputs[k])
                             ? node->inputs[k]
                             : make_input({operands[k].dtype(), shape_of(operands[k].shape())}, "", {}));
    }
    Substitution lengths;
    for (const auto& [id, value] : symbols) lengths[id] = value;
    return with_inputs(node, leaves, lengths);
}

// The nest of the node gives what its oracle gives, with lengths known and with lengths as symbols; returns
// it.
inline Array require_nest_matches(const NodePtr& node, const std::vector<Array>& operands,
                                  SymbolValues symbols = {}) {
    const NodePtr known = with_known_lengths(node, operands, symbols);
    INFO(describe(*known) << ": " << text_of(nest_of(*known)));
    INFO("symbolic: " << text_of(nest_of(*node)));
    const Array expected = oracle(known, operands);
    std::vector<Array> wide;
    for (const Array& x : operands) wide.push_back(widened(x));
    REQUIRE(expected.dtype() == oracle_dtype(node->type.dtype));
    require_same(interpret(nest_of(*known), wide), expected);
    require_same(interpret(nest_of(*node), wide, symbols), expected);
    return expected;
}

}  // namespace bitale::test
