#include "codegen/kernel/ir.h"

#include <algorithm>
#include <set>

#include "codegen/kernel/bounds.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

Stmt of(Stmt::Kind kind) {
    Stmt s;
    s.kind = kind;
    return s;
}

}  // namespace

Int offset_of(const Place& place, const std::vector<Int>& at) {
    Int offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
        offset = offset * place.extents[d] + at[d];
        if (place.scope == Place::Scope::global) continue;
        for (const Part& part : place.parts)
            if (part.axis == d) offset = offset - part.first;
    }
    return offset;
}

Int step_of(const Place& place, const std::vector<Int>& at, const Int& variable) {
    const Int offset = offset_of(place, at);
    return substitute(offset, {{variable.symbol_id(), variable + 1}}) - offset;
}

bool is_plain(const Stmt& s) {
    return s.kind == Stmt::Kind::set || s.kind == Stmt::Kind::accumulate || s.kind == Stmt::Kind::declare ||
           s.kind == Stmt::Kind::comment;
}

void append(Stmts& to, Stmts from) {
    for (Stmt& s : from) to.push_back(std::move(s));
}

Stmt loop(Int variable, Int begin, Int end, Binding binding, Stmts body, std::int64_t step) {
    Stmt s = of(Stmt::Kind::loop);
    s.variable = std::move(variable);
    s.begin = std::move(begin);
    s.end = std::move(end);
    s.binding = binding;
    s.body = std::move(body);
    s.step = step;
    return s;
}

Stmt lanes(Int lane, Int count, std::int64_t width, Stmts body) {
    Stmt s = loop(std::move(lane), 0, std::move(count), Binding::lanes, std::move(body));
    s.number = static_cast<int>(width);
    return s;
}

Stmt declare(int place) {
    Stmt s = of(Stmt::Kind::declare);
    s.place = place;
    return s;
}

Scalar place_read(DType dtype, int place, std::vector<Int> at, std::vector<Guard> guards, Scalar otherwise) {
    return scalar_read(dtype, Operand::of_place(place), std::move(at), std::move(guards),
                       std::move(otherwise));
}

Stmt set(int place, std::vector<Int> at, Scalar value) {
    Stmt s = of(Stmt::Kind::set);
    s.place = place;
    s.at = std::move(at);
    s.value = std::move(value);
    return s;
}

Stmt accumulate(int place, std::vector<Int> at, Combine combine, Scalar value, bool fused) {
    Stmt s = set(place, std::move(at), std::move(value));
    s.kind = Stmt::Kind::accumulate;
    s.combine = combine;
    s.fused = fused;
    return s;
}

Stmt exchange(int place, Combine combine, int lanes, int positions) {
    Stmt s = of(Stmt::Kind::exchange);
    s.place = place;
    s.combine = combine;
    s.step = lanes;
    s.number = positions;
    return s;
}

Stmt search(Int variable, int sorted, Int begin, Int end, Int low, Int about) {
    Stmt s = of(Stmt::Kind::search);
    s.variable = std::move(variable);
    s.place = sorted;
    s.begin = std::move(begin);
    s.end = std::move(end);
    s.low = std::move(low);
    s.high = std::move(about);
    return s;
}

Stmt let(Int variable, Scalar value, Int extent) {
    Stmt s = of(Stmt::Kind::let);
    s.variable = std::move(variable);
    s.value = std::move(value);
    s.end = std::move(extent);
    return s;
}

Stmt check(int number, Scalar value, Int low, Int high, Int element) {
    Stmt s = of(Stmt::Kind::check);
    s.number = number;
    s.value = std::move(value);
    s.low = std::move(low);
    s.high = std::move(high);
    s.begin = std::move(element);
    return s;
}

Stmt when(std::vector<Guard> guards, Stmts body) {
    Stmt s = of(Stmt::Kind::when);
    s.guards = std::move(guards);
    s.body = std::move(body);
    return s;
}

Stmt barrier() { return of(Stmt::Kind::barrier); }

Stmt comment(std::string text, Where where) {
    Stmt s = of(Stmt::Kind::comment);
    s.text = std::move(text);
    s.where = where;
    return s;
}

Stmt comment_of(const Node& node, const std::string& before) {
    return comment(before + describe(node), node.where);
}

namespace {

class Verifier {
  public:
    using Symbols = std::set<std::uint64_t>;

    Verifier(const KernelIR& kernel, const Symbols& sizes) : kernel_(kernel), sizes_(sizes) {}

    void run() {
        for (const Place& place : kernel_.places) {
            if (place.scope == Place::Scope::global)
                BITALE_CHECK(place.buffer >= 0 && place.buffer < kernel_.buffers,
                             "a place outside the buffer list");
            else
                BITALE_CHECK(is_static(place.extents), "scratch of unknown size");
            for (const Int& x : place.extents) index(x, {});
        }
        for (const Phase& phase : kernel_.phases)
            for (const Segment& segment : phase.segments) look_at(segment);
    }

    void look_at(const Segment& segment) {
        Symbols declared;
        if (const std::uint64_t id = segment.task.symbol_id()) declared.insert(id);
        index(segment.tasks, {});
        parts_ = &segment.parts;
        bounds_.enter(loop(segment.task, 0, segment.tasks, Binding::serial, {}));
        never_runs_ = segment.tasks.range().high <= 0;
        walk(segment.body, declared, {});
        bounds_.leave();
    }

  private:
    // What is no variable around here becomes a parameter of the kernel, so the caller must know its value.
    void index(const Int& x, const Symbols& declared) const {
        for (const Int::Term& term : x.terms())
            for (const AtomPtr& a : term.atoms) {
                if (a->kind != Atom::Kind::symbol) {
                    if (of_lengths(a)) continue;
                    index(a->a, declared);
                    index(a->b, declared);
                    continue;
                }
                BITALE_CHECK(
                    declared.contains(a->id) || sizes_.contains(a->id),
                    "the symbol " + a->name + " is neither declared around its use nor a length of the call");
            }
    }
    // Of lengths of the call alone: looked at once, as sums of many of them occur in many indices.
    bool of_lengths(const AtomPtr& a) const {
        if (a->kind == Atom::Kind::symbol) return sizes_.contains(a->id);
        const auto [at, fresh] = of_lengths_.try_emplace(a, true);
        if (!fresh) return at->second;
        bool all = true;
        for (const Int* x : {&a->a, &a->b})
            for (const Int::Term& t : x->terms())
                all = all && std::all_of(t.atoms.begin(), t.atoms.end(),
                                         [&](const AtomPtr& inside) { return of_lengths(inside); });
        return of_lengths_[a] = all;
    }
    void guards(const std::vector<Guard>& list, const Symbols& declared) const {
        for (const Guard& g : list)
            for (const Int* x : {&g.value, &g.low, &g.high}) index(*x, declared);
    }

    const Place& place(int number, std::size_t rank, const std::set<int>& alive) const {
        BITALE_CHECK(number >= 0 && number < static_cast<int>(kernel_.places.size()), "an unknown place");
        const Place& p = kernel_.places[number];
        BITALE_CHECK(p.extents.size() == rank, "an index of the wrong rank");
        BITALE_CHECK(p.scope == Place::Scope::global || alive.contains(number),
                     "scratch used before it is declared");
        return p;
    }

    // An element that is loaded or stored: of a value that the task has in part, in that part.
    void element(int number, const std::vector<Int>& at, const std::set<int>& alive) const {
        inside(place(number, at.size(), alive).parts, at);
        if (const auto of_task = parts_->find(number); of_task != parts_->end()) inside(of_task->second, at);
    }

    // Statements are walked in their order: a loop reads nothing that only its later statements write. What
    // never runs, as for an array without rows, reads nothing, and what it would read is written nowhere.
    void read(int number) const {
        const Place& place = kernel_.places[number];
        const bool is_scratch = place.scope != Place::Scope::global;
        const bool is_empty = std::any_of(place.extents.begin(), place.extents.end(),
                                          [](const Int& extent) { return extent.is(0); });
        BITALE_CHECK(!is_scratch || is_empty || never_runs_ || written_.contains(number),
                     "scratch read before anything is written there");
    }

    void inside(const std::vector<Part>& parts, const std::vector<Int>& at) const {
        for (const Part& part : parts) {
            const Int index = at[part.axis] - part.first;
            BITALE_CHECK(bounds_.non_negative(index) && bounds_.below(index, part.count),
                         "index " + at[part.axis].text() + " of axis " + std::to_string(part.axis) +
                             " where the task has " + std::to_string(part.count) + " from " +
                             part.first.text() + " on");
        }
    }

    void scalar(const Scalar& s, const std::set<int>& alive, const Symbols& declared) const {
        for_each_part(s, [&](const ScalarNode& part) {
            index(part.index, declared);
            for (const Int& x : part.at) index(x, declared);
            guards(part.guards, declared);
            if (part.kind == ScalarNode::Kind::read) {
                element(part.operand.place(), part.at, alive);
                read(part.operand.place());
            }
            BITALE_CHECK(part.guards.empty() || part.otherwise, "a guard without a value for outside");
        });
    }

    void call(const Call& c, const std::set<int>& alive, const Symbols& declared) {
        for (const Int& x : c.numbers) index(x, declared);
        for (const Scalar& value : c.values) scalar(value, alive, declared);
        for_each_operand(c, [&](const Intrinsic::Operand& operand, const Memory& memory) {
            using Kind = Intrinsic::Operand::Kind;
            if (operand.use == Use::read)
                read(memory.place);
            else
                written_.insert(memory.place);
            for (const Int& x : memory.at) index(x, declared);
            switch (operand.kind) {
                case Kind::scalar: place(memory.place, 0, alive); break;
                case Kind::vector: place(memory.place, 1, alive); break;
                case Kind::registers: place(memory.place, 2, alive); break;
                case Kind::memory:
                    if (operand.use == Use::none)
                        place(memory.place, memory.at.size(), alive);
                    else
                        element(memory.place, memory.at, alive);
                    BITALE_CHECK(operand.use == Use::none || operand.use == Use::read ||
                                     kernel_.places[memory.place].written,
                                 "a place that is written without being marked so");
                    break;
                case Kind::none: BITALE_CHECK(false, "an intrinsic with too many operands");
            }
        });
    }

    void walk(const Stmts& body, Symbols declared, std::set<int> alive) {
        for (const Stmt& s : body) {
            for (const Int* x : {&s.begin, &s.end, &s.low, &s.high}) index(*x, declared);
            for (const Int& x : s.at) index(x, declared);
            guards(s.guards, declared);
            switch (s.kind) {
                case Stmt::Kind::loop:
                case Stmt::Kind::when: {
                    Symbols inner = declared;
                    if (const std::uint64_t id = s.variable.symbol_id())
                        BITALE_CHECK(inner.insert(id).second, "a loop variable declared twice");
                    if (s.kind == Stmt::Kind::loop) bounds_.enter(s);
                    bounds_.assume(s.guards);
                    const bool outside = never_runs_;
                    never_runs_ |= s.kind == Stmt::Kind::loop && (s.end - s.begin).range().high <= 0;
                    walk(s.body, inner, alive);
                    never_runs_ = outside;
                    bounds_.forget(s.guards);
                    if (s.kind == Stmt::Kind::loop) bounds_.leave();
                    break;
                }
                case Stmt::Kind::declare:
                    alive.insert(s.place);
                    written_.erase(s.place);
                    break;
                case Stmt::Kind::set:
                case Stmt::Kind::accumulate:
                    element(s.place, s.at, alive);
                    BITALE_CHECK(kernel_.places[s.place].written,
                                 "a place that is written without being marked so");
                    scalar(s.value, alive, declared);
                    if (s.position) scalar(s.position, alive, declared);
                    if (s.kind == Stmt::Kind::accumulate) read(s.place);
                    written_.insert(s.place);
                    break;
                case Stmt::Kind::exchange:
                    place(s.place, 0, alive);
                    if (s.number >= 0) place(s.number, 0, alive);
                    break;
                case Stmt::Kind::call: call(s.call, alive, declared); break;
                case Stmt::Kind::search:
                    place(s.place, 1, alive);
                    declared.insert(s.variable.symbol_id());
                    break;
                case Stmt::Kind::let:
                    scalar(s.value, alive, declared);
                    declared.insert(s.variable.symbol_id());
                    break;
                case Stmt::Kind::check: scalar(s.value, alive, declared); break;
                case Stmt::Kind::barrier:
                case Stmt::Kind::comment: break;
            }
        }
    }

    const KernelIR& kernel_;
    const Symbols& sizes_;
    mutable std::map<AtomPtr, bool> of_lengths_;
    const std::map<int, std::vector<Part>>* parts_ = nullptr;  // of the segment
    std::set<int> written_;                                    // scratch, by now
    bool never_runs_ = false;                                  // of what is walked
    Bounds bounds_;
};

}  // namespace

void verify(const KernelIR& kernel, const std::set<std::uint64_t>& sizes) { Verifier(kernel, sizes).run(); }

bool is_verified(const KernelIR& kernel, const Segment& segment, const std::set<std::uint64_t>& sizes) {
    try {
        Verifier(kernel, sizes).look_at(segment);
        return true;
    } catch (const InternalError&) {
        return false;
    }
}

namespace {

std::int64_t widest(const Stmts& body) {
    std::int64_t most = 1;
    for (const Stmt& s : body) {
        if (s.kind == Stmt::Kind::loop && s.binding == Binding::threads)
            most = std::max(most, s.end.range().high);
        else
            most = std::max(most, widest(s.body));
    }
    return most;
}

bool mentions(const Stmts& body, std::uint64_t symbol) {
    return std::any_of(body.begin(), body.end(), [&](const Stmt& s) {
        for (const Int* x : {&s.begin, &s.end, &s.low, &s.high})
            if (depends_on(*x, symbol)) return true;
        const auto any = [&](const std::vector<Int>& list) {
            return std::any_of(list.begin(), list.end(), [&](const Int& x) { return depends_on(x, symbol); });
        };
        const Call& c = s.call;
        return any(s.at) || any(c.numbers) ||
               std::any_of(c.operands.begin(), c.operands.end(),
                           [&](const Memory& m) { return any(m.at); }) ||
               std::any_of(c.values.begin(), c.values.end(),
                           [&](const Scalar& x) { return depends_on(x, symbol); }) ||
               std::any_of(s.guards.begin(), s.guards.end(),
                           [&](const Guard& g) { return depends_on(g, symbol); }) ||
               depends_on(s.value, symbol) || depends_on(s.position, symbol) || mentions(s.body, symbol);
    });
}

}  // namespace

Int tasks_of(std::span<const Segment> segments) {
    std::vector<Int> parts;
    for (const Segment& segment : segments) parts.push_back(segment.tasks);
    return total_of(std::move(parts));
}

int threads_of(const Phase& phase) {
    constexpr std::int64_t warp = 32, most = 256;
    std::int64_t threads = 1;
    for (const Segment& segment : phase.segments) threads = std::max(threads, widest(segment.body));
    return static_cast<int>((std::min(threads, most) + warp - 1) / warp * warp);
}

bool mentions(const KernelIR& kernel, std::uint64_t symbol) {
    for (const Phase& phase : kernel.phases)
        for (const Segment& segment : phase.segments)
            if (depends_on(segment.tasks, symbol) || mentions(segment.body, symbol)) return true;
    // Places have extents, which indices are multiplied with.
    return std::any_of(kernel.places.begin(), kernel.places.end(), [&](const Place& p) {
        return std::any_of(p.extents.begin(), p.extents.end(),
                           [&](const Int& x) { return depends_on(x, symbol); });
    });
}

}  // namespace bitale
