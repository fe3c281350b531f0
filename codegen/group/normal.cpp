#include "codegen/group/normal.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/nest/planes.h"
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

// Results of a sum of products that have a factor in common run in tiles, which are found by the loops as
// they are.
bool shares_factors(const Nest& nest) {
    if (!adds_products(nest)) return false;
    const ProductAxes axes = product_axes(nest);
    return !axes.rows.empty() || !axes.columns.empty();
}

// Whether one loop can stand for the two, the second one inside of the first: every read of the nest moves by
// the first as by all of the second, and nothing else asks for one of them by itself.
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

// Reduced loop number `outer` and the next one as one loop.
Nest joined(const Nest& nest, std::size_t outer) {
    const Loop a = nest.reduced[outer], b = nest.reduced[outer + 1];
    const Loop both = make_loop("k", a.extent * b.extent);
    Nest r = substitute(nest, {{a.variable.symbol_id(), floordiv(both.variable, b.extent)},
                               {b.variable.symbol_id(), mod(both.variable, b.extent)}});
    r.reduced[outer] = both;
    r.reduced.erase(r.reduced.begin() + static_cast<std::ptrdiff_t>(outer) + 1);
    return r;
}

// Elements that share bytes are read by loops over their planes and over what each of these has. The loop
// over planes becomes number `place`.
Nest apart(const Nest& nest, std::size_t number, std::int64_t length, std::size_t place) {
    const Loop old = nest.reduced[number];
    const Loop outer = make_loop("k", old.extent.constant() / length), inner = make_loop("k", length);
    Nest r = substitute(nest, {{old.variable.symbol_id(), outer.variable * length + inner.variable}});
    r.reduced[number] = inner;
    r.reduced.insert(r.reduced.begin() + static_cast<std::ptrdiff_t>(place), outer);
    return r;
}

// How far each read of the body moves along the loop; nothing where one of them has no stride along it, or
// something else asks for the loop's variable.
std::optional<std::vector<Int>> strides_along(const Nest& nest, const Loop& loop, const ShapeOf& shape_of) {
    const std::uint64_t id = loop.variable.symbol_id();
    if (!id || in_guards(nest, id)) return {};
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& l : *loops)
            if (depends_on(l.extent, id)) return {};
    std::vector<Int> strides;
    bool known = true;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), loop.variable);
        known = known && step;
        if (known) strides.push_back(*step);
    });
    if (!known) return {};
    return strides;
}

// From the end of memory to its beginning.
bool walks_backwards(const Nest& nest, const Loop& loop, const ShapeOf& shape_of) {
    const std::optional<std::vector<Int>> strides = strides_along(nest, loop, shape_of);
    const auto backwards = [](const Int& x) { return x.range().high < 0; };
    return strides && std::any_of(strides->begin(), strides->end(), backwards) &&
           std::all_of(strides->begin(), strides->end(),
                       [&](const Int& x) { return x.is(0) || backwards(x); });
}

// The second loop, inside of the first, takes the longer steps.
bool walks_across(const Nest& nest, const Loop& outer, const Loop& inner, const ShapeOf& shape_of) {
    const auto first = strides_along(nest, outer, shape_of), second = strides_along(nest, inner, shape_of);
    if (!first || !second) return false;
    bool any = false;
    for (std::size_t i = 0; i < first->size(); ++i) {
        const Int &a = (*first)[i], &b = (*second)[i];
        if (a.is(0) || b.is(0)) continue;
        const bool longer = a.range().low >= 0 && ((b - a).range().low > 0 || b == a * outer.extent);
        if (!longer) return false;
        any = true;
    }
    return any;
}

Nest backwards(const Nest& nest, std::size_t loop) {
    const Loop old = nest.reduced[loop], own = make_loop("k", old.extent);
    Nest r = substitute(nest, {{old.variable.symbol_id(), old.extent - 1 - own.variable}});
    r.reduced[loop] = own;
    return r;
}

// Whether the first loop goes along the rows of staged values: their copies hold a row each, which others
// that walk the same rows share.
bool walks_rows_of_copies(const Values& values, int v) {
    const Nest nest = composed_nest(values, v);
    const std::uint64_t row = nest.reduced.front().variable.symbol_id();
    bool found = false;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        found = found ||
                (row &&
                 values.list[static_cast<std::size_t>(s.operand.value())].storage == Value::Storage::staged &&
                 !s.at.empty() && s.at[0].symbol_id() == row);
    });
    return found;
}

// Loops forwards through memory, the longest steps outside; neighbours that are one axis as one loop; those
// before the loop `first` as they are. `full` is the nest with everything inlined, as `full_of` makes it.
Nest normal_form(Nest nest, Nest full, std::size_t first, const std::function<Nest(const Nest&)>& full_of,
                 const ShapeOf& shape_of) {
    // Planes of several axes outside of all of these, whose elements then follow each other.
    std::optional<std::size_t> planes;
    for (std::size_t i = first; i < nest.reduced.size() && !gives_places(nest.combine); ++i)
        if (const std::int64_t length = divided_by(full, nest.reduced[i], shape_of)) {
            const std::size_t place = planes.value_or(i);
            nest = apart(nest, i, length, place);
            full = full_of(nest);
            planes = place + 1;
        }
    // Positions are numbered by the loops.
    for (std::size_t i = first; i < nest.reduced.size() && !gives_places(nest.combine); ++i)
        if (walks_backwards(full, nest.reduced[i], shape_of)) {
            nest = backwards(nest, i);
            full = full_of(nest);
        }
    for (std::size_t pass = 1; pass < nest.reduced.size() && !gives_places(nest.combine); ++pass)
        for (std::size_t i = first; i + 1 < nest.reduced.size(); ++i)
            if (walks_across(full, nest.reduced[i], nest.reduced[i + 1], shape_of)) {
                std::swap(nest.reduced[i], nest.reduced[i + 1]);
                std::swap(full.reduced[i], full.reduced[i + 1]);
            }
    for (std::size_t i = full.reduced.size(); i-- > first + 1;)
        if (walk_as_one(full, full.reduced[i - 1], full.reduced[i], shape_of)) nest = joined(nest, i - 1);
    return nest;
}

}  // namespace

void normalize_reductions(Values& values) {
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        Value& value = values.list[v];
        if (value.storage != Value::Storage::stored || value.by_library || value.nest.reduced.empty())
            continue;
        const auto full_of = [&](const Nest& nest) {
            value.nest = nest;
            return fully_composed_nest(values, static_cast<int>(v));
        };
        const Nest full = full_of(value.nest);
        if (full.reduced.size() == value.nest.reduced.size() && !shares_factors(full))
            value.nest =
                normal_form(value.nest, full, walks_rows_of_copies(values, static_cast<int>(v)) ? 1 : 0,
                            full_of, values.shapes());
    }
}

}  // namespace bitale
