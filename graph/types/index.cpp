#include "graph/types/index.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/hash.h"
#include "graph/types/index_order.h"
#include "graph/types/saturated.h"

namespace bitale {

namespace {

std::int64_t saturate(__int128 x) {
    if (x < IntRange::lowest) return IntRange::lowest;
    if (x > IntRange::highest) return IntRange::highest;
    return static_cast<std::int64_t>(x);
}

bool bounded(std::int64_t x) { return x > IntRange::lowest && x < IntRange::highest; }

IntRange add(IntRange a, IntRange b) {
    return {bounded(a.low) && bounded(b.low) ? saturate(__int128(a.low) + b.low) : IntRange::lowest,
            bounded(a.high) && bounded(b.high) ? saturate(__int128(a.high) + b.high) : IntRange::highest};
}

IntRange multiply(IntRange a, IntRange b) {
    const __int128 p[4] = {__int128(a.low) * b.low, __int128(a.low) * b.high, __int128(a.high) * b.low,
                           __int128(a.high) * b.high};
    return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
}

// Factors may leave 64 bits: they wrap, so that what is added and taken away again is gone. What is a number
// altogether is a length, and saturates.
std::int64_t plus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t times(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t minus(std::int64_t a) { return times(a, -1); }
bool is_multiple(std::int64_t a, std::int64_t b) { return b == -1 || a % b == 0; }

using saturated::floor_quotient;

}  // namespace

// The only code that writes terms: keeps them sorted and merged, and shares them when it is done.
class IntBuilder {
  public:
    explicit IntBuilder(std::int64_t constant = 0) : constant_(constant) {}
    explicit IntBuilder(const Int& start) : constant_(start.constant_), start_(start.terms_) {}

    void add(std::int64_t constant) { constant_ = plus(constant_, constant); }
    void add(std::int64_t factor, const Atoms& atoms) {
        if (factor == 0) return;
        if (atoms.empty()) {
            constant_ = plus(constant_, factor);
            return;
        }
        own();
        auto at =
            std::lower_bound(terms_.begin(), terms_.end(), atoms,
                             [](const Int::Term& t, const Atoms& x) { return compare(t.atoms, x) < 0; });
        if (at != terms_.end() && compare(at->atoms, atoms) == 0) {
            at->factor = plus(at->factor, factor);
            if (at->factor == 0) terms_.erase(at);
        } else {
            terms_.insert(at, {factor, atoms});
        }
    }
    void add(const Int& x, std::int64_t factor) {
        constant_ = plus(constant_, times(x.constant_, factor));
        if (factor == 0 || !x.terms_) return;
        if (factor == 1 && !start_ && terms_.empty()) {
            start_ = x.terms_;
            return;
        }
        constexpr std::size_t few = 4;
        if (x.terms_->size() > few) return merge(*x.terms_, factor);
        for (const Int::Term& t : *x.terms_) add(times(t.factor, factor), t.atoms);
    }
    Int done() && {
        Int x(constant_);
        if (start_)
            x.terms_ = std::move(start_);
        else if (!terms_.empty())
            x.terms_ = std::make_shared<const std::vector<Int::Term>>(std::move(terms_));
        return x;
    }

    static Int of(AtomPtr atom) {
        IntBuilder x;
        x.terms_.push_back({1, std::vector<AtomPtr>{std::move(atom)}});
        return std::move(x).done();
    }
    static Int of(Atom::Kind kind, const Int& a, const Int& b) {
        auto atom = std::make_shared<Atom>();
        atom->kind = kind;
        atom->a = a;
        atom->b = b;
        atom->range = range_of(*atom);
        atom->hash = mix(mix(static_cast<std::uint64_t>(kind), hash_of(a)), hash_of(b));
        const std::int64_t x = example_of(a), y = example_of(b);
        atom->example = kind == Atom::Kind::min   ? std::min(x, y)
                        : kind == Atom::Kind::max ? std::max(x, y)
                                                  : floor_quotient(x, y);
        for (const Int* x : {&a, &b})
            for (const Int::Term& t : x->terms())
                for (const AtomPtr& inside : t.atoms)
                    if (inside->last != 0) {
                        atom->first = std::min(atom->last == 0 ? inside->first : atom->first, inside->first);
                        atom->last = std::max(atom->last, inside->last);
                    }
        return of(std::move(atom));
    }

  private:
    static IntRange range_of(const Atom& atom);
    // Both lists are sorted: one by one, long sums would be moved for each term.
    void merge(const std::vector<Int::Term>& theirs, std::int64_t factor) {
        own();
        std::vector<Int::Term> all;
        all.reserve(terms_.size() + theirs.size());
        auto mine = terms_.begin();
        const auto keep = [&](std::int64_t f, Atoms atoms) {
            if (f != 0) all.push_back({f, std::move(atoms)});
        };
        for (const Int::Term& t : theirs) {
            std::strong_ordering order = std::strong_ordering::greater;
            for (; mine != terms_.end() && (order = compare(mine->atoms, t.atoms)) < 0; ++mine)
                all.push_back(std::move(*mine));
            const std::int64_t added = times(t.factor, factor);
            if (mine != terms_.end() && order == 0) {
                keep(plus(mine->factor, added), std::move(mine->atoms));
                ++mine;
            } else {
                keep(added, t.atoms);
            }
        }
        std::move(mine, terms_.end(), std::back_inserter(all));
        terms_ = std::move(all);
    }
    void own() {
        if (start_) terms_ = *start_;
        start_ = nullptr;
    }
    std::int64_t constant_ = 0;
    std::shared_ptr<const std::vector<Int::Term>> start_;  // all terms, as long as nothing changes them
    std::vector<Int::Term> terms_;
};

const std::vector<Int::Term>& Int::no_terms() {
    static const std::vector<Term>& none = *new std::vector<Term>;
    return none;
}

Int Int::symbol(std::string name, IntRange range) {
    static std::atomic<std::uint64_t> next{1};
    if (range.low == range.high) return range.low;
    auto atom = std::make_shared<Atom>();
    atom->id = atom->first = atom->last = next++;
    atom->hash = mix(0, atom->id);
    atom->name = std::move(name);
    atom->range = range;
    // Unlike ones, and none that is 0 where it need not be.
    constexpr std::int64_t unlike = 7;
    const std::int64_t number = 1 + static_cast<std::int64_t>(atom->id % unlike);
    atom->example = std::max(range.low, std::min(std::max<std::int64_t>(range.low, 0) + number, range.high));
    return IntBuilder::of(std::move(atom));
}

Int Int::from(const AtomPtr& atom) { return IntBuilder::of(atom); }

std::int64_t Int::constant() const {
    BITALE_CHECK(is_constant(), "not a constant: " + text());
    return constant_;
}

AtomPtr Int::as_atom() const {
    if (constant_ != 0 || !terms_ || terms_->size() != 1) return nullptr;
    const Term& only = terms_->front();
    return only.factor == 1 && only.atoms.size() == 1 ? only.atoms[0] : nullptr;
}

std::uint64_t Int::symbol_id() const {
    if (constant_ != 0 || !terms_ || terms_->size() != 1) return 0;
    const Term& only = terms_->front();
    if (only.factor != 1 || only.atoms.size() != 1) return 0;
    return only.atoms[0]->kind == Atom::Kind::symbol ? only.atoms[0]->id : 0;
}

std::strong_ordering Int::operator<=>(const Int& other) const {
    if (terms_ == other.terms_) return constant_ <=> other.constant_;
    const std::vector<Term>&mine = terms(), &theirs = other.terms();
    if (auto c = mine.size() <=> theirs.size(); c != 0) return c;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        if (auto c = compare(mine[i].atoms, theirs[i].atoms); c != 0) return c;
        if (auto c = mine[i].factor <=> theirs[i].factor; c != 0) return c;
    }
    return constant_ <=> other.constant_;
}

Int operator+(const Int& a, const Int& b) {
    if (a.is_constant() && b.is_constant()) return saturated::sum(a.constant_, b.constant_);
    if (a.terms().size() < b.terms().size()) return b + a;
    IntBuilder r(a);
    r.add(b, 1);
    return std::move(r).done();
}

Int operator-(const Int& a, const Int& b) {
    if (a.is_constant() && b.is_constant()) return saturated::difference(a.constant_, b.constant_);
    IntBuilder r(a);
    r.add(b, -1);
    return std::move(r).done();
}

Int operator*(const Int& a, const Int& b) {
    if (b.is(1)) return a;
    if (a.is(1)) return b;
    if (a.is_constant() && b.is_constant()) return saturated::product(a.constant_, b.constant_);
    IntBuilder r;
    r.add(a, b.constant_);
    for (const Int::Term& t : b.terms()) {
        r.add(times(t.factor, a.constant_), t.atoms);
        for (const Int::Term& s : a.terms()) {
            std::vector<AtomPtr> atoms(s.atoms.begin(), s.atoms.end());
            atoms.insert(atoms.end(), t.atoms.begin(), t.atoms.end());
            std::sort(atoms.begin(), atoms.end(),
                      [](const AtomPtr& x, const AtomPtr& y) { return compare(x, y) < 0; });
            r.add(times(s.factor, t.factor), atoms);
        }
    }
    return std::move(r).done();
}

Int total_of(std::vector<Int> parts) {
    if (parts.empty()) return 0;
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2)) {
        const std::size_t half = (parts.size() + 1) / 2;
        for (std::size_t i = half; i < parts.size(); ++i) parts[i - half] = parts[i - half] + parts[i];
    }
    return parts[0];
}

namespace {

constexpr std::size_t most_terms = 64, block = 16;

bool is_block(const Atom& a) { return a.kind == Atom::Kind::max && a.b.is(0) && a.a.non_negative(); }

Int block_of(const Int& sum) { return sum.is_constant() ? sum : IntBuilder::of(Atom::Kind::max, sum, 0); }

}  // namespace

std::vector<Int> starts_of(const std::vector<Int>& lengths) {
    std::vector<Int> all;
    for (const Int& length : lengths) all.push_back(written_out(length));
    const Int end = with_parts_joined(total_of(std::move(all)));
    std::vector<Int> starts{0};
    if (end.terms().size() <= most_terms || !end.non_negative()) {
        for (const Int& length : lengths) starts.push_back(starts.back() + length);
        starts.back() = end;
        return starts;
    }
    std::vector<Int> levels{0};  // what is behind the last whole block of each size, the smallest first
    for (std::size_t k = 0; k < lengths.size(); ++k) {
        levels[0] = levels[0] + lengths[k];
        std::size_t level = 0;
        for (std::size_t n = k + 1; n % block == 0; n /= block, ++level) {
            if (level + 1 == levels.size()) levels.emplace_back(0);
            levels[level + 1] = levels[level + 1] + block_of(levels[level]);
            levels[level] = 0;
        }
        starts.push_back(total_of(levels));
    }
    starts.back() = block_of(end);
    return starts;
}

namespace {

template <class Which>
Int written_out(const Int& x, const Which& which) {
    Int r = x;
    while (true) {
        std::vector<Int> blocks, sums;
        for (const Int::Term& t : r.terms())
            if (t.atoms.size() == 1 && is_block(*t.atoms[0]) && which(r, t)) {
                blocks.push_back(t.factor * Int::from(t.atoms[0]));
                sums.push_back(t.factor * t.atoms[0]->a);
            }
        if (blocks.empty()) return r;
        r = r - total_of(std::move(blocks)) + total_of(std::move(sums));
    }
}

bool may_cancel(const Int& x, const Int::Term& block) {
    return std::any_of(x.terms().begin(), x.terms().end(), [&](const Int::Term& t) {
        return (t.factor < 0) != (block.factor < 0) && t.atoms.size() == 1 &&
               t.atoms[0]->first <= block.atoms[0]->last && t.atoms[0]->last >= block.atoms[0]->first;
    });
}

}  // namespace

Int written_out(const Int& x) {
    return written_out(x, [](const Int&, const Int::Term&) { return true; });
}

Int written_out_where_it_cancels(const Int& x) { return written_out(x, may_cancel); }

std::int64_t example_of(const Int& x) {
    std::int64_t sum = x.constant_term();
    for (const Int::Term& t : x.terms()) {
        std::int64_t term = t.factor;
        for (const AtomPtr& a : t.atoms) term = saturated::product(term, a->example);
        sum = saturated::sum(sum, term);
    }
    return sum;
}

IntRange IntBuilder::range_of(const Atom& atom) {
    const IntRange a = atom.a.range(), b = atom.b.range();
    if (atom.kind == Atom::Kind::min) return {std::min(a.low, b.low), std::min(a.high, b.high)};
    if (atom.kind == Atom::Kind::max) return {std::max(a.low, b.low), std::max(a.high, b.high)};
    if (b.low > 0) {
        const auto divide = [](std::int64_t x, std::int64_t y) {
            return bounded(x) ? floor_quotient(x, y) : x;
        };
        return {a.low >= 0 ? (bounded(b.high) ? divide(a.low, b.high) : 0) : divide(a.low, b.low),
                a.high >= 0 ? divide(a.high, b.low) : (bounded(b.high) ? divide(a.high, b.high) : -1)};
    }
    return {};
}

namespace {

// The atom of a term that is floordiv(x, c) with a constant c > 0, times a number; else null.
const Atom* single_floordiv(const Int::Term& t) {
    if (t.atoms.size() != 1 || t.atoms[0]->kind != Atom::Kind::floordiv) return nullptr;
    const Int& c = t.atoms[0]->b;
    return c.is_constant() && c.constant() > 0 ? t.atoms[0].get() : nullptr;
}

}  // namespace

IntRange Int::range() const {
    if (!terms_) return {constant_, constant_};
    const std::vector<Term>& terms = *terms_;
    // x - c * floordiv(x, c) stands for mod(x, c) and lies in [0, c): term by term the bounds would be lost.
    for (const Term& t : terms) {
        if (t.atoms.size() != 1 || t.atoms[0]->kind != Atom::Kind::floordiv || !t.atoms[0]->b.is_constant())
            continue;
        const Int& x = t.atoms[0]->a;
        const std::int64_t c = t.atoms[0]->b.constant();
        if (c <= 0 || t.factor % c != 0 || x.is_constant()) continue;
        const std::int64_t multiple = minus(t.factor) / c;
        const bool whole =
            multiple != 0 && std::all_of(x.terms().begin(), x.terms().end(), [&](const Term& inner) {
                return std::any_of(terms.begin(), terms.end(), [&](const Term& mine) {
                    return mine.factor == times(inner.factor, multiple) &&
                           compare(mine.atoms, inner.atoms) == 0;
                });
            });
        if (!whole) continue;
        IntBuilder rest(*this);
        rest.add(x, minus(multiple));
        rest.add(minus(t.factor), t.atoms);
        return add(std::move(rest).done().range(), multiply({0, c - 1}, {multiple, multiple}));
    }
    // floordiv(x, d) - c * floordiv(x, d * c) is mod(floordiv(x, d), c).
    for (const Term& t : terms) {
        const Atom* outer = single_floordiv(t);
        if (!outer) continue;
        for (const Term& s : terms) {
            const Atom* inner = single_floordiv(s);
            if (!inner || inner == outer || outer->b.constant() % inner->b.constant() != 0) continue;
            const std::int64_t c = outer->b.constant() / inner->b.constant();
            if (t.factor != minus(times(s.factor, c)) || !(inner->a == outer->a)) continue;
            IntBuilder rest(*this);
            rest.add(minus(t.factor), t.atoms);
            rest.add(minus(s.factor), s.atoms);
            return add(std::move(rest).done().range(), multiply({0, c - 1}, {s.factor, s.factor}));
        }
    }
    IntRange r{constant_, constant_};
    for (const Term& t : terms) {
        IntRange p{t.factor, t.factor};
        for (const AtomPtr& atom : t.atoms) p = multiply(p, atom->range);
        r = add(r, p);
    }
    return r;
}

// x / g rounded down, where what x has besides multiples of g is from 0 to g - 1.
static std::optional<Int> in_multiples_of(std::int64_t g, const Int& x) {
    IntBuilder multiples;
    for (const Int::Term& t : x.terms())
        if (t.factor % g == 0) multiples.add(t.factor / g, t.atoms);
    multiples.add(floor_quotient(x.constant_term(), g));
    const Int whole = std::move(multiples).done();
    const IntRange beside = (x - whole * g).range();
    return g > 1 && beside.low >= 0 && beside.high < g ? std::optional(whole) : std::nullopt;
}

Int floordiv(const Int& a, const Int& b) {
    if (b.is(0)) return 0;  // as integers of every dtype; a call may bring a 0 that was a symbol before
    if (b.is(1)) return a;
    if (a.is_constant() && b.is_constant()) return floor_quotient(a.constant(), b.constant());
    if (a == b) return 1;
    IntBuilder whole, left_over;
    if (b.is_constant() && b.constant() > 0) {
        const std::int64_t c = b.constant();
        for (const Int::Term& t : a.terms()) {
            const std::int64_t q = floor_quotient(t.factor, c);
            // Whole multiples leave; a factor like 30 over 28 keeps 2 inside so that ranges stay small.
            if (t.factor % c == 0)
                whole.add(q, t.atoms);
            else
                left_over.add(t.factor, t.atoms);
        }
        const std::int64_t q = floor_quotient(a.constant_term(), c);
        whole.add(q);
        left_over.add(plus(a.constant_term(), minus(times(q, c))));
        Int quotient = std::move(whole).done();
        const Int rest = std::move(left_over).done();
        const IntRange r = rest.range();
        if (r.low >= 0 && r.high < c) return quotient;
        // floordiv(floordiv(x, m), c) = floordiv(x, m * c)
        if (const AtomPtr inner = rest.as_atom(); inner && inner->kind == Atom::Kind::floordiv &&
                                                  inner->b.is_constant() && inner->b.constant() > 0 &&
                                                  inner->b.constant() <= IntRange::highest / c)
            return quotient + floordiv(inner->a, times(inner->b.constant(), c));
        for (const Int::Term& t : rest.terms())
            if (const std::optional<Int> coarse = in_multiples_of(std::gcd(t.factor, c), rest))
                return quotient + floordiv(*coarse, c / std::gcd(t.factor, c));
        return quotient + IntBuilder::of(Atom::Kind::floordiv, rest, b);
    }
    // A symbolic divisor that is one monomial: take out the terms that contain it. It is positive here: a
    // divisor must not be 0.
    if (b.terms().size() == 1 && b.constant_term() == 0 && b.non_negative()) {
        const Int::Term& d = b.terms()[0];
        for (const Int::Term& t : a.terms()) {
            std::vector<AtomPtr> left(t.atoms.begin(), t.atoms.end());
            bool divides = is_multiple(t.factor, d.factor);
            for (const AtomPtr& atom : d.atoms) {
                const auto at = std::find_if(left.begin(), left.end(),
                                             [&](const AtomPtr& x) { return compare(x, atom) == 0; });
                if (at == left.end()) {
                    divides = false;
                    break;
                }
                left.erase(at);
            }
            if (divides)
                whole.add(floor_quotient(t.factor, d.factor), left);
            else
                left_over.add(t.factor, t.atoms);
        }
        left_over.add(a.constant_term());
        Int quotient = std::move(whole).done();
        const Int rest = std::move(left_over).done();
        if (rest.is(0) || (rest.non_negative() && (b - rest).range().low > 0)) return quotient;
        return quotient + IntBuilder::of(Atom::Kind::floordiv, rest, b);
    }
    return IntBuilder::of(Atom::Kind::floordiv, a, b);
}

Int mod(const Int& a, const Int& b) { return a - b * floordiv(a, b); }
Int ceildiv(const Int& a, const Int& b) { return floordiv(a + b - 1, b); }

Int min(const Int& a, const Int& b) {
    const IntRange difference = (a - b).range();
    if (difference.high <= 0) return a;
    if (difference.low >= 0) return b;
    return a < b ? IntBuilder::of(Atom::Kind::min, a, b) : IntBuilder::of(Atom::Kind::min, b, a);
}

Int max(const Int& a, const Int& b) {
    const IntRange difference = (a - b).range();
    if (difference.low >= 0) return a;
    if (difference.high <= 0) return b;
    return a < b ? IntBuilder::of(Atom::Kind::max, a, b) : IntBuilder::of(Atom::Kind::max, b, a);
}

namespace {

bool mentions_any(const Int& x, const Substitution& symbols);

bool mentions_any(const Int::Term& t, const Substitution& symbols) {
    return std::any_of(t.atoms.begin(), t.atoms.end(), [&](const AtomPtr& a) {
        if (a->kind == Atom::Kind::symbol) return symbols.contains(a->id);
        const auto least = symbols.lower_bound(a->first);
        if (least == symbols.end() || least->first > a->last) return false;
        return mentions_any(a->a, symbols) || mentions_any(a->b, symbols);
    });
}

bool mentions_any(const Int& x, const Substitution& symbols) {
    return std::any_of(x.terms().begin(), x.terms().end(),
                       [&](const Int::Term& t) { return mentions_any(t, symbols); });
}

// Formulas within formulas share parts: without these, walks would take exponential time. Most are flat.
using Rebuilt = std::unordered_map<const Atom*, Int>;
constexpr int flat = 2;

// `stays` tells of terms that no leaf changes.
template <class Leaf, class Stays>
Int rebuild(const Int& x, const Leaf& leaf, const Stays& stays, Rebuilt& done, int depth = 0) {
    IntBuilder r;
    std::int64_t number = 0;  // what is a number by now, as IntTable adds it up
    for (const Int::Term& t : x.terms()) {
        if (stays(t)) {
            r.add(t.factor, t.atoms);
            continue;
        }
        Int product = 1;
        for (const AtomPtr& a : t.atoms) {
            if (a->kind == Atom::Kind::symbol) {
                product = product * leaf(a);
                continue;
            }
            const auto known = depth < flat ? done.end() : done.find(a.get());
            if (known != done.end()) {
                product = product * known->second;
                continue;
            }
            const Int left = rebuild(a->a, leaf, stays, done, depth + 1),
                      right = rebuild(a->b, leaf, stays, done, depth + 1);
            const bool stays_block = is_block(*a) && left.terms().size() > most_terms && left.non_negative();
            const Int now = stays_block                       ? block_of(left)
                            : a->kind == Atom::Kind::floordiv ? floordiv(left, right)
                            : a->kind == Atom::Kind::min      ? min(left, right)
                                                              : max(left, right);
            if (depth >= flat) done.emplace(a.get(), now);
            product = product * now;
        }
        product = product * t.factor;
        if (product.is_constant())
            number = saturated::sum(number, product.constant());
        else
            r.add(product, 1);
    }
    return std::move(r).done() + saturated::sum(number, x.constant_term());
}

}  // namespace

Int substitute(const Int& x, const Substitution& with) {
    if (!depends_on_any(x, with)) return x;
    Rebuilt done;
    return rebuild(
        x,
        [&](const AtomPtr& a) {
            const auto at = with.find(a->id);
            return at == with.end() ? IntBuilder::of(a) : at->second;
        },
        [&](const Int::Term& t) { return !mentions_any(t, with); }, done);
}

bool depends_on_any(const Int& x, const Substitution& symbols) { return mentions_any(x, symbols); }

std::int64_t evaluate(const Int& x, const std::map<std::uint64_t, std::int64_t>& values) {
    Rebuilt done;
    return rebuild(
               x,
               [&](const AtomPtr& a) {
                   const auto at = values.find(a->id);
                   BITALE_CHECK(at != values.end(), "no value for the symbol " + a->name);
                   return Int(at->second);
               },
               [](const Int::Term&) { return false; }, done)
        .constant();
}

}  // namespace bitale
