#include "codegen/print/indices.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace bitale {

namespace {

constexpr std::int64_t most = INT32_MAX, most_of_variable = 1 << 30;

bool within(const IntRange& r, std::int64_t limit) { return r.low >= -limit && r.high <= limit; }

std::int64_t magnitude(const IntRange& r) { return std::max(std::abs(r.low), std::abs(r.high)); }

std::int64_t product(std::int64_t a, std::int64_t b) {
    return a != 0 && b > most / a ? most + 1 : a * b;  // beyond `most`, how far does not matter
}

std::string constant(std::int64_t x) { return x < 0 ? "(" + std::to_string(x) + ")" : std::to_string(x); }

}  // namespace

void Indices::bind(const Int& symbol, const std::string& name) {
    if (const std::uint64_t id = symbol.symbol_id()) names_[id] = name;
}

void Indices::bind_scalar(const Int& symbol, const std::string& name) {
    if (const std::uint64_t id = symbol.symbol_id()) scalars_[id] = name;
}

const char* Indices::type_of(const Int& variable) const {
    return narrow_ && within(variable.range(), most_of_variable) ? "i32" : "i64";
}

const char* Indices::type_of_size(std::size_t size) const {
    return narrow_ && within(sizes_[size].range(), most) ? "i32" : "i64";
}

bool Indices::fits(const Atom& a) const {
    if (a.kind == Atom::Kind::symbol) return !scalars_.contains(a.id) && within(a.range, most_of_variable);
    return within(Int::from(std::make_shared<Atom>(a)).range(), most) &&
           (host_only(a) || (fits(a.a) && fits(a.b)));
}

// No partial sum or product leaves the 32 bits, in whatever order they are taken.
bool Indices::fits(const Int& x) const {
    if (!narrow_ || std::abs(x.constant_term()) > most) return false;
    std::int64_t sum = std::abs(x.constant_term());
    for (const Int::Term& t : x.terms()) {
        if (std::abs(t.factor) > most) return false;
        std::int64_t term = std::abs(t.factor);
        for (const AtomPtr& a : t.atoms) {
            if (!fits(*a)) return false;
            term = product(term, magnitude(Int::from(a).range()));
        }
        if (term > most || sum + term > most) return false;
        sum += term;
    }
    return true;
}

bool Indices::host_only(const Atom& a) const {
    if (a.kind == Atom::Kind::symbol) return !names_.contains(a.id) && !scalars_.contains(a.id);
    const auto least = names_.lower_bound(a.first);
    if (least == names_.end() || least->first > a.last) return true;
    for (const Int* x : {&a.a, &a.b})
        for (const AtomPtr& s : symbols_of(*x))
            if (names_.contains(s->id)) return false;
    return true;
}

std::string Indices::size(const Int& x) {
    const auto [at, fresh] = number_of_size_.try_emplace(x, sizes_.size());
    if (fresh) sizes_.push_back(x);
    return "s" + std::to_string(at->second);
}

std::string Indices::text(const Int& x) { return text(x, narrow_ && !fits(x)); }

// The variables of a term; `factor` gets what the host knows of it.
std::string Indices::factors(const Int::Term& term, Int& factor, bool wide) {
    std::string s;
    for (const AtomPtr& a : term.atoms) {
        if (host_only(*a)) {
            factor = factor * Int::from(a);
            continue;
        }
        s += (s.empty() ? "" : " * ") + std::string(wide && fits(*a) ? "(i64)" : "") + atom(*a);
    }
    return s;
}

// Terms with the same variables are one product: of a row of many parts, the stride is one number.
std::string Indices::text(const Int& x, bool wide) {
    std::vector<std::string> products;
    std::map<std::string, std::vector<Int>> factors_of;
    std::vector<Int> moving;  // x without these is the host's
    for (const Int::Term& t : x.terms()) {
        Int factor = t.factor;
        const std::string variables = factors(t, factor, wide);
        if (variables.empty()) continue;
        Int term = t.factor;
        for (const AtomPtr& a : t.atoms) term = term * Int::from(a);
        moving.push_back(std::move(term));
        std::vector<Int>& same = factors_of[variables];
        if (same.empty()) products.push_back(variables);
        same.push_back(std::move(factor));
    }
    std::string s;
    for (const std::string& variables : products) {
        const Int factor = total_of(std::move(factors_of[variables]));
        if (!s.empty()) s += " + ";
        const auto hidden =
            factor.is_constant() ? hidden_.find({variables, factor.constant()}) : hidden_.end();
        if (hidden != hidden_.end())
            s += hidden->second + " * ";
        else if (!factor.is(1))
            s += (factor.is_constant() ? constant(factor.constant()) : size(factor)) + " * ";
        s += variables;
    }
    const Int host = x - total_of(std::move(moving));
    const bool bare = s.empty();
    if (!host.is(0) || bare)
        s += (bare ? "" : " + ") + (host.is_constant() ? constant(host.constant()) : size(host));
    const bool one_atom = !bare && host.is(0) && x.terms().size() == 1 && x.terms()[0].atoms.size() == 1 &&
                          x.terms()[0].factor == 1 && !wide;
    return one_atom || s.find(' ') == std::string::npos ? s : "(" + s + ")";
}

std::string Indices::atom(const Atom& a) {
    if (a.kind == Atom::Kind::symbol) {
        const auto name = names_.find(a.id);
        return name != names_.end() ? name->second : scalars_.at(a.id);
    }
    const bool wide = narrow_ && !(fits(a.a) && fits(a.b));
    const std::string x = text(a.a, wide), y = text(a.b, wide);
    if (a.kind == Atom::Kind::floordiv) {
        const std::string type = wide || !narrow_ ? "i64" : "i32", cast = "(" + type + ")";
        const bool plain = a.a.non_negative() && a.b.range().low > 0;
        const std::string text = plain ? x + " / " + y : "b_floordiv(" + cast + x + ", " + cast + y + ")";
        return plain && !narrow_ ? "(" + text + ")" : remember_(type, text);
    }
    const std::string compare = a.kind == Atom::Kind::min ? " < " : " > ";
    return "(" + x + compare + y + " ? " + x + " : " + y + ")";
}

void Indices::settle(const std::vector<Guard>& guards, const std::function<std::string(std::string)>& name) {
    const std::string text = condition(guards);
    if (text.find('&') != std::string::npos) settled_.emplace_back(guards, name(text));
}

std::string Indices::condition(const std::vector<Guard>& guards) {
    std::string s;
    const auto contains = [](const std::vector<Guard>& all, const Guard& g) {
        return std::find(all.begin(), all.end(), g) != all.end();
    };
    const std::vector<Guard>* settled = nullptr;
    for (const auto& [known, name] : settled_) {
        const bool has_all =
            std::all_of(known.begin(), known.end(), [&](const Guard& g) { return contains(guards, g); });
        if (!has_all || (settled && settled->size() >= known.size())) continue;
        settled = &known;
        s = "(" + name + " != 0)";
    }
    for (const Guard& g : guards) {
        if (settled && contains(*settled, g)) continue;
        const bool low = (g.value - g.low).range().low < 0, high = (g.high - g.value).range().low <= 0;
        if (low) s += (s.empty() ? "" : " & ") + ("(" + text(g.value - g.low) + " >= 0)");
        if (high) s += (s.empty() ? "" : " & ") + ("(" + text(g.value) + " < " + text(g.high) + ")");
    }
    return s.empty() ? "true" : s;
}

}  // namespace bitale
