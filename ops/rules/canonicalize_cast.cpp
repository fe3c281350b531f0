// Casts: at most one in a row where the first loses nothing; integers are narrow before they are added.
#include <string>
#include <utility>
#include <vector>

#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

int mantissa_bits(DType t) {
    switch (t) {
        case DType::float16: return 11;
        case DType::bfloat16: return 8;
        case DType::float32: return 24;
        default: return 53;
    }
}

// Whether every value of `from` is a value of `to`, and comes back the same.
bool holds(DType to, DType from) {
    if (to == from || from == boolean) return true;
    if (to == boolean) return false;
    if (is_float(from)) {
        // bfloat16 has float32's exponents, float16 has not.
        return to == float64 || (to == float32 && bits_of(from) == 16);
    }
    const int digits = bits_of(from) - (is_signed_integer(from) ? 1 : 0);
    if (is_float(to)) return digits <= mantissa_bits(to);
    const int room = bits_of(to) - (is_signed_integer(to) ? 1 : 0);
    return digits <= room && (is_unsigned_integer(from) || is_signed_integer(to));
}

// cast(cast(x, middle), last) = cast(x, last)
bool middle_is_superfluous(DType first, DType middle, DType last) {
    const bool all_integers = is_integer(first) && is_integer(middle) && is_integer(last);
    // Integers wrap: only the low bits of the last one count.
    if (all_integers && bits_of(last) <= bits_of(middle)) return true;
    if (!holds(middle, first)) return false;
    // A float saturates where an integer wraps: the same value must be cast by the same rule.
    return is_float(first) == is_float(middle) || is_float(last) || last == boolean || holds(last, first);
}

// cast(a + b) of integers whose high bits the cast leaves out: they change no other ones, and vectors of
// narrow elements have more of them.
Rule narrow(const char* op, const std::vector<Pattern>& operands) {
    const Pattern wide = Pattern::apply(op, operands);
    return {std::string("cast-of-") + op, cast(wide), [=](const Match& m) -> NodePtr {
                const DType from = m[wide]->type.dtype, to = m.root()->type.dtype;
                if (!is_integer(from) || !is_integer(to) || bits_of(to) >= bits_of(from) ||
                    !m.may_look_through(m[wide]))
                    return nullptr;
                Nodes inputs;
                for (const NodePtr& input : m[wide]->inputs)
                    inputs.push_back(make_node(m.root()->op, {input}, m.root()->attributes, m.root()->where));
                return make_node(m[wide]->op, std::move(inputs), m[wide]->attributes, m[wide]->where);
            }};
}

}  // namespace

std::vector<Rule> cast_rules() {
    const Pattern x = any("x"), y = any("y"), inner = cast(x), outer = cast(inner);
    std::vector<Rule> rules = {
        {"cast-same", inner, x, Tag::exact,
         [=](const Match& m) { return m[x]->type.dtype == m.root()->type.dtype; }},
        {"cast-cast", outer, cast(x).like(outer), Tag::exact,
         [=](const Match& m) {
             return middle_is_superfluous(m[x]->type.dtype, m[inner]->type.dtype, m[outer]->type.dtype);
         }},
    };
    for (const char* op : {"add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"})
        rules.push_back(narrow(op, {x, y}));
    for (const char* op : {"neg", "invert"}) rules.push_back(narrow(op, {x}));
    return rules;
}

}  // namespace bitale
