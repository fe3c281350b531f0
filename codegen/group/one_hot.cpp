#include "codegen/group/one_hot.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/nest/compose.h"
#include "codegen/nest/integers.h"
#include "codegen/nest/walk.h"
#include "graph/base/options.h"

namespace bitale {

namespace {

// How many operations may lie between a sum and the comparison, and terms that are worth a lookup.
constexpr int farthest = 16;
constexpr double fewest_terms = 16;

// Whether the value may be zero where another is: find_conditions() looks through such bodies alone.
bool passes_zeros(const ScalarNode& body) {
    if (body.kind != ScalarNode::Kind::apply) return true;  // a cast, or what is moved
    const Opcode op = opcode_of(*body.op);
    return op == Opcode::neg || op == Opcode::where || op == Opcode::bitwise_and || op == Opcode::mul;
}

// Of each value, how many operations a comparison of integers is away; `farthest` if it is not near.
std::vector<int> distances(const Values& values) {
    std::vector<int> distance(values.list.size(), farthest);
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        const Value& value = values.list[v];
        if (!value.nest.body || value.nest.combine != Combine::none) continue;
        if (opcode_of(*value.node->op) == Opcode::eq && !is_float(value.node->inputs[0]->type.dtype)) {
            distance[v] = 0;
            continue;
        }
        if (!passes_zeros(*value.nest.body)) continue;
        for_each_read(value.nest, [&](const ScalarNode& s) {
            distance[v] = std::min(distance[v], distance[static_cast<std::size_t>(s.operand.value())] + 1);
        });
    }
    return distance;
}

// A number, or made of indices alone by views and casts.
bool is_simple(const Value& value) {
    if (value.nest.body && value.nest.body->kind == ScalarNode::Kind::constant) return true;
    const OpKind kind = value.node->op->kind;
    return value.nest.body && value.nest.combine == Combine::none && !is_float(value.node->type.dtype) &&
           (kind == OpKind::view || opcode_of(*value.node->op) == Opcode::other);
}

// A comparison without which a scalar is zero, and whether a product of floats makes it so: there zero times
// an infinity would be NaN.
struct IndexCondition {
    Scalar compared;
    bool multiplied = false;
};

void find_conditions(const Scalar& s, bool multiplied, std::vector<IndexCondition>& found) {
    switch (s->kind) {
        case ScalarNode::Kind::cast: return find_conditions(s->arguments[0], multiplied, found);
        case ScalarNode::Kind::select:
            if (is_zero(s->otherwise)) find_conditions(s->arguments[0], multiplied, found);
            return;
        case ScalarNode::Kind::apply: break;
        default: return;
    }
    switch (opcode_of(*s->op)) {
        case Opcode::eq: found.push_back({s, multiplied}); return;
        case Opcode::neg: return find_conditions(s->arguments[0], multiplied, found);
        case Opcode::where:
            if (!is_zero(s->arguments[2])) return;
            find_conditions(s->arguments[0], multiplied, found);
            return find_conditions(s->arguments[1], multiplied, found);
        case Opcode::bitwise_and:
            if (s->dtype != DType::boolean) return;
            for (const Scalar& a : s->arguments) find_conditions(a, multiplied, found);
            return;
        case Opcode::mul:
            if (options().strict_math && is_float(s->dtype)) return;
            for (const Scalar& a : s->arguments) find_conditions(a, multiplied || is_float(s->dtype), found);
            return;
        default: return;
    }
}

std::vector<IndexCondition> conditions_of(const Scalar& body) {
    std::vector<IndexCondition> found;
    find_conditions(body, false, found);
    return found;
}

// The index that a scalar is, where its dtype has all numbers that the index takes: others would come again.
std::optional<Int> index_of(const Scalar& s) {
    std::optional<Int> index;
    if (s->kind == ScalarNode::Kind::index) index = s->index;
    if (s->kind == ScalarNode::Kind::cast && !is_float(s->dtype)) index = index_of(s->arguments[0]);
    return index && holds(s->dtype, index->range()) ? index : std::nullopt;
}

// Of a comparison of a number with an index: the loops that the index counts, as one axis, and the value at
// which the number and the index agree.
struct Lookup {
    struct Part {
        std::size_t loop;
        std::int64_t factor;
    };
    std::vector<Part> parts;
    Int extent = 1;
    Scalar value;
    bool multiplied = false;
};

std::optional<Lookup> lookup_of(const Nest& nest, const Scalar& number, const Int& index) {
    Lookup r;
    Int rest = index;
    for (std::size_t i = 0; i < nest.reduced.size(); ++i) {
        const Loop& l = nest.reduced[i];
        const std::uint64_t id = l.variable.symbol_id();
        if (!id || !depends_on(index, id)) continue;
        const Int step = substitute(index, {{id, l.variable + 1}}) - index;
        if (!step.is_constant() || step.constant() < 1) return {};
        rest = rest - step * l.variable;
        if (depends_on(rest, id) || depends_on(number, id)) return {};
        r.parts.push_back({i, step.constant()});
    }
    std::sort(r.parts.begin(), r.parts.end(),
              [](const auto& a, const auto& b) { return a.factor < b.factor; });
    for (const Lookup::Part& part : r.parts) {
        if (!r.extent.is(part.factor)) return {};
        r.extent = r.extent * nest.reduced[part.loop].extent;
    }
    if (r.parts.empty() || typical(r.extent) < fewest_terms) return {};
    r.value = number->dtype == DType::int64 ? number : scalar_cast(DType::int64, number);
    if (!rest.is(0))
        r.value = scalar_apply(Opcode::sub, DType::int64, {r.value, scalar_index(DType::int64, rest)});
    return r;
}

std::optional<Lookup> find_lookup(const Nest& full) {
    for (const auto& [condition, multiplied] : conditions_of(full.body))
        for (const std::size_t side : {0, 1}) {
            const Scalar& number = condition->arguments[1 - side];
            const std::optional<Int> index = index_of(condition->arguments[side]);
            if (!index || is_float(number->dtype) || number->dtype == DType::uint64) continue;
            const bool looked_up =
                std::any_of(full.lets.begin(), full.lets.end(), [&, &compared = condition](const Let& let) {
                    return depends_on(compared, let.symbol.symbol_id());
                });
            if (looked_up) continue;
            if (std::optional<Lookup> found = lookup_of(full, number, *index)) {
                found->multiplied = multiplied;
                return found;
            }
        }
    return {};
}

// The number of a reduced loop that an index of a comparison is counted by in two parts, as rows and columns
// are that a reshape made one axis: the loop as two loops, where its length is a multiple of the inner one.
std::optional<Nest> with_loop_split(const Nest& nest, const Nest& full) {
    for (const IndexCondition& condition : conditions_of(full.body))
        for (const Scalar& side : condition.compared->arguments) {
            const std::optional<Int> index = index_of(side);
            if (!index) continue;
            for (const Int::Term& t : index->terms())
                for (const AtomPtr& a : t.atoms)
                    for (std::size_t i = 0; i < nest.reduced.size(); ++i) {
                        const Loop& l = nest.reduced[i];
                        if (a->kind != Atom::Kind::floordiv || !l.variable.symbol_id() ||
                            !(a->a == l.variable) || !a->b.is_constant() || !mod(l.extent, a->b).is(0))
                            continue;
                        const Loop outer = make_loop("k", floordiv(l.extent, a->b)),
                                   inner = make_loop("k", a->b);
                        Nest r = substitute(
                            nest, {{l.variable.symbol_id(), outer.variable * a->b + inner.variable}});
                        r.reduced[i] = inner;
                        r.reduced.insert(r.reduced.begin() + static_cast<std::ptrdiff_t>(i), outer);
                        return r;
                    }
        }
    return {};
}

bool has_guards_over(const Nest& nest, const Lookup& lookup) {
    return std::any_of(nest.guards.begin(), nest.guards.end(), [&](const Guard& g) {
        return std::any_of(lookup.parts.begin(), lookup.parts.end(), [&](const Lookup::Part& part) {
            return depends_on(g, nest.reduced[part.loop].variable.symbol_id());
        });
    });
}

// The nest where there is a place to look at: an axis of unknown length may have none.
Nest if_any(const Nest& nest, const Int& at, const Int& extent) {
    const Guard any{extent, 1, extent + 1};
    const auto zero = [](DType dtype) { return scalar_cast(dtype, scalar_integer(DType::int64, 0)); };
    Nest r = rebuild(nest, [&](std::shared_ptr<ScalarNode> s) -> Scalar {
        if (s->kind != ScalarNode::Kind::read || !depends_on(*s, at.symbol_id())) return s;
        s->guards.push_back(any);
        if (!s->otherwise) s->otherwise = zero(s->dtype);
        return s;
    });
    r.body = scalar_select({any}, r.body, zero(r.body->dtype));
    return r;
}

Nest with_lookup(const Nest& nest, const Lookup& lookup) {
    const Int at = Int::symbol("found", {0, lookup.extent.range().high - 1});
    Substitution where;
    for (const Lookup::Part& part : lookup.parts) {
        const Loop& l = nest.reduced[part.loop];
        const Int number = floordiv(at, part.factor);
        const bool outermost = part.loop == lookup.parts.back().loop;
        where[l.variable.symbol_id()] = outermost ? number : mod(number, l.extent);
    }
    Nest r = nest;
    for (std::size_t i = lookup.parts.size(); i-- > 0;) r.reduced[lookup.parts[i].loop].extent = 1;
    std::erase_if(r.reduced, [&](const Loop& l) { return l.variable.symbol_id() && l.extent.is(1); });
    r.body = substitute(r.body, where);
    for (Let& let : r.lets) let.value = substitute(let.value, where);
    // A number that no term agrees with leaves zero, whatever stands in the place that is read instead.
    if (lookup.multiplied)
        r.body = scalar_apply(
            Opcode::where, r.body->dtype,
            {scalar_apply(Opcode::eq, DType::boolean, {scalar_index(DType::int64, at), lookup.value}), r.body,
             scalar_cast(r.body->dtype, scalar_integer(DType::int64, 0))});
    if (lookup.extent.range().low < 1) r = if_any(r, at, lookup.extent);
    r.lets.insert(r.lets.begin(), {at, lookup.value, lookup.extent});
    if (r.reduced.empty()) {
        r.combine = Combine::none;
        if (r.body->dtype != r.dtype) r.body = scalar_cast(r.dtype, r.body);
    }
    return r;
}

}  // namespace

void look_up_one_hot(Values& values) {
    if (!options().enabled("one-hot-sums")) return;
    const std::vector<int> distance = distances(values);
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        Value& value = values.list[v];
        Nest nest = value.nest;
        if (!nest.body || nest.combine != Combine::sum || nest.reduced.empty()) continue;
        bool near = false;
        for_each_read(nest, [&](const ScalarNode& s) {
            near = near || distance[static_cast<std::size_t>(s.operand.value())] < farthest;
        });
        if (!near) continue;
        const InlineValue near_values = [&](int operand) -> const Nest* {
            const auto k = static_cast<std::size_t>(operand);
            return distance[k] < farthest || is_simple(values.list[k]) ? &values.list[k].nest : nullptr;
        };
        Nest full = compose(nest, near_values);
        std::optional<Lookup> lookup = find_lookup(full);
        if (!lookup)
            if (std::optional<Nest> split = with_loop_split(nest, full)) {
                nest = *std::move(split);
                full = compose(nest, near_values);
                lookup = find_lookup(full);
            }
        if (!lookup || has_guards_over(nest, *lookup)) continue;
        value.nest = with_lookup(nest, *lookup);
        value.why_generated = "because all terms but one are zeros: it is looked up";
        for_each_read(lookup->value, [&](const ScalarNode& s) {
            std::vector<int>& users = values.list[static_cast<std::size_t>(s.operand.value())].users;
            const auto at = std::lower_bound(users.begin(), users.end(), static_cast<int>(v));
            if (at == users.end() || *at != static_cast<int>(v)) users.insert(at, static_cast<int>(v));
        });
    }
}

}  // namespace bitale
