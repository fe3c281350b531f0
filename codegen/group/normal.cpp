#include "codegen/group/normal.h"

#include <algorithm>
#include <cstddef>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool mentions_any(const Int& x, const std::vector<Loop>& loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& l) {
        return l.variable.symbol_id() && depends_on(x, l.variable.symbol_id());
    });
}

// Whether both loops move x as one would: not at all, or the first as far as all turns of the second.
bool moves_as_one(const Int& x, const Loop& outer, const Loop& inner) {
    const std::optional<Int> far = stride_of(x, outer.variable), near = stride_of(x, inner.variable);
    return far && near && *far == *near * inner.extent && !depends_on(*far, inner.variable.symbol_id()) &&
           !depends_on(*near, outer.variable.symbol_id());
}

bool in_guards(const Nest& nest, std::uint64_t id) {
    const auto guarded = [&](const std::vector<Guard>& guards) {
        return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) { return depends_on(g, id); });
    };
    if (guarded(nest.guards)) return true;
    const auto part = [&](const ScalarNode& s) { return guarded(s.guards); };
    return any_part(nest.body, part) || std::any_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) {
               return depends_on(l.value, id) || depends_on(l.extent, id);
           });
}

// Results of a sum of products that have a factor in common run in tiles, which are found by the loops as
// they are.
bool shares_factors(const Nest& nest) {
    if (!adds_products(nest)) return false;
    const ProductAxes axes = product_axes(nest);
    return !axes.rows.empty() || !axes.columns.empty();
}

}  // namespace

bool walk_as_one(const Nest& nest, const Loop& outer, const Loop& inner, const ShapeOf& shape_of) {
    const std::uint64_t first = outer.variable.symbol_id(), second = inner.variable.symbol_id();
    if (!first || !second || in_guards(nest, first) || in_guards(nest, second)) return false;
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& l : *loops)
            if (depends_on(l.extent, first) || depends_on(l.extent, second)) return false;
    bool one = true;
    for_each_index(nest.body, [&](const Int& x) { one = one && moves_as_one(x, outer, inner); });
    for_each_read(nest.body, [&](const ScalarNode& s) {
        one = one && moves_as_one(offset_of(s, shape_of), outer, inner);
        // A window moves with its result along each axis of its own: they stay apart.
        for (const Int& x : s.at)
            one = one && !(depends_on(x, first) != depends_on(x, second) && mentions_any(x, nest.parallel));
    });
    return one;
}

Nest joined(const Nest& nest, std::size_t outer) {
    const Loop a = nest.reduced[outer], b = nest.reduced[outer + 1];
    const Loop both = make_loop("k", a.extent * b.extent);
    Nest r = substitute(nest, {{a.variable.symbol_id(), floordiv(both.variable, b.extent)},
                               {b.variable.symbol_id(), mod(both.variable, b.extent)}});
    r.reduced[outer] = both;
    r.reduced.erase(r.reduced.begin() + static_cast<std::ptrdiff_t>(outer) + 1);
    return r;
}

void normalize_reductions(Values& values) {
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        Value& value = values.list[v];
        if (value.storage != Value::Storage::stored || value.by_library || value.nest.reduced.size() < 2)
            continue;
        const Nest full = fully_composed_nest(values, static_cast<int>(v));
        if (full.reduced.size() != value.nest.reduced.size() || shares_factors(full)) continue;
        for (std::size_t i = full.reduced.size() - 1; i-- > 0;)
            if (walk_as_one(full, full.reduced[i], full.reduced[i + 1], values.shapes()))
                value.nest = joined(value.nest, i);
    }
}

}  // namespace bitale
