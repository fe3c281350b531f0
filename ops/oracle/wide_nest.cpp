#include "ops/oracle/wide_nest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "ops/oracle/wide_order.h"
#include "ops/oracle/wide_scalar.h"

namespace bitale {

namespace {

using Numbers = std::vector<std::int64_t>;
using Mask = std::vector<char>;

std::int64_t quotient(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// What has been combined for one element of the result.
struct Total {
    long double value = 0, error = 0, magnitude = 0, highest = 0, lowest = 0, chosen_error = 0;
    long double in_order = 0;  // of a sum, one term after the other, each addition rounded as the device does
    std::uint64_t whole = 0;
    std::int64_t count = 0, position = -1;
    bool unsure = false;
};

class Run {
  public:
    Run(const Nest& nest, const std::vector<WidePtr>& operands) : nest_(nest), operands_(operands) {
        loops_ = nest.parallel;
        loops_.insert(loops_.end(), nest.reduced.begin(), nest.reduced.end());
        result_.dtype = nest.dtype;
        for (const Loop& loop : loops_) lengths_.push_back(loop.extent.constant());
        result_.shape.assign(lengths_.begin(),
                             lengths_.begin() + static_cast<std::ptrdiff_t>(nest.parallel.size()));
        at_.assign(lengths_.size(), 0);
    }

    WidePtr operator()() {
        const auto size = static_cast<std::size_t>(count_of(result_.shape));
        result_.values.resize(size);
        reduced_ = 1;
        for (std::size_t i = nest_.parallel.size(); i < lengths_.size(); ++i) reduced_ *= lengths_[i];
        if (const std::optional<std::size_t> place = place_of_prefix()) {
            prefixes(*place);
            return std::make_shared<const WideValue>(std::move(result_));
        }
        if (nest_.combine != Combine::none) totals_.assign(size, start());
        const std::int64_t points = static_cast<std::int64_t>(size) * reduced_;
        for (std::int64_t first = 0; first < points; first += at_once)
            batch(first, static_cast<std::size_t>(std::min(at_once, points - first)));
        for (std::size_t i = 0; i < totals_.size(); ++i) finish(i, totals_[i]);
        return std::make_shared<const WideValue>(std::move(result_));
    }

  private:
    static constexpr std::int64_t at_once = 4096;

    bool picks() const { return nest_.combine == Combine::argmax || nest_.combine == Combine::argmin; }
    bool greatest() const { return nest_.combine == Combine::max || nest_.combine == Combine::argmax; }

    Total start() const {
        Total t;
        if (nest_.combine == Combine::max && is_float(nest_.accumulator)) t.value = -wide_infinity;
        const bool one = nest_.combine == Combine::prod || nest_.combine == Combine::all;
        t.value = one ? 1 : 0;
        t.magnitude = t.value;
        t.whole = one ? 1 : 0;
        return t;
    }

    void batch(std::int64_t first, std::size_t count) {
        count_ = count;
        columns_.clear();
        symbols_.clear();
        unsure_.clear();
        std::vector<Numbers> numbers(loops_.size(), Numbers(count));
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t l = 0; l < loops_.size(); ++l) numbers[l][i] = at_[l];
            for (std::size_t l = loops_.size(); l-- > 0;) {
                if (++at_[l] < lengths_[l]) break;
                at_[l] = 0;
            }
        }
        for (std::size_t l = 0; l < loops_.size(); ++l)
            if (const std::uint64_t id = loops_[l].variable.symbol_id()) symbols_[id] = std::move(numbers[l]);
        // What is not visited may lie outside of the operands.
        visited_.assign(count, 1);
        visited_ = hold(nest_.guards);
        for (const Let& let : nest_.lets) {
            const Column x = scalar(*let.value);
            const Numbers extents = index(let.extent);
            Numbers chosen(count);
            for (std::size_t i = 0; i < count; ++i) {
                const auto high = static_cast<long double>(std::max<std::int64_t>(extents[i] - 1, 0));
                chosen[i] = static_cast<std::int64_t>(std::clamp<long double>(x.values[i], 0, high));
                if (x.error(i) == 0) continue;
                unsure_.resize(count);
                unsure_[i] = 1;
            }
            symbols_[let.symbol.symbol_id()] = std::move(chosen);
        }
        const bool affine = nest_.combine == Combine::affine;
        Column body = scalar(affine ? *nest_.body->arguments[1] : *nest_.body);
        const Column factor = affine ? scalar(*nest_.body->arguments[0]) : Column();
        if (!unsure_.empty()) {
            body.errors.resize(count);
            for (std::size_t i = 0; i < count; ++i)
                if (unsure_[i]) body.errors[i] = wide_infinity;
        }
        for (std::size_t i = 0; i < count; ++i) {
            const auto point = static_cast<std::size_t>(first) + i;
            if (nest_.combine == Combine::none)
                store(point, body.values[i], body.error(i));
            else if (visited_[i] && affine)
                add_affine(totals_[point / static_cast<std::size_t>(reduced_)], factor.values[i],
                           factor.error(i), body.values[i], body.error(i));
            else if (visited_[i])
                add(totals_[point / static_cast<std::size_t>(reduced_)],
                    static_cast<std::int64_t>(point % static_cast<std::size_t>(reduced_)), body.values[i],
                    body.error(i));
        }
    }

    void store(std::size_t i, long double value, long double error) {
        result_.values[i] = value;
        if (error == 0) return;
        if (result_.errors.empty()) result_.errors.resize(result_.values.size());
        result_.errors[i] = error;
    }

    // ---- prefixes

    // The loop over results that says only how many terms are visited: its places share their terms.
    std::optional<std::size_t> place_of_prefix() const {
        if (nest_.combine == Combine::none || picks() || nest_.reduced.size() != 1 ||
            nest_.guards.size() != 1 || !nest_.lets.empty())
            return {};
        const Guard& guard = nest_.guards[0];
        if (!(guard.value == nest_.reduced[0].variable) || !guard.low.is(0)) return {};
        std::optional<std::size_t> place;
        for (std::size_t i = 0; i < loops_.size(); ++i) {
            const std::uint64_t id = loops_[i].variable.symbol_id();
            if (!id || !depends_on(guard.high, id)) continue;
            if (place || i == nest_.parallel.size() || depends_on(*nest_.body, id)) return {};
            place = i;
        }
        return place;
    }

    static bool depends_on(const Int& x, std::uint64_t id) { return bitale::depends_on(x, id); }
    static bool depends_on(const ScalarNode& s, std::uint64_t id) {
        const auto in_index = [&](const Int& x) { return depends_on(x, id); };
        const auto in_guard = [&](const Guard& g) {
            return in_index(g.value) || in_index(g.low) || in_index(g.high);
        };
        const auto in_scalar = [&](const Scalar& a) { return depends_on(*a, id); };
        return in_index(s.index) || std::any_of(s.at.begin(), s.at.end(), in_index) ||
               std::any_of(s.guards.begin(), s.guards.end(), in_guard) ||
               std::any_of(s.arguments.begin(), s.arguments.end(), in_scalar) ||
               (s.otherwise && in_scalar(s.otherwise));
    }

    // Evaluates each term once, and keeps the total from place to place:
    //     for results at the first place:
    //         for term in order: finish the places that end before it; add
    void prefixes(std::size_t place) {
        const auto n = static_cast<std::size_t>(lengths_.back()),
                   places = static_cast<std::size_t>(lengths_[place]);
        count_ = places;
        Numbers& here = symbols_[loops_[place].variable.symbol_id()];
        for (std::size_t i = 0; i < places; ++i) here.push_back(static_cast<std::int64_t>(i));
        const Numbers ends = index(nest_.guards[0].high);
        std::vector<std::vector<std::size_t>> ending(n + 1);
        for (std::size_t i = 0; i < places; ++i) {
            const std::int64_t end = std::clamp<std::int64_t>(ends[i], 0, static_cast<std::int64_t>(n));
            ending[static_cast<std::size_t>(end)].push_back(i);
        }
        std::int64_t most = static_cast<std::int64_t>(n);
        while (most > 0 && ending[static_cast<std::size_t>(most)].empty()) --most;

        Nest terms = nest_;
        terms.parallel[place] = nest_.reduced[0];
        terms.reduced.clear();
        terms.combine = Combine::none;
        terms.guards = {Guard{nest_.reduced[0].variable, 0, most}};
        const bool affine = nest_.combine == Combine::affine;
        const auto evaluated = [&](const Scalar& body) {
            terms.body = body;
            return Run(terms, operands_)();
        };
        const WidePtr values = evaluated(affine ? nest_.body->arguments[1] : nest_.body);
        const WidePtr factors = affine ? evaluated(nest_.body->arguments[0]) : nullptr;

        std::size_t outer = 1, inner = 1;
        for (std::size_t i = 0; i < nest_.parallel.size(); ++i)
            if (i != place) (i < place ? outer : inner) *= static_cast<std::size_t>(lengths_[i]);
        for (std::size_t o = 0; o < outer; ++o)
            for (std::size_t j = 0; j < inner; ++j) {
                Total total = start();
                for (std::size_t k = 0; k <= n; ++k) {
                    for (const std::size_t i : ending[k]) finish((o * places + i) * inner + j, total);
                    if (k == n) break;
                    const std::size_t at = (o * n + k) * inner + j;
                    if (affine)
                        add_affine(total, factors->values[at], factors->error(at), values->values[at],
                                   values->error(at));
                    else
                        add(total, static_cast<std::int64_t>(k), values->values[at], values->error(at));
                }
            }
    }

    // ---- reductions

    void add(Total& t, std::int64_t position, long double x, long double e) const {
        ++t.count;
        switch (nest_.combine) {
            case Combine::sum:
                t.value += x;
                t.error += e;
                t.magnitude += std::fabs(x);
                if (is_float(nest_.accumulator))
                    t.in_order = rounded_to_accumulator(t.in_order + x);
                else
                    t.whole += bits(x);
                return;
            case Combine::prod:
                t.value *= x;
                t.magnitude *= std::fabs(x) + e;
                t.unsure |= e > 0;
                if (!is_float(nest_.accumulator)) t.whole *= bits(x);
                return;
            case Combine::any:
            case Combine::all: {
                const bool decides = (x != 0) == (nest_.combine == Combine::any);
                if (decides) t.value = nest_.combine == Combine::any ? 1 : 0;
                if (decides && e == 0) t.position = 0;  // whatever the others are
                t.unsure |= e > 0;
                return;
            }
            default: break;
        }
        const bool first = t.position < 0;
        const bool better =
            first || (!std::isnan(t.value) && (std::isnan(x) || (greatest() ? x > t.value : x < t.value)));
        // The range in which the extreme is, and whether more than one may be it.
        const long double low = x - e, high = x + e;
        if (first) {
            t.lowest = low, t.highest = high;
        } else {
            const long double margin = greatest() ? high - t.lowest : t.highest - low;
            if (margin >= 0 && (e > 0 || t.error > 0)) t.unsure = true;
            t.lowest = greatest() ? std::max(t.lowest, low) : std::min(t.lowest, low);
            t.highest = greatest() ? std::max(t.highest, high) : std::min(t.highest, high);
        }
        t.error = std::max(t.error, e);
        if (!better) return;
        t.value = x;
        t.position = position;
        t.chosen_error = e;
    }

    // a * total + b, both operations rounded.
    void add_affine(Total& t, long double a, long double a_error, long double b, long double b_error) const {
        const Rounding rounding = rounding_of(nest_.accumulator);
        const long double product = t.value * a, value = product + b;
        t.error = t.error * (std::fabs(a) + a_error) + std::fabs(t.value) * a_error + b_error;
        if (t.count++ > 0)
            t.error += rounding.unit * (std::fabs(product) + std::fabs(value)) + 2 * rounding.least;
        t.magnitude = std::max({t.magnitude, std::fabs(product), std::fabs(value)});
        t.value = value;
    }

    long double rounded_to_accumulator(long double x) const {
        return nest_.accumulator == DType::float64 ? static_cast<long double>(static_cast<double>(x))
                                                   : static_cast<long double>(static_cast<float>(x));
    }

    static std::uint64_t bits(long double x) {
        return x < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(x))
                     : static_cast<std::uint64_t>(x);
    }

    long double of_bits(std::uint64_t whole) const {
        return is_unsigned_integer(nest_.accumulator)
                   ? static_cast<long double>(whole)
                   : static_cast<long double>(static_cast<std::int64_t>(whole));
    }

    void finish(std::size_t i, const Total& t) {
        Column x;
        x.values = {t.value};
        x.errors = {0};
        long double& error = x.errors[0];
        const bool real = is_float(nest_.accumulator);
        const Rounding rounding = rounding_of(nest_.accumulator);
        const auto n = static_cast<long double>(t.count);
        switch (nest_.combine) {
            case Combine::sum:
            case Combine::prod: {
                const bool sum = nest_.combine == Combine::sum;
                if (!real) {
                    x.values = {of_bits(t.whole)};
                    error = sum ? t.error : t.unsure ? wide_infinity : 0;
                    break;
                }
                // Errors of a sum are as often of one sign as of the other, unless many terms are alike: to
                // these, for as long as the total has one exponent, an addition does the same again and
                // again.
                const long double share = sum ? 4 + 2 * std::sqrt(n) : n,
                                  drift = std::fabs(t.in_order - t.value);
                if (sum)
                    error =
                        t.error + (t.count > 1 ? std::max(share * rounding.unit * t.magnitude, drift) : 0);
                else
                    error = t.magnitude - std::fabs(t.value) +
                            (t.count > 1 ? 2 * share * rounding.unit * t.magnitude : 0);
                if (t.count > 1) error += n * rounding.least;
                if (!std::isfinite(t.value))
                    error = t.error > 0 || t.unsure ? wide_infinity : 0;
                else if (std::isnan(error) || t.magnitude > rounding.most)
                    error = wide_infinity;
                break;
            }
            case Combine::affine:
                error = t.error;
                if (!std::isfinite(t.value))
                    error = t.error > 0 ? wide_infinity : 0;
                else if (std::isnan(error) || t.magnitude > rounding.most)
                    error = wide_infinity;
                break;
            case Combine::any:
            case Combine::all: error = t.unsure && t.position != 0 ? 1 : 0; break;
            default:
                if (picks()) {
                    x.values = {static_cast<long double>(t.position)};
                    error = t.unsure ? wide_infinity : 0;
                } else if (std::isfinite(t.value)) {
                    error = std::max(t.highest - t.value, t.value - t.lowest);
                } else {
                    error = t.error > 0 ? wide_infinity : 0;
                }
        }
        const DType from = picks() ? DType::int64 : nest_.accumulator;
        const Column r = WideScalars::cast(nest_.dtype, from, x);
        store(i, r.values[0], r.error(0));
    }

    // ---- scalars

    const Column& scalar(const ScalarNode& s) {
        if (const auto at = columns_.find(&s); at != columns_.end()) return at->second;
        Column c = fresh(s);
        return columns_.emplace(&s, std::move(c)).first->second;
    }

    Column fresh(const ScalarNode& s) {
        Column c;
        switch (s.kind) {
            case ScalarNode::Kind::constant: {
                const long double x =
                    !is_float(s.dtype)
                        ? wrapped_to(s.dtype, DType::int64, static_cast<long double>(s.integer))
                    : s.dtype == DType::float32 ? static_cast<long double>(static_cast<float>(s.number))
                                                : static_cast<long double>(s.number);
                c.values.assign(count_, x);
                return c;
            }
            case ScalarNode::Kind::index: {
                const Numbers numbers = index(s.index);
                c.values.resize(count_);
                for (std::size_t i = 0; i < count_; ++i)
                    c.values[i] = wrapped_to(s.dtype, DType::int64, static_cast<long double>(numbers[i]));
                return c;
            }
            case ScalarNode::Kind::read: return read(s);
            case ScalarNode::Kind::cast:
                return WideScalars::cast(s.dtype, s.arguments[0]->dtype, scalar(*s.arguments[0]));
            case ScalarNode::Kind::select: {
                const Column &yes = scalar(*s.arguments[0]), &no = scalar(*s.otherwise);
                const Mask inside = hold(s.guards);
                c.values.resize(count_);
                if (!yes.errors.empty() || !no.errors.empty()) c.errors.resize(count_);
                for (std::size_t i = 0; i < count_; ++i) {
                    c.values[i] = inside[i] ? yes.values[i] : no.values[i];
                    if (!c.errors.empty()) c.errors[i] = inside[i] ? yes.error(i) : no.error(i);
                }
                return c;
            }
            case ScalarNode::Kind::apply: break;
        }
        std::vector<const Column*> arguments;
        for (const Scalar& a : s.arguments) scalar(*a);
        for (const Scalar& a : s.arguments) arguments.push_back(&scalar(*a));
        return scalars_.apply(s, arguments, count_);
    }

    Column read(const ScalarNode& s) {
        const WideValue& x = *operands_.at(static_cast<std::size_t>(s.operand.input()));
        Mask inside = hold(s.guards);
        const Column* outside = s.otherwise ? &scalar(*s.otherwise) : nullptr;
        Numbers linear(count_, 0);
        BITALE_CHECK(s.at.size() == x.shape.size(), "a read of the wrong rank");
        for (std::size_t axis = 0; axis < s.at.size(); ++axis) {
            const Numbers at = index(s.at[axis]);
            for (std::size_t i = 0; i < count_; ++i) {
                BITALE_CHECK(!inside[i] || !visited_[i] || (at[i] >= 0 && at[i] < x.shape[axis]),
                             "a read outside of its operand");
                linear[i] = linear[i] * x.shape[axis] + at[i];
            }
        }
        Column c;
        c.values.resize(count_);
        if (!x.errors.empty() || (outside && !outside->errors.empty())) c.errors.resize(count_);
        for (std::size_t i = 0; i < count_; ++i) {
            if (!visited_[i]) continue;
            const auto at = static_cast<std::size_t>(linear[i]);
            c.values[i] = inside[i] ? x.values[at] : outside->values[i];
            if (!c.errors.empty()) c.errors[i] = inside[i] ? x.error(at) : outside->error(i);
        }
        return c;
    }

    Mask hold(const std::vector<Guard>& guards) const {
        Mask mask(count_, 1);
        for (const Guard& g : guards) {
            const Numbers value = index(g.value), low = index(g.low), high = index(g.high);
            for (std::size_t i = 0; i < count_; ++i) mask[i] &= value[i] >= low[i] && value[i] < high[i];
        }
        return mask;
    }

    // ---- indices

    Numbers index(const Int& x) const {
        Numbers sum(count_, x.constant_term());
        for (const Int::Term& term : x.terms()) {
            if (term.atoms.size() == 1 && term.atoms[0]->kind == Atom::Kind::symbol) {
                const Numbers& v = symbols_.at(term.atoms[0]->id);
                for (std::size_t i = 0; i < count_; ++i) sum[i] += term.factor * v[i];
                continue;
            }
            Numbers product(count_, term.factor);
            for (const AtomPtr& a : term.atoms) {
                const Numbers v = atom(*a);
                for (std::size_t i = 0; i < count_; ++i) product[i] *= v[i];
            }
            for (std::size_t i = 0; i < count_; ++i) sum[i] += product[i];
        }
        return sum;
    }

    Numbers atom(const Atom& a) const {
        if (a.kind == Atom::Kind::symbol) return symbols_.at(a.id);
        Numbers x = index(a.a);
        const Numbers y = index(a.b);
        for (std::size_t i = 0; i < count_; ++i)
            x[i] = a.kind == Atom::Kind::floordiv ? quotient(x[i], y[i])
                   : a.kind == Atom::Kind::min    ? std::min(x[i], y[i])
                                                  : std::max(x[i], y[i]);
        return x;
    }

    const Nest& nest_;
    const std::vector<WidePtr>& operands_;
    std::vector<Loop> loops_;
    Dims lengths_, at_;
    std::int64_t reduced_ = 1;
    std::vector<Total> totals_;
    WideValue result_;
    WideScalars scalars_;
    // of the batch
    std::size_t count_ = 0;
    std::unordered_map<const ScalarNode*, Column> columns_;
    std::map<std::uint64_t, Numbers> symbols_;
    Mask visited_, unsure_;
};

}  // namespace

WidePtr run_wide(const Nest& nest, const std::vector<WidePtr>& operands) {
    if (!is_order(nest.combine)) return Run(nest, operands)();
    Nest keys = nest;
    keys.parallel.back() = nest.reduced[0];
    keys.reduced.clear();
    keys.combine = Combine::none;
    keys.dtype = nest.body->dtype;
    return std::make_shared<const WideValue>(wide_order(*Run(keys, operands)(),
                                                        nest.parallel.back().extent.constant(),
                                                        nest.combine == Combine::order_down, nest.dtype));
}

}  // namespace bitale
