#include "codegen/nest/compose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/nest/arms.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/runs.h"
#include "codegen/nest/spans.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool proven(const Guard& g) {
    return (g.value - g.low).range().low >= 0 && (g.high - g.value).range().low > 0;
}

void append(std::vector<Guard>& guards, const std::vector<Guard>& more) {
    for (const Guard& g : more)
        if (std::find(guards.begin(), guards.end(), g) == guards.end()) guards.push_back(g);
}

bool shares_symbol(const Guard& g, const std::vector<Int>& at) {
    std::set<std::uint64_t> in_guard;
    for (const Int* x : {&g.value, &g.low, &g.high})
        for (const AtomPtr& a : symbols_of(*x)) in_guard.insert(a->id);
    return std::any_of(at.begin(), at.end(), [&](const Int& x) {
        const std::vector<AtomPtr> symbols = symbols_of(x);
        return std::any_of(symbols.begin(), symbols.end(),
                           [&](const AtomPtr& a) { return in_guard.contains(a->id); });
    });
}

Scalar zero_of(DType dtype) { return scalar_integer(dtype, 0); }

class Composer {
  public:
    explicit Composer(const InlineRead& inlined) : inlined_(inlined) {}

    // `guards` hold wherever the result is used: loads below must not happen where they fail.
    Scalar operator()(const Scalar& s, const std::vector<Guard>& guards) {
        if (!s) return s;
        auto [at, fresh] = done_.try_emplace({s.get(), guards});
        if (!fresh) return at->second;
        Scalar r = rewrite(s, guards);
        alive_.push_back(s);  // the key is its address
        return done_[{s.get(), guards}] = std::move(r);
    }

    std::vector<Let> lets;

  private:
    Scalar rewrite(const Scalar& s, const std::vector<Guard>& guards) {
        if (s->kind == ScalarNode::Kind::read) return read(s, guards);
        auto r = std::make_shared<ScalarNode>(*s);
        r->otherwise = (*this)(s->otherwise, guards);
        for (Scalar& a : r->arguments) a = (*this)(a, guards);
        return r;
    }

    Scalar read(const Scalar& s, const std::vector<Guard>& guards) {
        std::vector<Guard> all = guards;
        append(all, s->guards);
        const Nest* producer = inlined_(*s, all);
        if (!producer) {
            auto r = std::make_shared<ScalarNode>(*s);
            // A guard over axes that the index does not mention says nothing about this element.
            r->guards = s->guards;
            std::vector<Guard> own;
            for (const Guard& g : guards)
                if (shares_symbol(g, s->at)) own.push_back(g);
            append(r->guards, own);
            r->otherwise = (*this)(s->otherwise, guards);
            if (!r->guards.empty() && !r->otherwise) r->otherwise = zero_of(s->dtype);
            return r;
        }
        Scalar body;
        const Instance key{s->operand, s->at, all};
        if (const auto at = instances_.find(key); at != instances_.end()) {
            body = at->second;
        } else {
            Substitution index;
            for (std::size_t d = 0; d < producer->parallel.size(); ++d)
                if (const std::uint64_t id = producer->parallel[d].variable.symbol_id()) index[id] = s->at[d];
            const Nest nest = substitute(*producer, index);
            Substitution known;
            for (const Let& let : nest.lets) add(let, all, known);
            body = (*this)(known.empty() ? nest.body : substitute(nest.body, known), all);
            instances_[key] = body;
        }
        if (s->guards.empty()) return body;
        const Scalar otherwise = (*this)(s->otherwise, guards);
        if (body->kind == ScalarNode::Kind::read && guards.empty() && body->guards == s->guards) {
            auto r = std::make_shared<ScalarNode>(*body);
            r->otherwise = otherwise;
            return r;
        }
        return select_of_parts(s->guards, body, otherwise);
    }

    // What is computed alike is one index: then an array is read where it is written, which the algebra sees.
    void add(const Let& let, const std::vector<Guard>& guards, Substitution& known) {
        const Scalar value = (*this)(substitute(let.value, known), guards);
        const Int extent = substitute(let.extent, known);
        const auto alike = std::find_if(lets.begin(), lets.end(), [&](const Let& l) {
            return l.extent == extent && same_scalars(l.value, value);
        });
        if (alike != lets.end())
            known[let.symbol.symbol_id()] = alike->symbol;
        else
            lets.push_back({let.symbol, value, extent});
    }

    struct Instance {
        Operand operand;
        std::vector<Int> at;
        std::vector<Guard> guards;
        auto operator<=>(const Instance&) const = default;
    };

    const InlineRead& inlined_;
    std::map<std::pair<const ScalarNode*, std::vector<Guard>>, Scalar> done_;
    std::map<Instance, Scalar> instances_;
    std::vector<Scalar> alive_;
};

}  // namespace

Nest compose(const Nest& nest, const InlineValue& inlined) {
    return compose_reads(nest, [&](const ScalarNode& read, const std::vector<Guard>&) {
        return inlined(read.operand.value());
    });
}

Nest compose_reads(const Nest& nest, const InlineRead& inlined) {
    Nest r = nest;
    Composer composer(inlined);
    for (const Let& let : nest.lets) {
        const Scalar value = composer(let.value, {});
        composer.lets.push_back({let.symbol, value, let.extent});
    }
    r.body = composer(nest.body, {});
    r.lets = std::move(composer.lets);
    return r;
}

namespace {

// What a guard that leaves a single number says of the variable of a loop over results.
struct Equation {
    std::size_t axis = 0;
    Int number;
    Guard guard;
};

std::vector<Equation> equations_of(const std::vector<Guard>& guards, const std::vector<Loop>& results) {
    std::vector<Equation> all;
    for (const Guard& g : guards)
        for (std::size_t d = 0; d < results.size() && (g.high - g.low).is(1); ++d) {
            const Int &x = results[d].variable, zero = g.value - g.low;
            if (!x.symbol_id()) continue;
            for (const Int& number : {x - zero, x + zero})
                if (!depends_on(number, x.symbol_id())) all.push_back({d, number, g});
        }
    return all;
}

// An element at such a number is at the variable: an update then reads the element that it replaces.
// Elsewhere the variable may be beyond the array.
void name_by_loops(ScalarNode& read, const std::vector<Equation>& equations,
                   const std::vector<Loop>& results) {
    if (read.at.size() != results.size()) return;
    for (const Equation& e : equations) {
        if (!(read.at[e.axis] == e.number)) continue;
        read.at[e.axis] = results[e.axis].variable;
        append(read.guards, {e.guard});
        if (!read.otherwise) read.otherwise = zero_of(read.dtype);
    }
}

Scalar named_by_loops(const Scalar& s, const std::vector<Equation>& equations,
                      const std::vector<Loop>& results) {
    return rebuild(s, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
        if (part->kind == ScalarNode::Kind::read) name_by_loops(*part, equations, results);
        return part;
    });
}

}  // namespace

namespace {

// Of a nest whose guards are about to become a choice of values: a choice computes both, so that no element
// is read where they fail.
Nest reading_inside(Nest nest) {
    if (nest.guards.empty()) return nest;
    const std::vector<Guard> guards = nest.guards;
    return rebuild(nest, [&](std::shared_ptr<ScalarNode> s) -> Scalar {
        if (s->kind != ScalarNode::Kind::read) return s;
        for (const Guard& g : guards)
            if (std::find(s->guards.begin(), s->guards.end(), g) == s->guards.end()) s->guards.push_back(g);
        if (!s->otherwise) s->otherwise = zero_of(s->dtype);
        return s;
    });
}

}  // namespace

Nest simplify(const Nest& nest) {
    // Prefixes and orders are known by how their loops and guards depend on each other.
    const bool tells = !is_prefix(nest) && !is_order(nest.combine);
    std::optional<Spans> spans;
    const auto span = [&](const Int& x) {
        if (!spans && tells) spans.emplace(nest);
        return spans ? spans->of(x) : std::optional<Span>();
    };
    const auto holds = [&](const Guard& g) {
        if (proven(g)) return true;
        const std::optional<Span> x = span(g.value);
        return x && at_least(x->low, g.low) && at_least(g.high, x->high + 1);
    };
    const auto never_holds = [&](const Guard& g) {
        const std::optional<Span> x = span(g.value);
        return x && (at_least(x->low, g.high) || at_least(g.low, x->high + 1));
    };
    Nest r = rebuild(nest, [&](std::shared_ptr<ScalarNode> s) -> Scalar {
        std::erase_if(s->guards, holds);
        if (const std::vector<Equation> equations = equations_of(s->guards, nest.parallel);
            !equations.empty()) {
            if (s->kind == ScalarNode::Kind::read) name_by_loops(*s, equations, nest.parallel);
            if (s->kind == ScalarNode::Kind::select)
                s->arguments[0] = named_by_loops(s->arguments[0], equations, nest.parallel);
        }
        if (s->otherwise && std::any_of(s->guards.begin(), s->guards.end(), never_holds)) return s->otherwise;
        if (s->guards.empty()) {
            if (s->kind == ScalarNode::Kind::select) return s->arguments[0];
            if (s->kind == ScalarNode::Kind::read) s->otherwise = nullptr;
        }
        return s;
    });
    std::erase_if(r.guards, holds);
    if (!sums_runs(nest)) std::erase_if(r.reduced, [](const Loop& l) { return l.extent.is(1); });
    const bool index_result = gives_places(r.combine);
    const bool nothing =
        std::any_of(r.reduced.begin(), r.reduced.end(), [](const Loop& l) { return l.extent.is(0); });
    if (r.combine != Combine::none && (r.reduced.empty() || nothing) && !index_result) {
        // One value at most: the combine is the value itself, or its neutral element where the guards fail,
        // or where there is no value.
        Scalar neutral;
        switch (r.combine) {
            case Combine::sum:
            case Combine::any: neutral = zero_of(r.body->dtype); break;
            case Combine::prod:
            case Combine::all: neutral = scalar_integer(r.body->dtype, 1); break;
            default: break;
        }
        if (neutral || (r.guards.empty() && !nothing)) {
            if (!nothing) r = reading_inside(std::move(r));
            const Scalar value = nothing ? neutral : scalar_select(r.guards, r.body, neutral);
            r.body = scalar_cast(r.dtype, scalar_cast(r.accumulator, value));
            r.guards.clear();
            r.reduced.clear();
            if (nothing) r.lets.clear();
            r.combine = Combine::none;
        }
    }
    return r;
}

int count_statements(const Nest& nest, int limit) {
    int n = 0;
    for_each_part(nest, [&](const ScalarNode& s) { n += s.kind != ScalarNode::Kind::constant && n < limit; });
    return n;
}

int cost_of(const Nest& nest) {
    int cost = 0;
    for_each_part(nest, [&](const ScalarNode& s) {
        if (s.kind == ScalarNode::Kind::apply)
            cost += s.op->map->cost;
        else if (s.kind == ScalarNode::Kind::cast || s.kind == ScalarNode::Kind::select ||
                 (s.otherwise && s.otherwise->kind != ScalarNode::Kind::constant))
            cost += 1;
    });
    return cost;
}

bool is_costly(const Nest& nest) { return cost_of(nest) >= cost_of_a_function; }

bool is_costly(const Scalar& value) {
    Nest nest;
    nest.body = value;
    return value && is_costly(nest);
}

Nest renumber(const Nest& nest, const std::function<Operand(Operand)>& number) {
    return rebuild(nest, [&](std::shared_ptr<ScalarNode> s) -> Scalar {
        if (s->kind == ScalarNode::Kind::read) s->operand = number(s->operand);
        return s;
    });
}

}  // namespace bitale
