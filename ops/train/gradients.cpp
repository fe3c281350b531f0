// Gradients as values: of a loss, of penalties, clipped, added up over calls.
#include "ops/train/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "graph/base/numbers.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "ops/autodiff/grad.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/promotion.h"
#include "ops/train/lazy_rows.h"

namespace bitale {

struct GradsAccess {
    using Entry = Grads::Entry;
    static Grads empty() { return {}; }
    static std::vector<Entry>& entries(Grads& g) { return g.entries_; }
    static const std::vector<Entry>& entries(const Grads& g, Where where) {
        g.mark_.refuse("Grads", where);
        return g.entries_;
    }
};

namespace {

using Entry = GradsAccess::Entry;

std::string made_at(const Shared& p) { return p.state()->where.line ? " at " + p.state()->where.text() : ""; }

// A parameter that is named twice, or two of one name, whose states could not be told apart in a file.
void require_distinct(const std::vector<Shared>& params, Where where) {
    std::map<std::string, Where> seen;
    std::set<const SharedState*> states;
    for (const Shared& p : params) {
        const std::string& name = p.name(where);
        if (!states.insert(p.state().get()).second)
            throw GraphError(where, "the parameter " + in_quotes(name) + made_at(p) + " is listed twice");
        if (name.empty()) continue;
        if (const auto [at, fresh] = seen.emplace(name, p.state()->where); !fresh)
            throw GraphError(where, "two parameters have the name " + in_quotes(name) + ", made at " +
                                        at->second.text() + " and at " + p.state()->where.text() +
                                        "; give each a name of its own");
    }
}

std::vector<Shared> parameters_of(const Grads& grads, Where where) {
    std::vector<Shared> r;
    for (const Entry& e : GradsAccess::entries(grads, where)) r.push_back(e.parameter);
    return r;
}

// What a gradient has become, which must still fit its parameter.
Expr fitting(const Shared& parameter, const Expr& value, Where where) {
    if (value.is_null())
        throw GraphError(where, "the gradient of " + in_quotes(parameter.name()) + " is empty");
    const Type wanted{computed_dtype(parameter), shape_of(parameter.shape())};
    Expr x = value.is_weak() ? strengthen(value, wanted.dtype, where) : value;
    if (x.dtype() == parameter.dtype()) x = cast(x, wanted.dtype, where);  // a half is widened
    const std::string subject = "the gradient of " + in_quotes(parameter.name()) + " (" +
                                text_of(Type{parameter.dtype(), wanted.shape}) + ")" + made_at(parameter) +
                                " is " + describe(*x.node());
    if (x.dtype() != wanted.dtype)
        throw TypeError(where, subject + "; write " + cast_text(x.node(), wanted.dtype, "the gradient"));
    const Shape& got = type_of(x).shape;
    bool fits = got.size() == wanted.shape.size();
    for (std::size_t axis = 0; fits && axis < got.size(); ++axis)
        fits = !got[axis].is_constant() || got[axis] == wanted.shape[axis];
    if (!fits) throw ShapeError(where, subject + "; a gradient has the shape of its parameter");
    return x;
}

// The same parameters and lookups with what f(parameter, gradient) makes of each.
template <class F>
Grads mapped(const Grads& grads, Where where, F&& f) {
    GradsAccess::entries(grads, where);
    Grads r = grads;
    for (Entry& e : GradsAccess::entries(r)) e.value = f(e.parameter, Term(e.value, where)).x;
    return r;
}

Grads penalty(const char* name, const std::vector<Shared>& params, double strength, Where where,
              const std::function<Term(const Term&)>& gradient) {
    if (!(strength >= 0 && std::isfinite(strength)))
        throw GraphError(where,
                         fmt::format("{}: the strength is {}; it is a number from 0 on", name, strength));
    require_distinct(params, where);
    Grads r = GradsAccess::empty();
    for (const Shared& p : params) {
        if (!is_float(p.dtype()))
            throw TypeError(where, "a penalty of " + in_quotes(p.name()) + made_at(p) + ", which is " +
                                       std::string(name_of(p.dtype())) + ": parameters are floats");
        const Expr value(p, where);
        GradsAccess::entries(r).push_back({p, value, gradient(computed(p, value, where)).x, {}});
    }
    return r;
}

// Whether the floats of x have numbers above the limit.
bool exceeds(const Expr& x, double limit) {
    return x.dtype() == float64 ? limit < std::numeric_limits<double>::infinity()
                                : limit < std::numeric_limits<float>::max();
}

// limit / max(norm, limit): 1 up to the limit. An infinite norm says nothing of the gradients' proportions.
Term shrinking(const Term& norm, double limit) {
    const Where where = norm.where;
    if (!exceeds(norm.x, limit)) return {literal(1, where), where};
    const Term most = compose(maximum_op(), {norm.x, literal(limit, where)}, where);
    const double inf = std::numeric_limits<double>::infinity();
    const Term is_finite = compose(lt_op(), {norm.x, literal(inf, where)}, where);
    const Expr nan = literal(std::numeric_limits<double>::quiet_NaN(), where);
    return compose(where_op(), {is_finite.x, (limit / most).x, nan}, where);
}

Term squares_of(const Expr& gradient, Where where) {
    return {sum(compose(sqr_op(), {gradient}, where).x, {}, {}, where), where};
}

void require_limit(double limit, const char* clip, Where where) {
    if (!(limit > 0))
        throw Error(where, std::string(clip) + ": the limit must be above 0, but is " + number_text(limit));
}

Term norm_of(const Grads& grads, Where where) {
    DType widest = float32;
    for (const Entry& e : GradsAccess::entries(grads, where))
        if (e.parameter.dtype() == float64) widest = float64;
    Term total(constant(Array(0.0).as(widest), where), where);
    bool first = true;
    for (const Entry& e : GradsAccess::entries(grads, where)) {
        const Term squares(cast(squares_of(e.value, where).x, widest, where), where);
        total = first ? squares : total + squares;
        first = false;
    }
    return sqrt(total);
}

}  // namespace

void require_present(const Grads& grads, Where where) { GradsAccess::entries(grads, where); }

void require_float_scalar(const Expr& x, const std::string& subject, Where where) {
    if (x.rank() != 0) throw ShapeError(where, subject + " is a scalar, not " + describe(*x.node()));
    if (!is_float(x.dtype()) && !x.is_weak())
        throw TypeError(where, subject + " is a float, not " + describe(*x.node()) + "; write " +
                                   cast_text(x.node(), float32));
}

DType computed_dtype(const Shared& parameter) { return wide_of(parameter.dtype()); }

Term computed(const Shared& parameter, const Expr& value, Where where) {
    return {cast(value, computed_dtype(parameter), where), where};
}

Term scalar_for(const Expr& x, const Shared& parameter, Where where) {
    return {x.is_weak() ? x : cast(x, computed_dtype(parameter), where), where};
}

Update update_of(const Shared& target, const Term& value) {
    return {target, cast(value.x, target.dtype(), value.where), value.where};
}

DType widest_of(const std::vector<Trained>& parameters) {
    DType widest = float32;
    for (const Trained& p : parameters)
        if (p.shared.dtype() == float64) widest = float64;
    return widest;
}

std::vector<Trained> trained_by(const Grads& grads, bool lazy_rows, Where where) {
    std::vector<Trained> r;
    for (const Entry& e : GradsAccess::entries(grads, where)) {
        r.push_back({e.parameter, computed(e.parameter, e.point, where), Term(e.value, where), {}});
        if (!lazy_rows || e.lookups.is_null()) continue;
        if (const auto lazy = lazy_rows_of(Term(e.lookups, where), r.back().gradient)) {
            r.back().reached = lazy->reached;
            r.back().gradient = lazy->gradient;
        }
    }
    return r;
}

Grads::Grads(const std::vector<Shared>& params, const std::vector<Expr>& values, Where where) try {
    if (params.size() != values.size())
        throw GraphError(where, std::to_string(values.size()) + " gradients for " +
                                    std::to_string(params.size()) + " parameters");
    require_distinct(params, where);
    for (std::size_t i = 0; i < params.size(); ++i) {
        const Expr value = fitting(params[i], values[i], where);
        entries_.push_back({params[i], Expr(params[i], where), value, value});
    }
} catch (const std::bad_alloc&) {
    expressing.fail();
}

const Shared& Grads::parameter(std::size_t k) const {
    mark_.refuse("Grads");
    if (k >= entries_.size())
        throw IndexError("gradient " + std::to_string(k) + " of " + std::to_string(entries_.size()));
    return entries_[k].parameter;
}

const Expr& Grads::operator[](std::size_t k) const {
    parameter(k);
    return entries_[k].value;
}

const Expr& Grads::operator[](const Shared& parameter) const {
    mark_.refuse("Grads");
    for (const Entry& e : entries_)
        if (e.parameter.state() == parameter.state()) return e.value;
    throw GraphError("there is no gradient of " + in_quotes(parameter.name()) + made_at(parameter) +
                     "; list it among the parameters");
}

Grads Grads::map(const std::function<Expr(const Shared&, const Expr&)>& f, Where where) const try {
    mark_.refuse("Grads", where);
    if (!f)
        throw Error(where,
                    "map: the function of gradients is empty; pass one that makes an expression of each");
    Grads r = *this;
    for (Entry& e : r.entries_) e.value = fitting(e.parameter, f(e.parameter, e.value), where);
    return r;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads gradients(const Expr& loss, const std::vector<Shared>& params, Where where) try {
    require_distinct(params, where);
    std::vector<Expr> values;
    for (const Shared& p : params) values.emplace_back(p, where);
    const std::vector<Expr> found = gradients(loss, values, HalfGradients::wide, where);
    Grads r = GradsAccess::empty();
    for (std::size_t i = 0; i < params.size(); ++i)
        GradsAccess::entries(r).push_back({params[i], values[i], found[i], found[i]});
    return r;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads operator+(const Grads& a, const Grads& b) try {
    GradsAccess::entries(a, {});
    Grads r = a;
    std::vector<Entry>& entries = GradsAccess::entries(r);
    for (const Entry& more : GradsAccess::entries(b, {})) {
        const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
            return e.parameter.state() == more.parameter.state();
        });
        if (found == entries.end()) {
            entries.push_back(more);
            continue;
        }
        const Where where = found->value.where();
        found->value = (Term(found->value, where) + Term(more.value, where)).x;
        if (found->lookups.is_null())
            found->lookups = more.lookups;
        else if (!more.lookups.is_null())
            found->lookups = (Term(found->lookups, where) + Term(more.lookups, where)).x;
    }
    require_distinct(parameters_of(r, {}), entries.empty() ? Where{} : entries.back().value.where());
    return r;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads scale(const Grads& grads, const Expr& factor, Where where) try {
    require_float_scalar(factor, "scale: the factor of gradients", where);
    return mapped(grads, where,
                  [&](const Shared& p, const Term& g) { return g * scalar_for(factor, p, where); });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads l2_penalty(const std::vector<Shared>& params, double strength, Where where) try {
    return penalty("l2_penalty", params, strength, where, [&](const Term& p) { return p * strength; });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads l1_penalty(const std::vector<Shared>& params, double strength, Where where) try {
    return penalty("l1_penalty", params, strength, where,
                   [&](const Term& p) { return map(sign_op(), p) * strength; });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr global_norm(const Grads& grads, Where where) try {
    return norm_of(grads, where).x;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads clip_by_value(const Grads& grads, double limit, Where where) try {
    require_limit(limit, "clip_by_value", where);
    return mapped(grads, where, [&](const Shared&, const Term& g) {
        if (!exceeds(g.x, limit)) return g;
        return Term(compose(clip_op(), {g.x, literal(-limit, where), literal(limit, where)}, where));
    });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads clip_by_norm(const Grads& grads, double limit, Where where) try {
    require_limit(limit, "clip_by_norm", where);
    return mapped(grads, where, [&](const Shared&, const Term& g) {
        return g * shrinking(sqrt(squares_of(g.x, where)), limit);
    });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads clip_by_global_norm(const Grads& grads, double limit, Where where) try {
    require_limit(limit, "clip_by_global_norm", where);
    const Term factor = shrinking(norm_of(grads, where), limit);
    return mapped(grads, where,
                  [&](const Shared& p, const Term& g) { return g * scalar_for(factor.x, p, where); });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

GradSum::GradSum(const Grads& grads, Where where) try : grads_(grads), where_(where) {
    std::string first;
    for (const Entry& e : GradsAccess::entries(grads_, where)) {
        const Shared& p = e.parameter;
        if (sums_.empty()) first = p.name();
        sums_.push_back(shared(zeros(p.shape(), computed_dtype(p)), p.name() + ".sum", where));
    }
    count_ = shared(zeros({}, int64), first + ".count", where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

void GradSum::require_present() const { mark_.refuse("a GradSum", where_); }

Updates GradSum::add() const try {
    require_present();
    Updates r;
    for (std::size_t i = 0; i < sums_.size(); ++i)
        r.push_back(update_of(sums_[i], Term(Expr(sums_[i], where_), where_) + Term(grads_[i], where_)));
    r.push_back(update_of(count_, Term(Expr(count_, where_), where_) + 1));
    return r;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads GradSum::sum() const try {
    require_present();
    std::vector<Expr> values;
    for (const Shared& s : sums_) values.emplace_back(s, where_);
    return Grads(parameters_of(grads_, where_), values, where_);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Grads GradSum::mean() const try {
    require_present();
    const Term one(literal(1, where_), where_), count(Expr(count_, where_), where_);
    const Term calls = compose(maximum_op(), {count.x, one.x}, where_);
    return mapped(sum(), where_,
                  [&](const Shared& p, const Term& g) { return g / scalar_for(calls.x, p, where_); });
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Updates GradSum::clear() const try {
    require_present();
    Updates r;
    for (const Shared& s : sums_) r.emplace_back(s, constant(zeros(s.shape(), s.dtype()), where_), where_);
    r.emplace_back(count_, constant(zeros({}, int64), where_), where_);
    return r;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
