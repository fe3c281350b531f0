// Lengths as they usually are, for what costs are compared by.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "codegen/group/values.h"

namespace bitale {

namespace {

constexpr double typical_unknown = 128, small_bound = 1 << 16;
// Formulas within formulas share parts. Most are flat.
using Known = std::unordered_map<const Atom*, double>;
constexpr int flat = 2;

// With each unknown symbol at its usual value.
double usual(const Int& x, Known& known, int depth = 0);

double usual_of(const Atom& atom, Known& known, int depth) {
    const auto inner = [&](const Int& part) { return usual(part, known, depth + 1); };
    switch (atom.kind) {
        case Atom::Kind::symbol: {
            const auto low = static_cast<double>(atom.range.low), high = static_cast<double>(atom.range.high);
            return high <= small_bound ? high : std::max(low, typical_unknown);
        }
        case Atom::Kind::floordiv: {
            const double by = inner(atom.b);
            return by == 0 ? 0 : std::floor(inner(atom.a) / by);
        }
        case Atom::Kind::min: return std::min(inner(atom.a), inner(atom.b));
        case Atom::Kind::max: return std::max(inner(atom.a), inner(atom.b));
    }
    return typical_unknown;
}

double usual(const Int& x, Known& known, int depth) {
    double sum = 0;
    for (const Int::Term& t : x.terms()) {
        double term = static_cast<double>(t.factor);
        for (const AtomPtr& atom : t.atoms) {
            const bool is_deep = depth >= flat && atom->kind != Atom::Kind::symbol;
            const auto before = is_deep ? known.find(atom.get()) : known.end();
            const double number = before != known.end() ? before->second : usual_of(*atom, known, depth);
            if (is_deep) known.emplace(atom.get(), number);
            term *= number;
        }
        sum += term;
    }
    return sum;
}

}  // namespace

double typical(const Int& x) {
    const IntRange r = x.range();
    if (x.is_constant()) return static_cast<double>(x.constant());
    if (r.high <= small_bound) return std::max<double>(1, static_cast<double>(r.high));
    Known known;
    const double at = usual(x, known);
    return std::isfinite(at) && at >= 1 ? at : typical_unknown;
}

double count_of(const Value& value) {
    double n = 1;
    for (const Int& length : value.shape) n *= typical(length);
    return n;
}

double typical_count(const std::vector<Loop>& loops) {
    double n = 1;
    for (const Loop& l : loops) n *= typical(l.extent);
    return n;
}

bool is_of_gradient(const Node& node) {
    const auto of_line = std::find_if(node.origins.begin(), node.origins.end(),
                                      [&](const Origin& o) { return o.where.line == node.where.line; });
    if (of_line != node.origins.end()) return of_line->of_gradient;
    return node.origins.empty() ? node.of_gradient : node.origins[0].of_gradient;
}

bool is_of_data(const Values& values, int value) {
    if (is_of_gradient(*values.list[static_cast<std::size_t>(value)].node)) return false;
    const Nest nest = fully_composed_nest(values, value);
    return nest.lets.empty() && nest.guards.empty();
}

double typical_elements(const Node& node) { return typical(count_of(node.type.shape)); }

}  // namespace bitale
