#include "codegen/nest/phases.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/nest/access.h"
#include "codegen/nest/compose.h"

namespace bitale {

namespace {

constexpr std::size_t most_pieces = 64;
constexpr std::int64_t most_divisor = 64;  // of a guard that shows none

std::int64_t remainder(std::int64_t x, std::int64_t divisor) {
    const std::int64_t r = x % divisor;
    return r < 0 ? r + divisor : r;
}

// How a guard asks for a multiple: of result * of_result + term * of_term + rest.
struct Axis {
    std::int64_t divisor = 1, of_result = 0, of_term = 0, rest = 0;
    std::optional<std::size_t> result, term;  // by position among the parallel and the reduced loops

    // Results, and terms, that are so far apart ask the same.
    std::int64_t phases() const { return divisor / std::gcd(divisor, of_result); }
    std::int64_t step() const { return divisor / std::gcd(divisor, of_term); }
    // The first of so many terms that a result of the phase visits; nothing where there is none.
    std::optional<std::int64_t> first_term(std::int64_t phase, std::int64_t terms) const {
        for (std::int64_t k = 0; k < std::min(step(), terms); ++k)
            if (remainder(of_result * phase + of_term * k + rest, divisor) == 0) return k;
        return {};
    }
};

// The loop that x moves with, alone of its kind, and how far; false where there is no such number.
bool find_loop(const Int& x, const std::vector<Loop>& loops, std::int64_t divisor,
               std::optional<std::size_t>& found, std::int64_t& step) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
        const std::uint64_t id = loops[i].variable.symbol_id();
        if (!id || !depends_on(x, id)) continue;
        const std::optional<Int> own = stride_of(x, loops[i].variable);
        if (found || !own || !own->is_constant()) return false;
        found = i;
        step = remainder(own->constant(), divisor);
    }
    return true;
}

std::optional<Axis> axis_of(const Nest& nest, const Guard& guard) {
    const std::optional<Multiple> multiple = asks_for_multiple(guard);
    if (!multiple) return {};
    Axis axis;
    axis.divisor = multiple->divisor;
    if (!find_loop(multiple->x, nest.parallel, axis.divisor, axis.result, axis.of_result) ||
        !find_loop(multiple->x, nest.reduced, axis.divisor, axis.term, axis.of_term))
        return {};
    Substitution start;
    if (axis.result) start[nest.parallel[*axis.result].variable.symbol_id()] = 0;
    if (axis.term) start[nest.reduced[*axis.term].variable.symbol_id()] = 0;
    const Int rest = substitute(multiple->x, start);
    if (!rest.is_constant()) return {};
    axis.rest = remainder(rest.constant(), axis.divisor);
    return axis;
}

// Guards about the same loop are one question too many: only the first is taken.
std::vector<Axis> axes_of(const Nest& nest) {
    std::vector<Axis> axes;
    for (const Guard& g : nest.guards) {
        const std::optional<Axis> axis = axis_of(nest, g);
        if (!axis) continue;
        const bool taken = std::any_of(axes.begin(), axes.end(), [&](const Axis& other) {
            return (axis->result && axis->result == other.result) || (axis->term && axis->term == other.term);
        });
        if (!taken) axes.push_back(*axis);
    }
    return axes;
}

// Phases that follow each other and differ in where results and terms begin alone.
struct Run {
    std::int64_t first = 0, count = 1;
    Int length;  // results of a phase
    bool visits = false;
    std::int64_t term = 0, next_term = 0;  // the first term, and how much later it is in the next phase
    Int terms;                             // of a result
};

bool continues(Run& run, const Run& next) {
    if (run.visits != next.visits || !(run.length == next.length) || !(run.terms == next.terms)) return false;
    const std::int64_t later = (next.term - run.term) / run.count;
    if (run.count > 1 && (later != run.next_term || later * run.count != next.term - run.term)) return false;
    run.next_term = later;
    ++run.count;
    return true;
}

// In so many parts of equal steps, how long the part that begins at `first` is.
Int length_of_part(const Int& whole, std::int64_t first, std::int64_t step) {
    return step == 1 ? whole : floordiv(whole - first + (step - 1), step);
}

std::int64_t most_turns(const Loop& loop) { return loop.extent.range().high; }

// Nothing where there are too many phases to look at.
std::vector<Run> runs_of(const Nest& nest, const Axis& axis) {
    constexpr std::int64_t most_phases = 4096;
    const std::int64_t results = axis.result ? most_turns(nest.parallel[*axis.result]) : 1,
                       terms = axis.term ? most_turns(nest.reduced[*axis.term]) : 1,
                       phases = std::min(axis.phases(), results);
    if (phases > most_phases || std::min(axis.step(), terms) > most_phases) return {};
    std::vector<Run> runs;
    for (std::int64_t p = 0; p < phases; ++p) {
        Run run;
        run.first = p;
        run.length =
            axis.result ? length_of_part(nest.parallel[*axis.result].extent, p, axis.phases()) : Int(1);
        if (run.length.is(0)) continue;
        if (const std::optional<std::int64_t> term = axis.first_term(p, terms)) {
            run.term = *term;
            run.terms =
                axis.term ? length_of_part(nest.reduced[*axis.term].extent, *term, axis.step()) : Int(1);
            run.visits = !run.terms.is(0);
        }
        if (!run.visits) run.term = 0, run.terms = 0;
        if (runs.empty() || !continues(runs.back(), run)) runs.push_back(std::move(run));
    }
    return runs;
}

bool never_holds(const Guard& g) {
    return (g.value - g.low).range().high < 0 || (g.high - g.value).range().high <= 0;
}

// One piece of the whole nest, axis by axis.
class Piece {
  public:
    explicit Piece(const Nest& whole) : whole_(whole), reduced_(whole.reduced) {
        for (const Loop& l : whole.parallel) parallel_.push_back({l});
    }

    bool visits() const { return visits_; }
    void visit_nothing() { visits_ = false; }

    void take(const Axis& axis, const Run& run) {
        const Loop phase = make_loop("phase", run.count);
        if (axis.result && axis.phases() > 1) {
            const Loop &whole = whole_.parallel[*axis.result], own = make_loop("place", run.length);
            results_[whole.variable.symbol_id()] = own.variable * axis.phases() + phase.variable + run.first;
            parallel_[*axis.result] = {own};
            if (run.count > 1) parallel_[*axis.result] = {phase, own};
        }
        visits_ = run.visits;
        if (!axis.term || !run.visits) return;
        const Loop &whole = whole_.reduced[*axis.term], own = make_loop("term", run.terms);
        terms_[whole.variable.symbol_id()] =
            own.variable * axis.step() + phase.variable * run.next_term + run.term;
        reduced_[*axis.term] = own;
    }

    ResultPhase done() const {
        Substitution all = results_;
        if (visits_) all.insert(terms_.begin(), terms_.end());
        ResultPhase r{substitute(whole_, all), results_};
        r.nest.parallel.clear();
        for (const std::vector<Loop>& loops : parallel_)
            r.nest.parallel.insert(r.nest.parallel.end(), loops.begin(), loops.end());
        if (visits_) {
            r.nest.reduced = reduced_;
            r.nest = simplify(r.nest);
        } else {
            r.nest.reduced.clear();
            r.nest.guards.clear();
            r.nest.lets.clear();
            r.nest.combine = Combine::none;
            r.nest.body = scalar_integer(whole_.dtype, 0);
        }
        return r;
    }

  private:
    const Nest& whole_;
    std::vector<std::vector<Loop>> parallel_;  // what takes the place of each loop
    std::vector<Loop> reduced_;
    Substitution results_, terms_;
    bool visits_ = true;
};

}  // namespace

std::optional<Multiple> asks_for_multiple(const Guard& guard) {
    if (!guard.low.is(0) || !guard.high.is(1)) return {};
    for (const Int::Term& t : guard.value.terms()) {
        if (t.atoms.size() != 1 || t.atoms[0]->kind != Atom::Kind::floordiv) continue;
        const Atom& quotient = *t.atoms[0];
        if (!quotient.b.is_constant() || quotient.b.constant() <= 1) continue;
        // Where a multiple of the remainder is 0, so is the remainder.
        const std::int64_t divisor = quotient.b.constant(), times = -t.factor / divisor;
        if (times > 0 && mod(quotient.a, quotient.b) * times == guard.value)
            return Multiple{quotient.a, divisor};
    }
    // Of numbers below the divisor, the remainder is the number itself.
    const IntRange r = guard.value.range();
    if (r.low >= 0 && r.high > 0 && r.high < most_divisor) return Multiple{guard.value, r.high + 1};
    return {};
}

// Results as far apart as these are alike in no axis that a task has a part of.
constexpr std::int64_t most_apart = std::int64_t{1} << 40;

std::int64_t results_alike(const Nest& nest, const Int& variable) {
    std::int64_t apart = 1;
    for (const Guard& guard : nest.guards) {
        const std::optional<Multiple> multiple = asks_for_multiple(guard);
        if (!multiple || !variable.symbol_id() || !depends_on(multiple->x, variable.symbol_id())) continue;
        if (multiple->divisor > most_apart / apart) return most_apart;
        apart = std::lcm(apart, multiple->divisor);
    }
    return apart;
}

bool asks_for_multiple(const Nest& nest, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    return id && std::any_of(nest.guards.begin(), nest.guards.end(),
                             [&](const Guard& g) { return depends_on(g.value, id) && asks_for_multiple(g); });
}

std::vector<ResultPhase> phases_of(const Nest& nest) {
    if (nest.combine != Combine::sum || nest.guards.empty()) return {};
    std::vector<Piece> pieces{Piece(nest)};
    if (std::any_of(nest.guards.begin(), nest.guards.end(), never_holds)) {
        pieces.front().visit_nothing();
        return {pieces.front().done()};
    }
    const std::vector<Axis> axes = axes_of(nest);
    if (axes.empty()) return {};
    for (const Axis& axis : axes) {
        const std::vector<Run> runs = runs_of(nest, axis);
        if (runs.empty()) return {};
        std::vector<Piece> more;
        for (const Piece& piece : pieces) {
            // Without terms by one axis it has none, whatever the others ask.
            if (!piece.visits()) more.push_back(piece);
            for (std::size_t i = 0; i < runs.size() && piece.visits(); ++i) {
                more.push_back(piece);
                more.back().take(axis, runs[i]);
            }
        }
        pieces = std::move(more);
        if (pieces.size() > most_pieces) return {};
    }
    std::vector<ResultPhase> phases;
    phases.reserve(pieces.size());
    for (const Piece& piece : pieces) phases.push_back(piece.done());
    return phases;
}

double terms_of_result(const Nest& nest) {
    double terms = typical_count(nest.reduced);
    for (const Axis& axis : axes_of(nest))
        if (axis.term) terms /= static_cast<double>(axis.step());
    return terms;
}

}  // namespace bitale
