#include "codegen/nest/walk.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace bitale {

namespace {

using Seen = std::unordered_set<const ScalarNode*>;
using Rebuilt = std::unordered_map<const ScalarNode*, Scalar>;
using Pairs = std::set<std::pair<const ScalarNode*, const ScalarNode*>>;

template <class F>
bool any(const ScalarNode* s, Seen& seen, const F& f) {
    if (!s || !seen.insert(s).second) return false;
    for (const Scalar& a : s->arguments)
        if (any(a.get(), seen, f)) return true;
    return any(s->otherwise.get(), seen, f) || f(*s);
}

template <class F>
void each(const Scalar& s, Seen& seen, const F& f) {
    any(s.get(), seen, [&](const ScalarNode& part) {
        f(part);
        return false;
    });
}

template <class F>
Scalar rebuilt(const Scalar& s, const F& f, Rebuilt& done) {
    if (!s) return s;
    if (const auto at = done.find(s.get()); at != done.end()) return at->second;
    auto r = std::make_shared<ScalarNode>(*s);
    bool whole = true;
    if (s->otherwise) whole = (r->otherwise = rebuilt(s->otherwise, f, done)) != nullptr;
    for (Scalar& a : r->arguments) {
        if (!whole) break;
        a = rebuilt(a, f, done);
        whole = a != nullptr;
    }
    return done[s.get()] = whole ? f(std::move(r)) : nullptr;
}

bool same(const Scalar& a, const Scalar& b, Pairs& known) {
    if (a == b) return true;
    if (!a || !b) return false;
    if (known.contains({a.get(), b.get()})) return true;
    const bool r =
        a->kind == b->kind && a->dtype == b->dtype && a->op == b->op && a->operand == b->operand &&
        a->integer == b->integer && a->number == b->number && a->index == b->index && a->at == b->at &&
        a->guards == b->guards && same(a->otherwise, b->otherwise, known) &&
        std::equal(a->arguments.begin(), a->arguments.end(), b->arguments.begin(), b->arguments.end(),
                   [&](const Scalar& x, const Scalar& y) { return same(x, y, known); });
    if (r) known.insert({a.get(), b.get()});
    return r;
}

}  // namespace

void for_each_part(const Scalar& scalar, const std::function<void(const ScalarNode&)>& f) {
    Seen seen;
    each(scalar, seen, f);
}

void for_each_part(const Nest& nest, const std::function<void(const ScalarNode&)>& f) {
    Seen seen;
    for (const Let& let : nest.lets) each(let.value, seen, f);
    each(nest.body, seen, f);
}

bool any_part(const Scalar& scalar, const std::function<bool(const ScalarNode&)>& f) {
    Seen seen;
    return any(scalar.get(), seen, f);
}

void for_each_read(const Nest& nest, const std::function<void(const ScalarNode&)>& f) {
    for_each_part(nest, [&](const ScalarNode& s) {
        if (s.kind == ScalarNode::Kind::read) f(s);
    });
}

void for_each_read(const Scalar& scalar, const std::function<void(const ScalarNode&)>& f) {
    for_each_part(scalar, [&](const ScalarNode& s) {
        if (s.kind == ScalarNode::Kind::read) f(s);
    });
}

void for_each_index(const Scalar& scalar, const std::function<void(const Int&)>& f) {
    for_each_part(scalar, [&](const ScalarNode& s) {
        if (s.kind == ScalarNode::Kind::index) f(s.index);
    });
}

Scalar rebuild(const Scalar& scalar, const std::function<Scalar(std::shared_ptr<ScalarNode>)>& f) {
    Rebuilt done;
    return rebuilt(scalar, f, done);
}

Nest rebuild(const Nest& nest, const std::function<Scalar(std::shared_ptr<ScalarNode>)>& f) {
    Rebuilt done;
    Nest r = nest;
    for (Let& let : r.lets) let.value = rebuilt(let.value, f, done);
    r.body = rebuilt(r.body, f, done);
    return r;
}

Nest map_reads(const Nest& nest, const std::function<Scalar(const Scalar&)>& f) {
    return rebuild(nest, [&](const std::shared_ptr<ScalarNode>& s) -> Scalar {
        return s->kind == ScalarNode::Kind::read ? f(s) : Scalar(s);
    });
}

bool depends_on(const Guard& guard, std::uint64_t symbol_id) {
    return depends_on(guard.value, symbol_id) || depends_on(guard.low, symbol_id) ||
           depends_on(guard.high, symbol_id);
}

bool depends_on(const Scalar& scalar, std::uint64_t symbol_id) {
    return scalar && depends_on(*scalar, symbol_id);
}

bool depends_on(const ScalarNode& scalar, std::uint64_t symbol_id) {
    const auto in = [&](const auto& x) { return depends_on(x, symbol_id); };
    Seen seen;
    return any(&scalar, seen, [&](const ScalarNode& s) {
        return in(s.index) || std::any_of(s.at.begin(), s.at.end(), in) ||
               std::any_of(s.guards.begin(), s.guards.end(), in);
    });
}

bool same_scalars(const Scalar& a, const Scalar& b) {
    Pairs known;
    return same(a, b, known);
}

bool is_positive_zero(const Scalar& scalar) { return is_zero(scalar) && !std::signbit(scalar->number); }

bool is_zero(const Scalar& scalar) {
    return scalar->kind == ScalarNode::Kind::constant && scalar->number == 0 && scalar->integer == 0;
}

}  // namespace bitale
