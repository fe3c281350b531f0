// Views: two of a kind in a row are one, and one that changes nothing is none.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/lengths.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using AxisList = std::vector<std::int64_t>;

NodePtr joined_permute(const NodePtr& x, const AxisList& inner, const AxisList& outer, Where where) {
    AxisList axes;
    for (const std::int64_t axis : outer) axes.push_back(inner[static_cast<std::size_t>(axis)]);
    return make_permute(x, axes, where);
}

// Slice of a slice: starts and steps compose axis by axis.
NodePtr joined_slice(const NodePtr& x, const Attributes& inner, const Attributes& outer, Where where) {
    const auto& start = inner.get<std::vector<Int>>("start");
    const auto& step = inner.get<AxisList>("step");
    std::vector<Int> starts;
    AxisList steps;
    for (std::size_t i = 0; i < start.size(); ++i) {
        starts.push_back(start[i] + outer.get<std::vector<Int>>("start")[i] * step[i]);
        steps.push_back(step[i] * outer.get<AxisList>("step")[i]);
    }
    Attributes attributes = outer;
    attributes.set("start", starts);
    attributes.set("step", steps);
    if (const Places places = joined_places(inner, outer); !places.empty()) attributes.set("places", places);
    return make_node(slice_op(), {x}, attributes, where);
}

// One concatenation of all parts. A loop that appends part after part makes a chain of concatenations, and in
// a chain each part would be guarded, and its place computed, once for each that follows.
NodePtr joined_concat(const NodePtr& root, const Nodes& consumed) {
    const std::unordered_set<NodePtr> inner(consumed.begin() + 1, consumed.end());
    Nodes parts;
    for (const NodePtr& part : root->inputs)
        if (inner.contains(part))
            parts.insert(parts.end(), part->inputs.begin(), part->inputs.end());
        else
            parts.push_back(part);
    return make_node(root->op, std::move(parts), root->attributes, root->where);
}

bool all_zero(const AxisList& widths) {
    for (const std::int64_t width : widths)
        if (width != 0) return false;
    return true;
}

// Whether each length is that of the longer shape or known to be 1: between the two there may be a length of
// which a call has to find that it is 1.
bool repeats_ones(const Shape& from, const Shape& to) {
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!from[i].is(1) && !(from[i] == to[i + to.size() - from.size()])) return false;
    return true;
}

}  // namespace

std::vector<Rule> view_rules() {
    const Pattern x = any("x");
    const auto same_shape = [x](const Match& m) { return m[x]->type.shape == m.root()->type.shape; };
    const Pattern permuted = permute(x), twice_permuted = permute(permuted);
    const Pattern sliced = slice(x), twice_sliced = slice(sliced);
    const Pattern flipped = flip(x), twice_flipped = flip(flipped);
    const Pattern joined = Pattern::nested("concat");
    const Pattern reshaped = reshape(reshape(x)), expanded = expand(expand(x)), padded = pad(x);
    return {
        {"reshape-same", reshape(x), x, Tag::exact, same_shape},
        {"reshape-reshape", reshaped, reshape(x).like(reshaped)},
        // One spelling for a repeated scalar, so that repetitions meet.
        {"reshape-scalar", reshape(x),
         [x](const Match& m) { return make_expand(m[x], m.root()->type.shape, m.root()->where); }, Tag::exact,
         [x](const Match& m) { return m[x]->type.rank() == 0 && m.root()->type.rank() > 0; }},
        {"expand-same", expand(x), x, Tag::exact, same_shape},
        {"expand-expand", expanded, expand(x).like(expanded), Tag::exact,
         [=](const Match& m) { return repeats_ones(m[x]->type.shape, m.root()->type.shape); }},
        {"permute-same", permuted, x, Tag::exact,
         [=](const Match& m) {
             const auto& axes = m[permuted]->attributes.get<AxisList>("axes");
             return std::is_sorted(axes.begin(), axes.end());
         }},
        {"permute-permute", twice_permuted,
         [=](const Match& m) {
             return joined_permute(m[x], m[permuted]->attributes.get<AxisList>("axes"),
                                   m[twice_permuted]->attributes.get<AxisList>("axes"), m.root()->where);
         }},
        {"slice-all", sliced, x, Tag::exact, [](const Match& m) { return takes_all(*m.root()); }},
        {"slice-slice", twice_sliced,
         [=](const Match& m) {
             return joined_slice(m[x], m[sliced]->attributes, m[twice_sliced]->attributes, m.root()->where);
         }},
        {"flip-flip", twice_flipped, x, Tag::exact,
         [=](const Match& m) { return m[flipped]->attributes == m[twice_flipped]->attributes; }},
        {"pad-nothing", padded, x, Tag::exact,
         [](const Match& m) {
             return all_zero(m.root()->attributes.get<AxisList>("before")) &&
                    all_zero(m.root()->attributes.get<AxisList>("after"));
         }},
        {"concat-one", concat(x), x},
        {"concat-concat", joined, [](const Match& m) { return joined_concat(m.root(), m.consumed()); }},
    };
}

NodePtr repeated_to(const NodePtr& replacement, const Type& wanted, Where where) {
    const Shape &from = replacement->type.shape, &to = wanted.shape;
    if (replacement->type.dtype != wanted.dtype || from.size() > to.size()) return nullptr;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!from[i].is(1) && never_equal(from[i], to[i + to.size() - from.size()])) return nullptr;
    return make_expand(replacement, to, where);
}

}  // namespace bitale
