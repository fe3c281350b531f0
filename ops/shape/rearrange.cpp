// What users write with slices, joins and broadcasts: roll, stack, repeat.
#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bitale/ops.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

Expr slice_of_axis(const Expr& x, int axis, Slice slice, Where where) {
    Index at(std::move(slice), where);
    at.items.insert(at.items.begin(), static_cast<std::size_t>(axis), Index::Item(colon));
    return x[at];
}

void require_alike(const Expr& a, const Expr& b, Where where) {
    const std::string operands = "stack of " + describe(*a.node()) + " and " + describe(*b.node()) + ": ";
    if (a.dtype() != b.dtype())
        throw TypeError(where, operands + std::string(name_of(a.dtype())) + " and " +
                                   std::string(name_of(b.dtype())) + " do not mix; cast one");
    const Shape &left = type_of(a).shape, &right = type_of(b).shape;
    bool differ = left.size() != right.size();
    for (std::size_t d = 0; d < left.size() && !differ; ++d) differ = never_equal(left[d], right[d]);
    if (differ)
        throw ShapeError(where,
                         operands +
                             "all parts need the same shape; reshape one, or join them along an axis that "
                             "they have with concatenate");
}

}  // namespace

Expr roll(const Expr& x, std::int64_t shift, int axis, Where where) try {
    require_present("roll", {&x}, where);
    const int at = checked_axis(axis, x, "roll", where);
    const Int& length = type_of(x).shape[static_cast<std::size_t>(at)];
    if (shift < IntRange::lowest || shift > IntRange::highest)
        throw IndexError(where, fmt::format("roll by {}: shifts are from {} to {}", shift, IntRange::lowest,
                                            IntRange::highest));
    const Int first = mod(Int(0) - shift, max(length, 1));  // of the elements that come first
    if (first.is(0)) return x;
    const Expr begin = expr_of(first, where);
    return concatenate(
        {slice_of_axis(x, at, Slice{begin, {}}, where), slice_of_axis(x, at, Slice{{}, begin}, where)}, at,
        where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr stack(const std::vector<Expr>& parts, int axis, Where where) try {
    if (parts.empty()) throw ShapeError(where, "stack needs at least one part");
    std::vector<Expr> all;
    for (const Expr& part : parts) {
        require_present("stack", {&part}, where);
        require_alike(parts[0], part, where);
        all.push_back(expand_dims(part, axis, where));
    }
    return concatenate(all, axis, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr repeat(const Expr& x, std::int64_t count, int axis, Where where) try {
    require_present("repeat", {&x}, where);
    const auto at = static_cast<std::size_t>(checked_axis(axis, x, "repeat", where));
    if (count < 0)
        throw ShapeError(where, "repeat of " + describe(*x.node()) + " " + std::to_string(count) +
                                    " times: the number of times cannot be negative");
    Shape shape = type_of(x).shape, whole = shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, Int(count));
    whole[at] = whole[at] * count;
    return reshape_to(expand_to(expand_dims(x, static_cast<int>(at) + 1, where), shape, where), whole, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
