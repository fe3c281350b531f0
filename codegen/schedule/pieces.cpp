#include "codegen/schedule/pieces.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "codegen/group/values.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// floordiv(x, c) + d lies within [low, high) where x + c * d does within [c * low, c * high): parts of an
// axis that was joined with one inside it.
Guard of_joined_axis(const Nest& nest, const Guard& guard) {
    for (const Int::Term& t : guard.value.terms()) {
        if (t.factor != 1 || t.atoms.size() != 1 || t.atoms[0]->kind != Atom::Kind::floordiv) continue;
        const Int &x = t.atoms[0]->a, &c = t.atoms[0]->b;
        const bool is_loop = std::any_of(nest.parallel.begin(), nest.parallel.end(),
                                         [&](const Loop& loop) { return loop.variable == x; });
        if (is_loop && c.is_constant() && c.constant() > 0)
            return {x + c * (guard.value - Int::from(t.atoms[0])), c * guard.low, c * guard.high};
    }
    return guard;
}

// The parallel loop that a guard is about.
std::optional<std::size_t> axis_of(const Nest& nest, const Guard& guard) {
    for (std::size_t d = 0; d < nest.parallel.size(); ++d)
        if (const std::uint64_t id = nest.parallel[d].variable.symbol_id();
            id && depends_on(guard.value, id) && !depends_on(guard.value - nest.parallel[d].variable, id))
            return d;
    return {};
}

// The distinct guards of a body that choose among parts, and which of them each choice has. Comparing guards
// takes time that grows with the number of parts of a concatenation, so it is done once.
struct Choices {
    std::vector<Guard> guards;   // the first part of a concatenation last
    std::vector<Guard> written;  // likewise, as the body has them
    std::unordered_map<const ScalarNode*, std::size_t> number;
};

// Those that `fits` takes, of the guards that stand alone. Others stay as they are: parts may have borders.
Choices choices_of(const Nest& nest, const std::function<bool(const Guard&)>& fits) {
    Choices all;
    std::map<Guard, std::size_t> known;
    for_each_part(nest, [&](const ScalarNode& s) {
        if (s.guards.size() != 1) return;
        const auto before = known.find(s.guards[0]);
        if (before != known.end()) {
            all.number[&s] = before->second;
            return;
        }
        const Guard guard = of_joined_axis(nest, s.guards[0]);
        if (!fits(guard)) return;
        known.emplace(s.guards[0], all.guards.size());
        all.number[&s] = all.guards.size();
        all.guards.push_back(guard);
        all.written.push_back(s.guards[0]);
    });
    return all;
}

// What is left of a body where one of the guards holds and no other; what is not left is not walked.
class WhereOneHolds {
  public:
    WhereOneHolds(const Choices& choices, std::size_t held) : choices_(choices), held_(held) {}

    Scalar operator()(const Scalar& s) {
        const Scalar* at = &s;
        for (auto choice = choices_.number.find(at->get()); choice != choices_.number.end();
             choice = choices_.number.find(at->get())) {
            const bool is_held = choice->second == held_;
            if (is_held && (*at)->kind == ScalarNode::Kind::read) break;
            at = is_held ? &(*at)->arguments[0] : &(*at)->otherwise;
        }
        if (const auto known = done_.find(at->get()); known != done_.end()) return known->second;
        auto r = std::make_shared<ScalarNode>(**at);
        std::erase(r->guards, choices_.written[held_]);
        r->otherwise = r->guards.empty() ? nullptr : (*this)(r->otherwise);
        for (Scalar& a : r->arguments) a = (*this)(a);
        return done_[at->get()] = r;
    }

  private:
    const Choices& choices_;
    const std::size_t held_;
    std::unordered_map<const ScalarNode*, Scalar> done_;
};

Nest where_holds(const Nest& nest, const Choices& choices, std::size_t held) {
    WhereOneHolds left(choices, held);
    Nest r;
    r.parallel = nest.parallel;
    r.combine = nest.combine;
    r.accumulator = nest.accumulator;
    r.dtype = nest.dtype;
    r.body = left(nest.body);
    r.lets = lets_of(nest, r.body);
    for (Let& let : r.lets) let.value = left(let.value);
    return r;
}

bool may_be_cut(const Nest& nest) {
    return nest.combine == Combine::none && nest.guards.empty() && !nest.parallel.empty();
}

// The parallel loop whose variable leaves the remainder r on division by n, where that is what the guard
// demands.
std::optional<std::size_t> axis_of_remainder(const Nest& nest, const Guard& guard, std::int64_t n,
                                             std::int64_t r) {
    if (!guard.low.is(0) || !guard.high.is(1)) return {};
    for (std::size_t d = 0; d < nest.parallel.size(); ++d) {
        const Int& x = nest.parallel[d].variable;
        if (x.symbol_id() && guard.value == mod(x, n) - r) return d;
    }
    return {};
}

// Parts of one axis, one after another.
std::vector<Piece> pieces_along(const Nest& nest, std::size_t axis) {
    const Loop whole = nest.parallel[axis];
    const std::uint64_t id = whole.variable.symbol_id();
    const Choices choices = choices_of(nest, [&](const Guard& g) {
        const Int start = whole.variable - g.value;
        return axis_of(nest, g) == axis && g.low.is(0) && !depends_on(g.high, id) &&
               std::none_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& l) {
                   return l.variable.symbol_id() && depends_on(start, l.variable.symbol_id());
               });
    });
    const std::vector<Guard>& guards = choices.guards;
    if (guards.size() < 2) return {};
    // The last part first. So choices come, behind their operands, unless an operand asks which part it is
    // in.
    Int end = whole.extent;
    std::vector<std::size_t> order(guards.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::vector<Int> starts(guards.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
        const auto ends = [&](std::size_t n) {
            return written_out_where_it_cancels(whole.variable - guards[n].value + guards[n].high - end)
                .is(0);
        };
        const auto next = std::find_if(order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), ends);
        if (next == order.end()) return {};
        std::swap(order[k], *next);
        end = starts[order[k]] = whole.variable - guards[order[k]].value;
    }
    if (!end.is(0)) return {};
    std::vector<Piece> pieces;
    for (std::size_t n = order.size(); n-- > 0;) {
        const std::size_t k = order[n];
        const Loop part = make_loop("part", guards[k].high);
        Piece piece{substitute(where_holds(nest, choices, k), {{id, starts[k] + part.variable}}), axis,
                    starts[k]};
        piece.nest.parallel = nest.parallel;
        piece.nest.parallel[axis] = part;
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

// Whether they are short parts of rows whose elements are chosen for one function of all of them.
bool computes_one_function(const std::vector<Piece>& pieces, const Nest& nest) {
    constexpr double short_row = 64;
    if (pieces[0].axis + 1 != nest.parallel.size() || typical(nest.parallel.back().extent) >= short_row)
        return false;
    bool chooses_results = false;
    for_each_part(nest, [&](const ScalarNode& part) {
        chooses_results = chooses_results || (part.kind == ScalarNode::Kind::select &&
                                              part.arguments[0]->kind != ScalarNode::Kind::read);
    });
    return !chooses_results && is_costly(nest);
}

}  // namespace

std::vector<Piece> pieces_of(const Nest& nest) {
    if (!may_be_cut(nest)) return {};
    std::set<std::size_t> axes;
    for_each_part(nest, [&](const ScalarNode& s) {
        if (s.guards.size() != 1) return;
        if (const auto axis = axis_of(nest, of_joined_axis(nest, s.guards[0]))) axes.insert(*axis);
    });
    for (const std::size_t axis : axes)
        if (std::vector<Piece> pieces = pieces_along(nest, axis); !pieces.empty()) return pieces;
    return {};
}

bool are_narrow(const std::vector<Piece>& pieces, const Nest& nest) {
    constexpr std::size_t many = 8;
    constexpr double narrow = 16;
    return pieces.size() >= many && nest.parallel.size() > 1 && pieces[0].axis + 1 == nest.parallel.size() &&
           typical(nest.parallel.back().extent) < narrow * static_cast<double>(pieces.size());
}

std::size_t axis_of_tasks(const Nest& part) {
    constexpr double enough = 16;
    std::size_t best = 0;
    for (std::size_t d = 0; d < part.parallel.size(); ++d) {
        const double extent = typical(part.parallel[d].extent);
        if (extent > typical(part.parallel[best].extent)) best = d;
        if (extent >= enough) return d;
    }
    return best;
}

Nest with_axis_first(const Nest& part, std::size_t axis) {
    Nest r = part;
    std::rotate(r.parallel.begin(), r.parallel.begin() + static_cast<std::ptrdiff_t>(axis),
                r.parallel.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    return r;
}

std::vector<Int> put_back(const std::vector<Int>& at, std::size_t axis, const std::vector<Int>& starts) {
    std::vector<Int> r = at;
    std::rotate(r.begin(), r.begin() + 1, r.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    for (std::size_t d = 0; d < r.size(); ++d) r[d] = r[d] + starts[d];
    return r;
}

std::vector<Piece> separate_pieces_of(const Nest& nest) {
    std::vector<Piece> pieces = pieces_of(nest);
    if (pieces.empty() || are_narrow(pieces, nest) || computes_one_function(pieces, nest)) return {};
    return pieces;
}

std::vector<Member> narrow_parts_of(const Member& member) {
    const std::vector<Piece> pieces = pieces_of(member.nest);
    if (!are_narrow(pieces, member.nest)) return {};
    bool reads_own = false;
    for_each_read(member.nest, [&](const ScalarNode& s) {
        for (const Destination& to : member.destinations)
            reads_own = reads_own || s.operand.place() == to.place;
    });
    if (reads_own) return {};
    const std::uint64_t along = member.nest.parallel.back().variable.symbol_id();
    std::vector<Member> parts;
    for (const Piece& piece : pieces) {
        Member part = member;
        part.nest = piece.nest;
        for (Destination& to : part.destinations)
            for (Int& x : to.at)
                x = substitute(x, {{along, piece.start + piece.nest.parallel.back().variable}});
        parts.push_back(std::move(part));
    }
    return parts;
}

std::vector<Piece> pieces_by_remainder(const Nest& nest) {
    if (!may_be_cut(nest)) return {};
    const Choices choices = choices_of(nest, [](const Guard&) { return true; });
    if (choices.guards.size() < 2) return {};
    const auto n = static_cast<std::int64_t>(choices.guards.size());
    const std::optional<std::size_t> axis = axis_of_remainder(nest, choices.guards[0], n, n - 1);
    if (!axis) return {};
    const Loop whole = nest.parallel[*axis];
    std::vector<Piece> pieces;
    for (std::int64_t r = 0; r < n; ++r) {
        const auto k = static_cast<std::size_t>(n - 1 - r);
        if (axis_of_remainder(nest, choices.guards[k], n, r) != axis) return {};
        const Loop part = make_loop("part", ceildiv(whole.extent - r, n));
        Piece piece{
            substitute(where_holds(nest, choices, k), {{whole.variable.symbol_id(), n * part.variable + r}}),
            *axis, r, n};
        piece.nest.parallel = nest.parallel;
        piece.nest.parallel[*axis] = part;
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

}  // namespace bitale
