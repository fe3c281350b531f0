// Nest: the loop nest that computes one value: parallel axes, reduced axes, and a scalar body that reads
// operands through index expressions. It is an op's index map as data: code generation knows no op, only
// nests.
//
//     for every point of `parallel`:
//         result = combine over every point of `reduced` where all `guards` hold, of `body`
//
// With combine == none there are no reduced axes and the result is the body itself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/ir/node.h"
#include "graph/ir/operand.h"
#include "graph/types/index.h"

namespace bitale {

struct Loop {
    Int variable;  // exactly one symbol, in [0, extent), or 0 when the extent is 1
    Int extent;
};
// A loop with a fresh variable; an extent of exactly 1 gets the constant variable 0.
Loop make_loop(const std::string& name, const Int& extent);

// low <= value < high
struct Guard {
    Int value, low, high;
    auto operator<=>(const Guard&) const = default;
    bool operator==(const Guard&) const = default;
};

struct ScalarNode;
using Scalar = std::shared_ptr<const ScalarNode>;

struct ScalarNode {
    enum class Kind : std::uint8_t {
        constant,  // `number` (floats) or `integer`
        index,     // the value of `index`
        read,      // operand `operand` at `at`, or `otherwise` where a guard fails (never read there)
        apply,     // the elementwise op `op` on `arguments`
        cast,      // arguments[0] converted to dtype
        select,    // arguments[0] where all guards hold, else `otherwise`; both sides may be computed
    };
    Kind kind = Kind::constant;
    DType dtype = DType::float32;
    double number = 0;
    std::int64_t integer = 0;
    Int index;
    Operand operand;
    std::vector<Int> at;
    std::vector<Guard> guards;
    Scalar otherwise;  // null when there are no guards
    const Op* op = nullptr;
    std::vector<Scalar> arguments;
};

// Whether it is that function of its arguments.
bool applies(const ScalarNode& s, Opcode opcode);

Scalar scalar_constant(DType dtype, double number);
Scalar scalar_integer(DType dtype, std::int64_t integer);
Scalar scalar_index(DType dtype, Int index);
Scalar scalar_read(DType dtype, Operand operand, std::vector<Int> at, std::vector<Guard> guards = {},
                   Scalar otherwise = nullptr);
// Likewise, of an input of the node.
Scalar scalar_read(DType dtype, int input, std::vector<Int> at, std::vector<Guard> guards = {},
                   Scalar otherwise = nullptr);
Scalar scalar_apply(const Op* op, DType dtype, std::vector<Scalar> arguments);
Scalar scalar_apply(Opcode opcode, DType dtype, std::vector<Scalar> arguments);
Scalar scalar_cast(DType dtype, Scalar x);
Scalar scalar_select(std::vector<Guard> guards, Scalar value, Scalar otherwise);

// An index that is known only at run time: `symbol` = clamp(value, 0, extent - 1). A gathered row, the start
// of a minibatch. Clamped for memory safety only: an out-of-range value is reported by a check of its own.
struct Let {
    Int symbol;
    Scalar value;
    Int extent;
};

// order: the last loop over results numbers the points of `reduced` in ascending order of the body, NaN last,
// equal ones as they come; the result is the point's linear index, as of argmax. order_down: likewise in
// descending order, NaN first.
//
// affine: the body is a pair (two arguments of affine_pair()), and each point makes first * result + second
// of the result so far, which begins as 0: s[i] = a[i] * s[i - 1] + b[i].
enum class Combine : std::uint8_t {
    none,
    sum,
    prod,
    max,
    min,
    any,
    all,
    argmax,
    argmin,
    order,
    order_down,
    affine
};

constexpr bool is_order(Combine combine) {
    return combine == Combine::order || combine == Combine::order_down;
}

// The result is the number of a point, and none of the values.
constexpr bool gives_places(Combine combine) {
    return combine == Combine::argmax || combine == Combine::argmin || is_order(combine);
}

// What the body of an affine nest applies to its two arguments: no op of any graph.
const Op* affine_pair();

struct Nest {
    std::vector<Loop> parallel;  // one per axis of the result
    std::vector<Loop> reduced;
    std::vector<Guard> guards;  // points of `reduced` to visit
    std::vector<Let> lets;      // in order: a let may use the symbols of earlier ones
    Combine combine = Combine::none;
    DType accumulator =
        DType::float32;            // of sum, prod, max, min; argmax gives the linear index over `reduced`
    DType dtype = DType::float32;  // of the result
    Scalar body;
};

// The nest of any primitive node: op->nest, or the generic one of a map (operands of equal shape, scalars
// allowed).
Nest nest_of(const Node& node);

// Replaces loop variables (by symbol id) everywhere; lets get fresh symbols.
Nest substitute(const Nest& nest, const Substitution& with);
Scalar substitute(const Scalar& scalar, const Substitution& with);

std::string text_of(const Scalar& scalar);
std::string text_of(const Nest& nest);

}  // namespace bitale
