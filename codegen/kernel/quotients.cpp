#include "codegen/kernel/quotients.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

constexpr std::size_t most_statements_of_sum = 64;

// floordiv(variable + rest, by)
struct Quotient {
    Int rest;
    std::int64_t by = 0;
};

class QuotientCutter {
  public:
    // `parts`: what the tasks have of buffers (Segment).
    QuotientCutter(const KernelIR& kernel, const std::map<int, std::vector<Part>>& parts)
        : kernel_(kernel), parts_(parts) {}

    Stmts operator()(Stmts body) {
        Stmts r;
        for (Stmt& s : body) {
            if (const std::optional<Quotient> found = quotient_of(s)) {
                r.push_back(cut(s, *found));
                continue;
            }
            s.body = (*this)(std::move(s.body));
            r.push_back(std::move(s));
        }
        return r;
    }

  private:
    // The loop over quotients is cut further where its own body asks for others.
    Stmt cut(const Stmt& s, const Quotient& x) {
        const Int divided = s.variable + x.rest, all = floordiv(divided, x.by),
                  quotient = Int::symbol("quotient", all.range()),
                  remainder = Int::symbol("remainder", {0, greatest_remainder(divided.range(), x.by)}),
                  before = quotient * x.by - x.rest;  // of the points with this quotient
        Stmts body = substitute(s.body, {{s.variable.symbol_id(), before + remainder}});
        // An index that is looked up by the quotient alone is looked up once for it.
        Stmts inner;
        const auto varies = std::find_if(body.begin(), body.end(), [&](const Stmt& one) {
            return one.kind != Stmt::Kind::let || depends_on(one.value, remainder.symbol_id()) ||
                   depends_on(one.end, remainder.symbol_id());
        });
        std::move(body.begin(), varies, std::back_inserter(inner));
        body.erase(body.begin(), varies);
        inner.push_back(
            loop(remainder, max(s.begin - before, 0), min(s.end - before, x.by), s.binding, std::move(body)));
        const Int first = floordiv(s.begin + x.rest, x.by), last = floordiv(s.end - 1 + x.rest, x.by);
        return loop(quotient, first, last + 1, Binding::serial, (*this)(std::move(inner)));
    }

    static std::int64_t greatest_remainder(const IntRange& divided, std::int64_t by) {
        return divided.low < 0 ? by - 1 : std::min(by - 1, divided.high);
    }

    // The quotients by the greatest number, where all by this number are of one sum.
    std::optional<Quotient> quotient_of(const Stmt& s) const {
        if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd || s.step != 1 || !s.high.is(0) ||
            !s.variable.symbol_id() || s.body.size() > most_statements_of_sum ||
            s.end.range().high <= shortest_run)
            return {};
        const std::uint64_t id = s.variable.symbol_id();
        if (!std::all_of(s.body.begin(), s.body.end(), [&](const Stmt& one) { return suits(one, id); }))
            return {};
        std::vector<Quotient> found;
        bool all = true;
        const auto look = [&](const Int& x) { all = all && collect(x, s.variable, found); };
        for (const Stmt& one : s.body) {
            if (one.place >= 0 && one.kind != Stmt::Kind::declare)
                look(offset_of(kernel_.places[static_cast<std::size_t>(one.place)], one.at));
            if (!one.value) continue;
            for_each_part(one.value, [&](const ScalarNode& part) {
                if (part.kind == ScalarNode::Kind::read)
                    look(offset_of(kernel_.places[static_cast<std::size_t>(part.operand.place())], part.at));
                if (part.kind == ScalarNode::Kind::index) look(part.index);
                for (const Guard& g : part.guards)
                    for (const Int* x : {&g.value, &g.low, &g.high}) look(*x);
            });
        }
        if (!all || found.empty()) return {};
        const Quotient& most = *std::max_element(
            found.begin(), found.end(), [](const Quotient& a, const Quotient& b) { return a.by < b.by; });
        const bool one_sum = std::all_of(found.begin(), found.end(), [&](const Quotient& x) {
            return x.by != most.by || x.rest == most.rest;
        });
        // What is looked up for each point is known inside of the loop alone.
        const bool looked_up = std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.kind == Stmt::Kind::let && depends_on(most.rest, one.variable.symbol_id());
        });
        // Of a loop that has one quotient alone nothing is left to cut.
        const Int quotients =
            floordiv(s.end - 1 + most.rest, most.by) - floordiv(s.begin + most.rest, most.by);
        if (!one_sum || looked_up || most.by < shortest_run || quotients.is(0)) return {};
        return most;
    }

    bool suits(const Stmt& one, std::uint64_t id) const {
        if (one.kind == Stmt::Kind::comment || one.kind == Stmt::Kind::declare) return true;
        if (one.kind == Stmt::Kind::let) return !moves_parts(one.value, id);
        const bool usual = one.kind == Stmt::Kind::accumulate && !one.position &&
                           (one.combine == Combine::sum || one.combine == Combine::prod ||
                            one.combine == Combine::max || one.combine == Combine::min);
        if (one.kind != Stmt::Kind::set && !usual) return false;
        return !moves_parts(one.place, one.at, id) && !moves_parts(one.value, id);
    }

    bool moves_parts(const Scalar& value, std::uint64_t id) const {
        return any_part(value, [&](const ScalarNode& x) {
            return x.kind == ScalarNode::Kind::read && moves_parts(x.operand.place(), x.at, id);
        });
    }

    // That an element is of the task's own part is proved by loops as they were.
    bool moves_parts(int place, const std::vector<Int>& at, std::uint64_t id) const {
        const auto moves = [&](const Part& p) { return depends_on(at[p.axis], id); };
        const std::vector<Part>& own = kernel_.places[static_cast<std::size_t>(place)].parts;
        const auto of_task = parts_.find(place);
        return std::any_of(own.begin(), own.end(), moves) ||
               (of_task != parts_.end() &&
                std::any_of(of_task->second.begin(), of_task->second.end(), moves));
    }

    // False where the variable is divided otherwise.
    static bool collect(const Int& x, const Int& variable, std::vector<Quotient>& found) {
        const std::uint64_t id = variable.symbol_id();
        for (const Int::Term& t : x.terms())
            for (const AtomPtr& a : t.atoms) {
                if (a->kind == Atom::Kind::symbol || !(depends_on(a->a, id) || depends_on(a->b, id)))
                    continue;
                if (a->kind != Atom::Kind::floordiv) {
                    if (!collect(a->a, variable, found) || !collect(a->b, variable, found)) return false;
                    continue;
                }
                const Int rest = a->a - variable;
                if (!a->b.is_constant() || a->b.constant() < 1 || depends_on(rest, id)) return false;
                found.push_back({rest, a->b.constant()});
            }
        return true;
    }

    const KernelIR& kernel_;
    const std::map<int, std::vector<Part>>& parts_;
};

}  // namespace

void cut_at_quotients(KernelIR& kernel) {
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments)
            segment.body = QuotientCutter(kernel, segment.parts)(std::move(segment.body));
}

}  // namespace bitale
