#include "codegen/schedule/loops.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "codegen/kernel/intrinsics.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool uses(const Int& x, const std::set<std::uint64_t>& symbols) {
    const std::vector<AtomPtr> found = symbols_of(x);
    return std::any_of(found.begin(), found.end(), [&](const AtomPtr& a) { return symbols.contains(a->id); });
}

bool uses(const Guard& g, const std::set<std::uint64_t>& symbols) {
    return uses(g.value, symbols) || uses(g.low, symbols) || uses(g.high, symbols);
}

bool uses(const Scalar& s, const std::set<std::uint64_t>& symbols) {
    const auto in = [&](const auto& x) { return uses(x, symbols); };
    return any_part(s, [&](const ScalarNode& part) {
        return in(part.index) || std::any_of(part.at.begin(), part.at.end(), in) ||
               std::any_of(part.guards.begin(), part.guards.end(), in);
    });
}

}  // namespace

LoopBuilder::LoopBuilder(const Nest& nest, bool with_lets) {
    if (with_lets) {
        lets_ = nest.lets;
        guards_ = nest.guards;
    }
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& l : *loops)
            if (const std::uint64_t id = l.variable.symbol_id()) unbound_.insert(id);
    if (nest.combine == Combine::none) return;
    std::set<std::uint64_t> of_terms;
    for (const Loop& l : nest.reduced) of_terms.insert(l.variable.symbol_id());
    const auto results = std::stable_partition(guards_.begin(), guards_.end(),
                                               [&](const Guard& g) { return uses(g, of_terms); });
    later_.assign(results, guards_.end());
    guards_.erase(results, guards_.end());
}

Stmts LoopBuilder::nest(const std::vector<Loop>& loops, const std::function<Stmts(LoopBuilder&)>& body,
                        Binding innermost, const Int& also) {
    if (const std::uint64_t id = also.symbol_id()) unbound_.insert(id);
    return release([&] { return around(loops, 0, body, innermost); }, false, {});
}

Stmts LoopBuilder::around(const std::vector<Loop>& loops, std::size_t depth,
                          const std::function<Stmts(LoopBuilder&)>& body, Binding innermost) {
    while (depth < loops.size() && !loops[depth].variable.symbol_id()) ++depth;  // loops of length 1
    if (depth == loops.size()) return inside(body);
    const Loop& l = loops[depth];
    const bool last = std::none_of(loops.begin() + static_cast<std::ptrdiff_t>(depth) + 1, loops.end(),
                                   [](const Loop& x) { return x.variable.symbol_id() != 0; });
    const auto saved = *this;
    unbound_.erase(l.variable.symbol_id());
    Stmts statements = release([&] { return around(loops, depth + 1, body, innermost); },
                               last && innermost == Binding::simd, {});
    *this = saved;
    return {loop(l.variable, 0, l.extent, last ? innermost : Binding::serial, std::move(statements))};
}

Stmts LoopBuilder::inside(const std::function<Stmts(LoopBuilder&)>& body) {
    const auto saved = *this;
    guards_.insert(guards_.end(), later_.begin(), later_.end());
    later_.clear();
    Stmts r = body(*this);
    *this = saved;
    return r;
}

Stmts LoopBuilder::threads(const std::vector<Loop>& loops, const std::function<Stmts(LoopBuilder&)>& body) {
    Int count = 1;
    for (const Loop& l : loops) count = count * l.extent;
    const IntRange r = count.range();
    const Int point = Int::symbol(
        "point",
        {0, r.high >= IntRange::highest ? IntRange::highest : std::max<std::int64_t>(r.high - 1, 0)});
    const auto saved = *this;
    Int rest = point;
    for (auto l = loops.rbegin(); l != loops.rend(); ++l) {
        if (const std::uint64_t id = l->variable.symbol_id()) {
            replaced_[id] = l + 1 == loops.rend() ? rest : mod(rest, l->extent);
            unbound_.erase(id);
        }
        rest = floordiv(rest, l->extent);
    }
    Stmts statements = release([&] { return inside(body); }, false, {});
    statements = substituted(statements);
    *this = saved;
    return {loop(point, 0, count, Binding::threads, std::move(statements))};
}

Stmts LoopBuilder::guarded(Stmts body, const Substitution& here) {
    return inside(
        [&](LoopBuilder& inner) { return inner.release([&] { return std::move(body); }, true, here); });
}

Stmts LoopBuilder::release(const std::function<Stmts()>& inner, bool all, const Substitution& here) {
    Stmts before;
    std::vector<Let> later_lets;
    std::set<std::uint64_t> blocked = unbound_;
    if (all) blocked.clear();
    for (const Let& l : lets_) {
        if (uses(l.value, blocked) || uses(l.extent, blocked)) {
            later_lets.push_back(l);
            blocked.insert(l.symbol.symbol_id());
        } else {
            before.push_back(let(l.symbol, substitute(l.value, here), substitute(l.extent, here)));
        }
    }
    std::vector<Guard> now, later;
    for (const Guard& g : guards_) (uses(g, blocked) ? later : now).push_back(g);
    lets_ = later_lets;
    guards_ = later;
    Stmts body = inner();
    if (!now.empty()) {
        for (Guard& g : now)
            g = {substitute(g.value, here), substitute(g.low, here), substitute(g.high, here)};
        body = {when(now, std::move(body))};
    }
    before.insert(before.end(), std::make_move_iterator(body.begin()), std::make_move_iterator(body.end()));
    return before;
}

Stmts LoopBuilder::substituted(const Stmts& body, const Substitution& more) const {
    Substitution all = replaced_;
    all.insert(more.begin(), more.end());
    return all.empty() ? body : substitute(body, all);
}

Stmts substitute(const Stmts& body, const Substitution& with) {
    Stmts r = body;
    for (Stmt& s : r) {
        for (Int* x : {&s.begin, &s.end, &s.low, &s.high}) *x = substitute(*x, with);
        for (Int& x : s.at) x = substitute(x, with);
        for (Guard& g : s.guards)
            g = {substitute(g.value, with), substitute(g.low, with), substitute(g.high, with)};
        s.value = substitute(s.value, with);
        s.position = substitute(s.position, with);
        for (Memory& memory : s.call.operands)
            for (Int& x : memory.at) x = substitute(x, with);
        for (Int& x : s.call.numbers) x = substitute(x, with);
        for (Scalar& value : s.call.values) value = substitute(value, with);
        s.body = substitute(s.body, with);
    }
    return r;
}

Scalar lowest_of(DType dtype) {
    if (is_float(dtype)) return scalar_constant(dtype, -std::numeric_limits<double>::infinity());
    if (!is_signed_integer(dtype)) return scalar_integer(dtype, 0);
    return scalar_integer(dtype,
                          bits_of(dtype) == 64 ? INT64_MIN : -(std::int64_t{1} << (bits_of(dtype) - 1)));
}

Scalar highest_of(DType dtype) {
    if (is_float(dtype)) return scalar_constant(dtype, std::numeric_limits<double>::infinity());
    if (dtype == DType::boolean) return scalar_integer(dtype, 1);
    if (dtype == DType::uint64) return scalar_integer(dtype, -1);
    const int bits = bits_of(dtype) - (is_signed_integer(dtype) ? 1 : 0);
    return scalar_integer(dtype, bits == 63 ? INT64_MAX : (std::int64_t{1} << bits) - 1);
}

namespace {

// Whether a guard depends on the symbol, or, where `numbers` count, a value that is an index.
bool restricted(const Scalar& s, std::uint64_t id, bool numbers) {
    return any_part(s, [&](const ScalarNode& part) {
        return (numbers && part.kind == ScalarNode::Kind::index && depends_on(part.index, id)) ||
               std::any_of(part.guards.begin(), part.guards.end(),
                           [&](const Guard& g) { return depends_on(g, id); });
    });
}

}  // namespace

bool restricted(const Nest& nest, const Int& variable, bool numbers) {
    const std::uint64_t id = variable.symbol_id();
    for (const Loop& l : nest.parallel)
        if (depends_on(l.extent, id)) return true;
    for (const Let& l : nest.lets) {
        if (depends_on(l.value, id) || depends_on(l.extent, id)) return true;
    }
    return !nest.guards.empty() || restricted(nest.body, id, numbers);
}

namespace {

bool stores(const Stmts& body, int place, bool guarded) {
    return std::any_of(body.begin(), body.end(), [&](const Stmt& s) {
        bool here = s.kind == Stmt::Kind::set && s.place == place;
        // Rows of images that are interleaved stand under guards of their own, which end with the image.
        for_each_operand(s.call, [&](const Intrinsic::Operand& operand, const Memory& memory) {
            const bool stores = operand.use == Use::written &&
                                (operand.count == Intrinsic::Operand::as_vector || s.call.intrinsic->streams);
            here = here || (stores && memory.place == place);
        });
        return (guarded && here) || stores(s.body, place, guarded || s.kind == Stmt::Kind::when);
    });
}

}  // namespace

bool stores_under_guards(const Stmts& body, int place) { return stores(body, place, false); }

}  // namespace bitale
