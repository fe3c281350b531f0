#include "ops/shape/join.h"

#include <cmath>

#include "graph/base/numbers.h"
#include "graph/base/text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"
#include "ops/shape/slice.h"

namespace bitale {

std::vector<Int> starts_of_parts(const Nodes& parts, std::size_t axis) {
    std::vector<Int> lengths;
    for (const NodePtr& part : parts) lengths.push_back(part->type.shape[axis]);
    return starts_of(lengths);
}

namespace {

using Widths = std::vector<std::int64_t>;

// ---- concat
// -----------------------------------------------------------------------------------------------------

std::size_t axis_of(const Attributes& a) { return static_cast<std::size_t>(a.get<std::int64_t>("axis")); }

// Of a part with an axis less than another one.
std::string cure_of_rank(const Node& part, const char* place, std::size_t axis) {
    return "; write expand_dims(" + (part.name.empty() ? place : printable(part.name)) + ", " +
           std::to_string(axis) + ")";
}

Type infer_concat(const Nodes& parts, const Attributes& attributes, Where where) {
    BITALE_CHECK(!parts.empty(), "concat of nothing");
    const std::size_t axis = axis_of(attributes);
    Type type = parts[0]->type;
    for (std::size_t k = 1; k < parts.size(); ++k) {
        const Type& part = parts[k]->type;
        const auto operands = [&] {
            return "concatenate of " + describe(*parts[0]) + " and " + describe(*parts[k]);
        };
        if (part.dtype != type.dtype) {
            const bool casts_first = is_float(part.dtype) && !is_float(type.dtype);
            throw TypeError(where, operands() + ": the parts must have one dtype; write " +
                                       (casts_first ? cast_text(parts[0], part.dtype, "the first part")
                                                    : cast_text(parts[k], type.dtype, "the other")));
        }
        if (part.rank() != type.rank())
            throw ShapeError(
                where, operands() + ": the ranks differ, " + std::to_string(type.rank()) + " and " +
                           std::to_string(part.rank()) +
                           (part.rank() + 1 == type.rank()   ? cure_of_rank(*parts[k], "the other", axis)
                            : type.rank() + 1 == part.rank() ? cure_of_rank(*parts[0], "the first part", axis)
                                                             : ""));
        for (std::size_t i = 0; i < part.shape.size(); ++i) {
            const Int &length = part.shape[i], &first = parts[0]->type.shape[i];
            if (i != axis && never_equal(length, first))
                throw ShapeError(where,
                                 operands() + " along axis " + std::to_string(axis) +
                                     ": all other axes must have equal lengths, but " +
                                     unlike_lengths(*parts[0], i, first.text(), *parts[k], i, length.text()));
        }
    }
    type.shape[axis] = starts_of_parts(parts, axis).back();
    return type;
}

std::vector<Equality> concat_equalities(const Node& node) {
    std::vector<Equality> r;
    const std::size_t axis = axis_of(node.attributes);
    for (std::size_t k = 1; k < node.inputs.size(); ++k)
        for (std::size_t i = 0; i < node.type.shape.size(); ++i)
            if (i != axis)
                demand_equal(r, node.type.shape[i], node.inputs[k]->type.shape[i],
                             "concatenate of " + describe(*node.inputs[0]) + " and " +
                                 describe(*node.inputs[k]) + " along axis " + std::to_string(axis) +
                                 ": all other axes must have equal lengths, but " +
                                 unlike_lengths(*node.inputs[0], i, *node.inputs[k], i));
    return r;
}

Nodes gradient_concat(const NodePtr& node, const NodePtr& g) {
    Nodes r;
    const std::size_t axis = axis_of(node->attributes);
    const std::vector<Int> starts = starts_of_parts(node->inputs, axis);
    for (std::size_t k = 0; k < node->inputs.size(); ++k)
        r.push_back(make_slice(g, static_cast<int>(axis), starts[k], node->inputs[k]->type.shape[axis], 1,
                               node->where));
    return r;
}

Nest nest_concat(const Node& node) {
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.dtype = node.type.dtype;
    const std::size_t axis = axis_of(node.attributes);
    const std::vector<Int> at = variables_of(nest.parallel), starts = starts_of_parts(node.inputs, axis);
    // The last part is guarded too: code that computes both sides of a choice may not read outside.
    nest.body = scalar_integer(nest.dtype, 0);
    for (std::size_t k = node.inputs.size(); k-- > 0;) {
        const Int& count = node.inputs[k]->type.shape[axis];
        std::vector<Int> from = at;
        from[axis] = at[axis] - starts[k];
        if (node.inputs.size() == 1)
            nest.body = scalar_read(nest.dtype, 0, from);
        else if (!count.is(0))
            nest.body = scalar_read(nest.dtype, static_cast<int>(k), from, {{from[axis], 0, count}},
                                    std::move(nest.body));
    }
    return nest;
}

Array evaluate_concat(const Node& node, const std::vector<Array>& parts) {
    const std::size_t axis = axis_of(node.attributes);
    Dims shape = parts[0].shape();
    shape[axis] = 0;
    for (const Array& part : parts) shape[axis] += part.shape()[axis];
    Array r(parts[0].dtype(), shape);
    std::int64_t start = 0;
    for (const Array& part : parts) {
        std::int64_t from = 0;
        for_each_index(part.shape(), [&](Dims at) {
            at[axis] += start;
            copy_element(r, linear_of(at, shape), part, from++);
        });
        start += part.shape()[axis];
    }
    return r;
}

// ---- pad
// --------------------------------------------------------------------------------------------------------

Type infer_pad(const Nodes& inputs, const Attributes& attributes, Where) {
    const Type& x = inputs[0]->type;
    const Widths &before = attributes.get<Widths>("before"), &after = attributes.get<Widths>("after");
    BITALE_CHECK(before.size() == x.shape.size() && after.size() == x.shape.size(),
                 "pad needs widths for each axis");
    Type type = x;
    for (std::size_t i = 0; i < before.size(); ++i) type.shape[i] = x.shape[i] + (before[i] + after[i]);
    return type;
}

Nest nest_pad(const Node& node) {
    const Shape& from = node.inputs[0]->type.shape;
    const Widths &before = node.attributes.get<Widths>("before"),
                 &after = node.attributes.get<Widths>("after");
    std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = variables_of(loops);
    std::vector<Guard> guards;
    for (std::size_t i = 0; i < at.size(); ++i) {
        at[i] = at[i] - before[i];
        if (before[i] || after[i]) guards.push_back({at[i], 0, from[i]});
    }
    Scalar outside =
        guards.empty() ? nullptr : scalar_constant(node.type.dtype, node.attributes.get<double>("value"));
    return view_nest(node, std::move(loops), std::move(at), std::move(guards), std::move(outside));
}

Array evaluate_pad(const Node& node, const std::vector<Array>& inputs) {
    const Array& x = inputs[0];
    const Widths& before = node.attributes.get<Widths>("before");
    const Array border = Array(node.attributes.get<double>("value")).as(x.dtype());
    Dims from(before.size());
    Array r(x.dtype(), static_dims(node.type.shape));
    std::int64_t to = 0;
    for_each_index(r.shape(), [&](const Dims& at) {
        bool inside = true;
        for (std::size_t i = 0; i < from.size(); ++i) {
            from[i] = at[i] - before[i];
            inside &= from[i] >= 0 && from[i] < x.shape()[i];
        }
        if (inside)
            copy_element(r, to++, x, linear_of(from, x.shape()));
        else
            copy_element(r, to++, border, 0);
    });
    return r;
}

Nodes gradient_pad(const NodePtr& node, const NodePtr& g) {
    const Shape& from = node->inputs[0]->type.shape;
    const Widths& before = node->attributes.get<Widths>("before");
    NodePtr part = g;
    for (std::size_t i = 0; i < from.size(); ++i)
        part = make_slice(part, static_cast<int>(i), before[i], from[i], 1, node->where);
    return {part};
}

}  // namespace

const Op* concat_op() {
    static const Op* op = register_op({
        .name = "concat",
        .title = "concatenate",
        .kind = OpKind::view,
        .infer = infer_concat,
        .equalities = concat_equalities,
        .gradient = gradient_concat,
        .evaluate = evaluate_concat,
        .nest = nest_concat,
    });
    return op;
}

const Op* pad_op() {
    static const Op* op = register_op({
        .name = "pad",
        .kind = OpKind::view,
        .arity = 1,
        .infer = infer_pad,
        .gradient = gradient_pad,
        .evaluate = evaluate_pad,
        .nest = nest_pad,
    });
    return op;
}

Expr concatenate(const std::vector<Expr>& parts, int axis, Where where) try {
    if (parts.empty()) throw ShapeError(where, "concatenate needs at least one part");
    for (const Expr& part : parts) require_present("concatenate", {&part}, where);
    const std::int64_t at = checked_axis(axis, parts[0], "concatenate", where);
    return apply(concat_op(), parts, {{"axis", at}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr pad(const Expr& x, const std::vector<std::pair<int, int>>& widths, double value, Where where) try {
    require_present("pad", {&x}, where);
    if (static_cast<int>(widths.size()) != x.rank())
        throw ShapeError(where, "pad of " + describe(*x.node()) +
                                    " needs a pair (before, after) for each of its " +
                                    std::to_string(x.rank()) + " axes, not " + std::to_string(widths.size()));
    Widths before, after;
    for (const auto& [low, high] : widths) {
        if (low < 0 || high < 0)
            throw ShapeError(where, "pad of " + describe(*x.node()) + " by (" + std::to_string(low) + ", " +
                                        std::to_string(high) +
                                        "): widths cannot be negative; use a Slice to cut");
        before.push_back(low);
        after.push_back(high);
    }
    if (!is_float(x.dtype()) && Array(value).as(x.dtype()).item<double>() != value)
        type_error(where, "pad",
                   "the value " + number_text(value) + " does not fit the dtype of " + describe(*x.node()) +
                       "; cast x to a dtype that holds it");
    return apply(pad_op(), {x}, {{"before", before}, {"after", after}, {"value", value}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
