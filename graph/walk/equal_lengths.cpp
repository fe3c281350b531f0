#include "graph/walk/equal_lengths.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

using Pair = std::pair<Int, Int>;

// The symbols that are lengths of inputs, and those whose numbers come from any input.
struct Symbols {
    std::unordered_set<std::uint64_t> lengths, known;
};

Symbols symbols_of_inputs(const Graph& graph) {
    Symbols symbols;
    for (const NodePtr& input : graph.inputs) {
        for (const Int& length : input->type.shape)
            if (const std::uint64_t id = length.symbol_id()) symbols.lengths.insert(id);
        if (const Attribute* value = input->attributes.find("symbol"))
            symbols.known.insert(std::get<Int>(*value).symbol_id());
    }
    for (const std::uint64_t id : symbols.known) symbols.lengths.erase(id);
    symbols.known.insert(symbols.lengths.begin(), symbols.lengths.end());
    return symbols;
}

std::vector<Pair> equalities_of(const Graph& graph) {
    std::vector<Pair> all;
    std::set<Pair> seen;
    const auto add = [&](const Int& a, const Int& b) {
        if (!(a == b) && seen.emplace(a, b).second) all.emplace_back(a, b);
    };
    for (const NodePtr& node : topological(graph.roots()))
        if (node->op->equalities)
            for (const Equality& e : node->op->equalities(*node)) add(e.a, e.b);
    for (const SharedUpdate& update : graph.updates) {
        const Reading reading(update.target->turns);
        const Dims& dims = update.target->value.shape();
        for (std::size_t axis = 0; axis < dims.size(); ++axis)
            add(update.value->type.shape.at(axis), dims[axis]);
    }
    return all;
}

Int product(const Int::Term& term, std::int64_t factor) {
    Int r = factor;
    for (const AtomPtr& atom : term.atoms) r = r * Int::from(atom);
    return r;
}

bool lies_in(const IntRange& inner, const IntRange& outer) {
    return inner.low >= outer.low && inner.high <= outer.high;
}

// `difference` is 0 and `at` is the place of a term factor * symbol: the symbol's value, where it is an
// integer expression of at most one other symbol that cannot leave the symbol's range.
std::optional<Int> solution(const Int& difference, std::size_t at, const Symbols& symbols) {
    const std::vector<Int::Term>& terms = difference.terms();
    const std::int64_t factor = terms[at].factor;
    if (difference.constant_term() % factor != 0) return std::nullopt;
    Int value = -(difference.constant_term() / factor);
    for (std::size_t t = 0; t < terms.size(); ++t) {
        if (t == at) continue;
        if (terms[t].factor % factor != 0) return std::nullopt;
        value = value + product(terms[t], -(terms[t].factor / factor));
    }
    const AtomPtr& symbol = terms[at].atoms.front();
    const std::vector<AtomPtr> others = symbols_of(value);
    const bool fits = others.size() <= 1 && !depends_on(value, symbol->id) &&
                      std::all_of(others.begin(), others.end(),
                                  [&](const AtomPtr& other) { return symbols.known.contains(other->id); }) &&
                      lies_in(value.range(), symbol->range);
    return fits ? std::optional(value) : std::nullopt;
}

// The youngest length that the equation gives: earlier inputs name the lengths of later ones.
std::optional<std::pair<std::uint64_t, Int>> solved(const Pair& equation, const Symbols& symbols) {
    const Int difference = equation.first - equation.second;
    std::optional<std::pair<std::uint64_t, Int>> best;
    const std::vector<Int::Term>& terms = difference.terms();
    for (std::size_t t = 0; t < terms.size(); ++t) {
        if (terms[t].atoms.size() != 1) continue;
        const Atom& atom = *terms[t].atoms.front();
        if (atom.kind != Atom::Kind::symbol || !symbols.lengths.contains(atom.id)) continue;
        if (best && best->first > atom.id) continue;
        if (const std::optional<Int> value = solution(difference, t, symbols)) best.emplace(atom.id, *value);
    }
    return best;
}

Int resolved(Int x, const Substitution& with) {
    while (depends_on_any(x, with)) x = substitute(x, with);
    return x;
}

bool never_zero(const Int& x) { return x.range().low > 0 || x.range().high < 0; }

// Every length that an equation gives once those of `known` are known, and these; nothing where no lengths
// satisfy all equations.
std::optional<Substitution> solutions(const std::vector<Pair>& equations, const Symbols& symbols,
                                      const Substitution& known) {
    Substitution found = known;
    for (const Pair& e : equations)
        if (const auto one = solved({resolved(e.first, found), resolved(e.second, found)}, symbols))
            found.insert(*one);
    for (auto& [symbol, value] : found) value = resolved(value, found);
    for (const Pair& e : equations)
        if (never_zero(substitute(e.first, found) - substitute(e.second, found))) return std::nullopt;
    return found;
}

// The inputs have these lengths, and so has all that is computed from them.
void substitute_lengths(Graph& graph, const Substitution& lengths) {
    NodeMap with;
    Nodes inputs = graph.inputs;
    for (NodePtr& input : inputs) {
        Type type = input->type;
        for (Int& length : type.shape) length = substitute(length, lengths);
        if (type == input->type) continue;
        with[input.get()] = make_input(std::move(type), input->name, input->where);
        input = with.at(input.get());
    }
    graph.set_roots(replace(graph.roots(), with));
    graph.inputs = std::move(inputs);
}

}  // namespace

Substitution equal_lengths(const Graph& graph) {
    const Symbols symbols = symbols_of_inputs(graph);
    if (symbols.lengths.empty()) return {};
    return solutions(equalities_of(graph), symbols, {}).value_or(Substitution{});
}

void merge_equal_lengths(Graph& graph) {
    const Substitution lengths = equal_lengths(graph);
    if (lengths.empty()) return;
    try {
        substitute_lengths(graph, lengths);
    } catch (const ShapeError&) {
        return;  // the type rules refuse the lengths of every valid call: each call reports its own
    }
}

void set_lengths(Graph& graph, const Substitution& numbers) {
    const std::optional<Substitution> all =
        solutions(equalities_of(graph), symbols_of_inputs(graph), numbers);
    if (!all) throw ShapeError("the lengths contradict each other: no call can have all of them");
    substitute_lengths(graph, *all);
}

}  // namespace bitale
