#include "bitale/array_ops.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "bitale/ops.h"
#include "graph/base/border.h"
#include "graph/types/convert.h"
#include "ops/oracle/typed.h"

namespace bitale {

namespace {

const ApiBorder computing("for arithmetic of arrays");

Array value_of(const Expr& x) { return evaluate({x.node()}, {})[0]; }

Expr combined(ArrayOp op, const Arg& a, const Arg& b) {
    switch (op) {
        case ArrayOp::add: return a + b;
        case ArrayOp::sub: return a - b;
        case ArrayOp::mul: return a * b;
        case ArrayOp::div: return a / b;
        case ArrayOp::mod: return a % b;
        case ArrayOp::lt: return a < b;
        case ArrayOp::le: return a <= b;
        case ArrayOp::gt: return a > b;
        case ArrayOp::ge: return a >= b;
        case ArrayOp::eq: return eq(a, b);
        case ArrayOp::neq: break;
    }
    return neq(a, b);
}

}  // namespace

Array combine(ArrayOp op, const Arg& a, const Arg& b) {
    return computing([&] { return value_of(combined(op, a, b)); });
}

Array negative(const Array& a, Where where) {
    return computing([&] { return value_of(-Arg(a, where)); });
}

double sum_of_elements(const Array& a) {
    return dispatch(a.dtype(), [&](auto t) {
        using T = decltype(t);
        __extension__ using Wide = __int128;  // holds the sum of as many 64-bit integers as memory does
        std::conditional_t<std::is_integral_v<T>, Wide, double> sum = 0;
        const T* x = static_cast<const T*>(a.data());
        for (std::int64_t i = 0; i < a.size(); ++i)
            if constexpr (std::is_integral_v<T>)
                sum += x[i];
            else
                sum += convert<double>(x[i]);
        return static_cast<double>(sum);
    });
}

double mean_of_elements(const Array& a) { return sum_of_elements(a) / static_cast<double>(a.size()); }

Array concatenate(const std::vector<Array>& parts, int axis, Where where) {
    return computing([&] {
        std::vector<Expr> constants;
        for (const Array& part : parts) constants.emplace_back(part, where);
        return value_of(concatenate(constants, axis, where));
    });
}

Array concatenate(std::initializer_list<Array> parts, int axis, Where where) {
    return computing([&] { return concatenate(std::vector<Array>(parts), axis, where); });
}

Array stack(std::initializer_list<Array> parts, Where where) {
    return computing([&] { return stack(std::vector<Array>(parts), where); });
}

Array stack(const std::vector<Array>& parts, Where where) {
    return computing([&] {
        if (parts.empty()) throw ShapeError(where, "stack of no arrays");
        std::vector<Expr> rows;
        for (const Array& part : parts) {
            if (part.shape() != parts[0].shape())
                throw ShapeError(where, "stack wants arrays of one shape, and has " +
                                            text_of(parts[0].shape()) + " and " + text_of(part.shape()));
            rows.push_back(expand_dims(Expr(part, where), 0, where));
        }
        return value_of(concatenate(rows, 0, where));
    });
}

}  // namespace bitale
