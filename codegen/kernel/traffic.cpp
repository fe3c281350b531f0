#include "codegen/kernel/traffic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Inclusive, over all values of the loop variables; arguments and lets stay symbols.
struct Interval {
    Int low, high;
};

// The indices of one axis that are touched.
struct Touched {
    Interval indices;     // with 0 for the lets
    std::vector<Int> by;  // what the lets are, to tell one access from another
    Int count;            // at most the length of the axis
};

// The elements of a place that one expression touches.
using Access = std::vector<Touched>;

// Of the accesses to a place, those that the next one may repeat: a kernel of hundreds of parts touches each
// part of a result by itself, and comparing all with all would take planning most of its time.
constexpr std::ptrdiff_t compared = 64;
// The place of a part is a sum of the lengths of those before it, so accesses may be long too.
constexpr std::size_t compared_terms = 1024;

bool always(const Int& x) { return x.range().low >= 0; }

// Whether a touches nothing but what b touches.
bool within(const Access& a, const Access& b) {
    for (std::size_t d = 0; d < a.size(); ++d)
        if (a[d].by != b[d].by || !always(a[d].indices.low - b[d].indices.low) ||
            !always(b[d].indices.high - a[d].indices.high))
            return false;
    return true;
}

std::size_t terms_of(const Access& access) {
    std::size_t terms = 0;
    for (const Touched& t : access) terms += t.indices.low.terms().size() + t.indices.high.terms().size();
    return terms;
}

Int count_of(const Access& access) {
    Int count = 1;
    for (const Touched& t : access) count = count * t.count;
    return count;
}

class TrafficWalker {
  public:
    explicit TrafficWalker(const KernelIR& kernel)
        : kernel_(kernel), reads_(kernel.places.size()), writes_(kernel.places.size()) {}

    Traffic run() {
        for (const Phase& phase : kernel_.phases)
            for (const Segment& segment : phase.segments) {
                enter(segment.task, 0, segment.tasks);
                walk(segment.body);
            }
        Traffic t;
        t.read.assign(static_cast<std::size_t>(kernel_.buffers), 0);
        t.written = t.read;
        for (std::size_t p = 0; p < kernel_.places.size(); ++p) {
            const Place& place = kernel_.places[p];
            if (place.scope != Place::Scope::global) continue;
            const auto buffer = static_cast<std::size_t>(place.buffer);
            t.read[buffer] = t.read[buffer] + bytes_of(reads_[p], place);
            t.written[buffer] = t.written[buffer] + bytes_of(writes_[p], place);
        }
        return t;
    }

  private:
    // A let: how many values it takes, and what tells it from others; none if that is not known.
    struct Chosen {
        std::optional<Int> times;
        std::vector<Int> by;
    };

    void enter(const Int& variable, const Int& begin, const Int& end) {
        const std::uint64_t id = variable.symbol_id();
        if (!id) return;
        const std::optional<Interval> first = interval(begin), last = interval(end);
        loops_[id].reset();
        if (first && last) loops_[id] = Interval{first->low, last->high - 1};
    }

    // Of all accesses together, at most the whole place.
    static Int bytes_of(const std::vector<Access>& list, const Place& place) {
        Int sum = 0, whole = 1;
        for (const Access& access : list) sum = sum + count_of(access);
        for (const Int& extent : place.extents) whole = whole * extent;
        return bitale::bytes_of(place.dtype) * min(sum, whole);
    }

    // Nothing where this arithmetic cannot tell.
    std::optional<Interval> interval(const Int& x) const {
        // x - m * floordiv(x, m) stands for mod(x, m): term by term the bounds would be lost.
        for (const Int::Term& term : x.terms())
            for (const AtomPtr& atom : term.atoms) {
                if (atom->kind != Atom::Kind::floordiv) continue;
                const Int modulus = atom->a - atom->b * Int::from(atom), rest = x - modulus;
                if (rest.terms().size() >= x.terms().size()) continue;
                const std::optional<Interval> r = interval(rest), m = interval(atom->b);
                if (!r || !m) return {};
                return Interval{r->low, r->high + m->high - 1};
            }
        // Lengths are left alone: a sum of many of them would be copied for each.
        Interval sum{x, x};
        for (const Int::Term& term : x.terms()) {
            if (std::all_of(term.atoms.begin(), term.atoms.end(),
                            [&](const AtomPtr& atom) { return !in_loops(*atom); }))
                continue;
            const std::optional<Interval> t = interval(term);
            if (!t) return {};
            Int own = term.factor;
            for (const AtomPtr& atom : term.atoms) own = own * Int::from(atom);
            sum = {sum.low - own + t->low, sum.high - own + t->high};
        }
        return sum;
    }

    // Of a sum of lengths it is known by the ids of its symbols.
    bool in_loops(const Atom& atom) const {
        if (atom.kind == Atom::Kind::symbol) return loops_.contains(atom.id);
        const auto least = loops_.lower_bound(atom.first);
        if (least == loops_.end() || least->first > atom.last) return false;
        for (const Int* x : {&atom.a, &atom.b})
            for (const Int::Term& t : x->terms())
                for (const AtomPtr& inside : t.atoms)
                    if (in_loops(*inside)) return true;
        return false;
    }

    std::optional<Interval> interval(const Int::Term& term) const {
        Int fixed = term.factor;
        std::optional<Interval> varying;
        for (const AtomPtr& atom : term.atoms) {
            const std::optional<Interval> a = interval(*atom);
            if (!a) return {};
            if (a->low == a->high) {
                fixed = fixed * a->low;
            } else if (!varying) {
                varying = a;
            } else {
                if (!always(a->low) || !always(varying->low)) return {};
                varying = Interval{varying->low * a->low, varying->high * a->high};
            }
        }
        if (!varying) return Interval{fixed, fixed};
        if (always(fixed)) return Interval{fixed * varying->low, fixed * varying->high};
        if (always(-fixed)) return Interval{fixed * varying->high, fixed * varying->low};
        return {};
    }

    std::optional<Interval> interval(const Atom& atom) const {
        if (atom.kind == Atom::Kind::symbol) {
            if (const auto at = loops_.find(atom.id); at != loops_.end()) return at->second;
            const Int itself = Int::from(std::make_shared<const Atom>(atom));
            return Interval{itself, itself};
        }
        const std::optional<Interval> a = interval(atom.a), b = interval(atom.b);
        if (!a || !b) return {};
        if (atom.kind == Atom::Kind::min) return Interval{min(a->low, b->low), min(a->high, b->high)};
        if (atom.kind == Atom::Kind::max) return Interval{max(a->low, b->low), max(a->high, b->high)};
        if (b->low == b->high && always(b->low))
            return Interval{floordiv(a->low, b->low), floordiv(a->high, b->low)};
        // By one at least.
        if (!always(a->low)) return {};
        return Interval{0, a->high};
    }

    Touched touched(const Int& at, const Int& extent) const {
        Touched whole{{0, extent - 1}, {}, extent};
        Touched t;
        Int times = 1;
        Substitution without;
        for (const auto& [id, let] : lets_) {
            if (!depends_on(at, id)) continue;
            if (!let.times) return whole;
            times = times * *let.times;
            t.by.insert(t.by.end(), let.by.begin(), let.by.end());
            without.emplace(id, Int(0));
        }
        const std::optional<Interval> all = interval(at);
        if (!all) return whole;
        // A let moves what is touched, it does not widen it; an expression where it does is not understood.
        const Int width = all->high - all->low + 1;
        for (const auto& [id, zero] : without)
            if (depends_on(width, id)) return whole;
        t.indices = {substitute(all->low, without), substitute(all->high, without)};
        t.count = min(times * width, extent);
        return t;
    }

    Access access(const std::vector<Int>& at, const Place& place) const {
        Access a;
        for (std::size_t d = 0; d < at.size(); ++d) a.push_back(touched(at[d], place.extents[d]));
        return a;
    }

    // As many elements from `at` on as the vector has.
    Access neighbours(std::vector<Int> at, int vector, const Place& place) {
        const Int width = kernel_.places[static_cast<std::size_t>(vector)].extents[0],
                  i = Int::symbol("i", {0, width.constant() - 1});
        enter(i, 0, width);
        at.back() = at.back() + i;
        return access(at, place);
    }

    // `count` elements from `at` on; a run over several rows is of whole rows.
    Access run(const std::vector<Int>& at, Int count, const Place& place) {
        Access a;
        for (std::size_t d = at.size(); d-- > 0;) {
            const Int here = min(count, place.extents[d]),
                      i = Int::symbol("i", {0, std::max<std::int64_t>(0, here.range().high - 1)});
            enter(i, 0, here);
            a.push_back(touched(at[d] + i, place.extents[d]));
            count = ceildiv(count, place.extents[d]);
        }
        std::reverse(a.begin(), a.end());
        return a;
    }

    void add(std::vector<Access>& to, Access access) const {
        auto latest = to.end();
        for (std::size_t terms = 0; latest != to.begin() && to.end() - latest < compared; --latest)
            if ((terms += terms_of(*(latest - 1))) > compared_terms) break;
        if (std::any_of(latest, to.end(), [&](const Access& other) { return within(access, other); })) return;
        to.erase(std::remove_if(latest, to.end(), [&](const Access& other) { return within(other, access); }),
                 to.end());
        to.push_back(std::move(access));
    }

    void read(const Scalar& s) {
        for_each_read(s, [&](const ScalarNode& element) {
            const auto p = static_cast<std::size_t>(element.operand.place());
            if (kernel_.places[p].scope == Place::Scope::global)
                add(reads_[p], access(element.at, kernel_.places[p]));
        });
    }

    // As many values as there are elements that it is computed from.
    void choose(const Scalar& scalar, Chosen& chosen) const {
        for_each_part(scalar, [&](const ScalarNode& s) {
            if (!chosen.times) return;
            if (s.kind == ScalarNode::Kind::index) {
                const std::optional<Interval> i = interval(s.index);
                if (!i) {
                    chosen.times.reset();
                    return;
                }
                chosen.times = *chosen.times * (i->high - i->low + 1);
                chosen.by.insert(chosen.by.end(), {-1, i->low, i->high});
            }
            if (s.kind == ScalarNode::Kind::read) {
                const Place& place = kernel_.places[static_cast<std::size_t>(s.operand.place())];
                // What a task finds in its scratch, others find otherwise.
                if (place.scope != Place::Scope::global) {
                    chosen.times.reset();
                    return;
                }
                const Access a = access(s.at, place);
                chosen.times = *chosen.times * count_of(a);
                chosen.by.emplace_back(s.operand.place());
                for (const Touched& t : a) {
                    chosen.by.insert(chosen.by.end(), {t.indices.low, t.indices.high});
                    chosen.by.insert(chosen.by.end(), t.by.begin(), t.by.end());
                }
            }
        });
    }

    void call(const Call& c) {
        using Operand = Intrinsic::Operand;
        for (const Scalar& value : c.values) read(value);
        int vector = -1;
        for_each_operand(c, [&](const Operand& operand, const Memory& memory) {
            if (operand.kind == Operand::Kind::vector) vector = memory.place;
        });
        for_each_operand(c, [&](const Operand& operand, const Memory& memory) {
            const auto p = static_cast<std::size_t>(memory.place);
            const Place& place = kernel_.places[p];
            if (operand.kind != Operand::Kind::memory || operand.use == Use::none ||
                operand.count == Operand::scratch || place.scope != Place::Scope::global)
                return;
            const Access access =
                operand.count == Operand::as_vector
                    ? neighbours(memory.at, vector, place)
                    : run(memory.at, c.numbers[static_cast<std::size_t>(operand.count)], place);
            if (operand.use != Use::written) add(reads_[p], access);
            if (operand.use != Use::read) add(writes_[p], access);
        });
    }

    void walk(const Stmts& body) {
        for (const Stmt& s : body) {
            const auto place = static_cast<std::size_t>(s.place);
            switch (s.kind) {
                case Stmt::Kind::loop:
                    enter(s.variable, s.begin, s.end);
                    walk(s.body);
                    break;
                case Stmt::Kind::when: walk(s.body); break;
                case Stmt::Kind::set:
                case Stmt::Kind::accumulate:
                    read(s.value);
                    if (s.position) read(s.position);
                    if (kernel_.places[place].scope != Place::Scope::global) break;
                    add(writes_[place], access(s.at, kernel_.places[place]));
                    if (s.kind == Stmt::Kind::accumulate)
                        add(reads_[place], access(s.at, kernel_.places[place]));
                    break;
                case Stmt::Kind::let: {
                    read(s.value);
                    Chosen chosen{1, {}};
                    choose(s.value, chosen);
                    lets_[s.variable.symbol_id()] = std::move(chosen);
                    break;
                }
                case Stmt::Kind::call: call(s.call); break;
                case Stmt::Kind::search:  // of all tasks together, each element once
                    add(reads_[place], run({0}, kernel_.places[place].extents[0], kernel_.places[place]));
                    enter(s.variable, 0, kernel_.places[place].extents[0] + 1);
                    break;
                case Stmt::Kind::check: read(s.value); break;
                case Stmt::Kind::declare:
                case Stmt::Kind::exchange:
                case Stmt::Kind::barrier:
                case Stmt::Kind::comment: break;
            }
        }
    }

    const KernelIR& kernel_;
    std::map<std::uint64_t, std::optional<Interval>> loops_;  // none: not known
    std::map<std::uint64_t, Chosen> lets_;
    std::vector<std::vector<Access>> reads_, writes_;  // by place
};

}  // namespace

Traffic traffic_of(const KernelIR& kernel) { return TrafficWalker(kernel).run(); }

}  // namespace bitale
