#include "codegen/nest/arithmetic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/nest/integers.h"
#include "codegen/nest/spans.h"
#include "codegen/nest/walk.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

// Of quotients and other steps the algebra of lengths may keep more than a few terms.
constexpr std::size_t most_terms_of_number = 16;

// Lengths and variables of loops of which no end is known.
constexpr std::int64_t most_elements = std::int64_t{1} << 50;

void bound_lengths(const Int& x, Substitution& bounded) {
    for (const Int::Term& t : x.terms())
        for (const AtomPtr& a : t.atoms) {
            if (a->kind != Atom::Kind::symbol) {
                bound_lengths(a->a, bounded);
                bound_lengths(a->b, bounded);
            } else if (a->range.low >= 0 && a->range.high > most_elements) {
                bounded.emplace(a->id, Int::symbol("n", {0, most_elements}));
            }
        }
}

// Saturated ranges are those of numbers that int64 may not hold.
IntRange range_of_usual(const Int& x) {
    if (!is_saturated(x.range())) return x.range();
    Substitution bounded;
    bound_lengths(x, bounded);
    return substitute(x, bounded).range();
}

std::optional<Int> sum_or_product(const ScalarNode& s) {
    std::vector<Int> x;
    for (const Scalar& argument : s.arguments) {
        std::optional<Int> one = integer_of(argument);
        if (!one) return {};
        x.push_back(*std::move(one));
    }
    if (applies(s, Opcode::add)) return x[0] + x[1];
    if (applies(s, Opcode::sub)) return x[0] - x[1];
    if (applies(s, Opcode::neg)) return -x[0];
    // Products of two lengths are no strides.
    if (applies(s, Opcode::mul) && (x[0].is_constant() || x[1].is_constant())) return x[0] * x[1];
    return {};
}

bool lies_within(const Int& x, const Int& extent, const Nest& nest) {
    if (x.range().low >= 0 && (extent - 1 - x).range().low >= 0) return true;
    const std::optional<Span> span = Spans(nest).of(x);
    return span && at_least(span->low, 0) && at_least(extent - 1, span->high);
}

}  // namespace

std::optional<Int> integer_of(const Scalar& scalar) {
    const ScalarNode& s = *scalar;
    if (!is_integer(s.dtype)) return {};
    std::optional<Int> x;
    switch (s.kind) {
        case ScalarNode::Kind::constant: x = s.integer; break;
        case ScalarNode::Kind::index: x = s.index; break;
        case ScalarNode::Kind::cast: x = integer_of(s.arguments[0]); break;
        case ScalarNode::Kind::apply: x = sum_or_product(s); break;
        case ScalarNode::Kind::read:
        case ScalarNode::Kind::select: break;
    }
    if (!x || x->terms().size() > most_terms_of_number) return {};
    const IntRange range = range_of_usual(*x);
    return holds(s.dtype, range) && !is_saturated(range) ? x : std::nullopt;
}

std::optional<Nest> sequence_of(const Array& constant) {
    constexpr std::int64_t most_elements = 1 << 16, largest = std::int64_t{1} << 40;
    const Dims& lengths = constant.shape();
    const std::int64_t count = constant.size();
    if (!is_integer(constant.dtype()) || constant.dtype() == DType::uint64 || count < 2 ||
        count > most_elements)
        return {};
    const std::vector<std::int64_t> numbers = constant.to_vector<std::int64_t>();
    if (std::any_of(numbers.begin(), numbers.end(),
                    [](std::int64_t x) { return x > largest || x < -largest; }))
        return {};
    Nest nest;
    nest.dtype = constant.dtype();
    nest.parallel = loops_over(Shape(lengths.begin(), lengths.end()));
    Int index = numbers[0];
    std::vector<std::int64_t> steps;
    std::int64_t stride = count;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
        stride /= lengths[d];
        steps.push_back(lengths[d] > 1 ? numbers[static_cast<std::size_t>(stride)] - numbers[0] : 0);
        index = index + steps.back() * nest.parallel[d].variable;
    }
    for (std::int64_t k = 0; k < count; ++k) {
        std::int64_t expected = numbers[0], rest = k;
        for (std::size_t d = lengths.size(); d-- > 0; rest /= lengths[d])
            expected += steps[d] * (rest % lengths[d]);
        if (numbers[static_cast<std::size_t>(k)] != expected) return {};
    }
    nest.body = scalar_index(nest.dtype, index);
    return nest;
}

bool is_arithmetic(const Nest& nest, const std::function<bool(Operand)>& is_number) {
    return nest.combine == Combine::none && nest.lets.empty() &&
           !any_part(nest.body, [&](const ScalarNode& s) {
               const bool known =
                   s.kind == ScalarNode::Kind::constant || s.kind == ScalarNode::Kind::index ||
                   s.kind == ScalarNode::Kind::cast ||
                   (s.kind == ScalarNode::Kind::read && s.guards.empty() && is_number(s.operand)) ||
                   applies(s, Opcode::add) || applies(s, Opcode::sub) || applies(s, Opcode::mul) ||
                   applies(s, Opcode::neg);
               return !known || !is_integer(s.dtype);
           });
}

Nest without_known_lets(const Nest& nest) {
    Nest r = nest;
    for (std::size_t i = 0; i < r.lets.size();) {
        const std::optional<Int> x = integer_of(r.lets[i].value);
        const std::uint64_t id = r.lets[i].symbol.symbol_id();
        if (!x || !id || !lies_within(*x, r.lets[i].extent, r)) {
            ++i;
            continue;
        }
        r.lets.erase(r.lets.begin() + static_cast<std::ptrdiff_t>(i));
        r = substitute(r, {{id, *x}});
    }
    return r;
}

}  // namespace bitale
