#include "codegen/group/known_places.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "codegen/nest/arithmetic.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/walk.h"
#include "graph/rewrite/pattern.h"

namespace bitale {

namespace {

// As many nodes as people write for an index.
constexpr int most_nodes_of_index = 64;

std::optional<Nest> arithmetic_of(const NodePtr& node, int& left) {
    if (--left < 0 || !is_integer(node->type.dtype)) return {};
    if (is_constant(node)) {
        const Array& value = constant_value(node);
        if (value.rank() > 0) return sequence_of(value);
        Nest number;
        number.dtype = value.dtype();
        number.body = scalar_integer(value.dtype(), value.to_vector<std::int64_t>()[0]);
        return number;
    }
    if (!node->op->map && !node->op->nest) return {};
    const Nest nest = nest_of(*node);
    std::vector<std::optional<Nest>> inputs;
    for (const NodePtr& input : node->inputs) inputs.push_back(arithmetic_of(input, left));
    const auto is_number = [&](Operand of) {
        return inputs[static_cast<std::size_t>(of.input())].has_value();
    };
    if (!is_arithmetic(nest, is_number)) return {};
    return compose(renumber(nest, [](Operand of) { return Operand::of_value(of.input()); }),
                   [&](int input) { return &*inputs[static_cast<std::size_t>(input)]; });
}

// By how much x grows from one turn of a loop to the next; 0 where that is no number.
std::int64_t factor_of(const Int& x, const Loop& loop) {
    const std::uint64_t id = loop.variable.symbol_id();
    if (!id) return 0;
    const Int factor = substitute(x, {{id, loop.variable + 1}}) - x;
    return factor.is_constant() && !depends_on(x - factor * loop.variable, id) ? factor.constant() : 0;
}

bool is_zero(const ScalarNode& s) {
    return s.kind == ScalarNode::Kind::constant && s.number == 0 && s.integer == 0;
}

// The terms of sum(where(x == y, g, 0)) at which x = y. Of x = step * i + j these are
//
//     for t over the steps in the range of j: i = y / step - t, j = y % step + step * t
//
// and without such a j, i = y / step where the remainder is 0. Nothing where that takes longer than a visit
// of all terms.
class Solver {
  public:
    explicit Solver(const Nest& nest) : nest_(nest) {}

    std::optional<Nest> solved() {
        const ScalarNode& body = *nest_.body;
        if (nest_.combine != Combine::sum || !nest_.lets.empty() || !applies(body, Opcode::where) ||
            !applies(*body.arguments[0], Opcode::eq) || !is_zero(*body.arguments[2]))
            return {};
        const std::optional<Int> a = integer_of(body.arguments[0]->arguments[0]),
                                 b = integer_of(body.arguments[0]->arguments[1]);
        if (!a || !b) return {};
        std::optional<Nest> best;
        constexpr double visits = 2;  // for each that a visit of all would take
        double least = visits * typical_count(nest_.reduced) + rows_of(*a - *b);
        for (std::size_t i = 0; i < nest_.reduced.size(); ++i) {
            if (factor_of(*a - *b, nest_.reduced[i]) == 0) continue;
            Nest one = solved_for(i, *a - *b);
            const double cost = rows_of(*a - *b) * typical_count(one.reduced);
            if (cost <= least) best = std::move(one), least = cost;
        }
        return best;
    }

  private:
    Nest solved_for(std::size_t number, const Int& x) const {
        const Loop& outer = nest_.reduced[number];
        const std::int64_t factor = factor_of(x, outer), step = std::abs(factor), sign = factor / step;
        Int place = outer.variable * step - sign * x;  // = step * i + j
        std::size_t inner = nest_.reduced.size();
        for (std::size_t k = 0; k < nest_.reduced.size() && step > 1; ++k)
            if (factor_of(x, nest_.reduced[k]) == sign) inner = k;
        Nest r = nest_;
        r.body = nest_.body->arguments[1];
        Int of_outer = floordiv(place, step);
        Substitution with;
        if (inner < nest_.reduced.size()) {
            const Loop &j = nest_.reduced[inner], t = make_loop("t", ceildiv(j.extent, step));
            place = place + j.variable;
            const Int of_inner = place - step * floordiv(place, step) + step * t.variable;
            of_outer = floordiv(place, step) - t.variable;
            with.emplace(j.variable.symbol_id(), of_inner);
            r.guards.push_back({of_inner, 0, j.extent});
            r.reduced[inner] = t;
        } else if (step > 1) {
            r.guards.push_back({place - step * of_outer, 0, 1});
        }
        with.emplace(outer.variable.symbol_id(), of_outer);
        r.guards.push_back({of_outer, 0, outer.extent});
        r.reduced.erase(r.reduced.begin() + static_cast<std::ptrdiff_t>(number));
        return substitute(r, with);
    }

    double rows_of(const Int& x) const {
        double rows = 1;
        for (const Loop& l : nest_.parallel)
            if (l.variable.symbol_id() && depends_on(x, l.variable.symbol_id())) rows *= typical(l.extent);
        return rows;
    }

    const Nest& nest_;
};

}  // namespace

bool has_known_places(const Node& scatter) {
    int left = most_nodes_of_index;
    const std::optional<Nest> places = arithmetic_of(scatter.inputs[1], left);
    if (!places) return false;
    return Solver(
               compose(renumber(nest_of(scatter), [](Operand of) { return Operand::of_value(of.input()); }),
                       [&](int input) { return input == 1 ? &*places : nullptr; }))
        .solved()
        .has_value();
}

std::vector<bool> name_known_places(Values& values) {
    std::vector<bool> numbers(values.list.size(), false);
    const auto is_number = [&](Operand of) { return numbers[static_cast<std::size_t>(of.value())]; };
    const auto named = [&](const Nest& nest) {
        return compose(nest, [&](int operand) -> const Nest* {
            return is_number(Operand::of_value(operand))
                       ? &values.list[static_cast<std::size_t>(operand)].nest
                       : nullptr;
        });
    };
    for (std::size_t i = 0; i < values.list.size(); ++i) {
        Value& value = values.list[i];
        if (!value.nest.body) continue;
        if (value.nest.combine == Combine::sum) {
            if (const std::optional<Nest> terms = Solver(named(value.nest)).solved())
                value.nest = simplify(*terms);
            continue;
        }
        if (value.storage != Value::Storage::inlined) continue;
        numbers[i] = is_arithmetic(value.nest, is_number);
        if (value.nest.lets.empty() || value.nest.combine != Combine::none) continue;
        const Nest looked_up = without_known_lets(named(value.nest));
        if (looked_up.lets.size() < value.nest.lets.size()) value.nest = simplify(looked_up);
    }
    return numbers;
}

}  // namespace bitale
