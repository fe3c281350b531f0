#include "ops/shape/view.h"

#include <algorithm>
#include <numeric>

#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"
#include "ops/shape/gather.h"
#include "ops/shape/join.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "ops/shape/sort.h"
#include "ops/shape/unpack.h"

namespace bitale {

namespace {

const Shape& shape_attribute(const Attributes& a) { return a.get<std::vector<Int>>("shape"); }

// ---- reshape
// ----------------------------------------------------------------------------------------------------

Type infer_reshape(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    const Shape& shape = shape_attribute(attributes);
    reject_negative(shape, "reshape", where);
    if (never_equal(count_of(x.shape), count_of(shape)))
        throw ShapeError(where, "reshape of " + describe(*inputs[0]) + " to " + text_of(shape) + ": " +
                                    count_of(x.shape).text() + " elements cannot fill " +
                                    count_of(shape).text() +
                                    " places; give one length as -1 to have it computed");
    return {x.dtype, shape};
}

// The length that was given as -1, which is what the others leave of so many elements; -1 where there is
// none.
int computed_length(const Shape& shape, const Int& elements) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
        Int others = 1;
        for (std::size_t j = 0; j < shape.size(); ++j)
            if (j != i) others = others * shape[j];
        if (!shape[i].is_constant() && shape[i] == floordiv(elements, max(others, 1)))
            return static_cast<int>(i);
    }
    return -1;
}

std::vector<Equality> reshape_equalities(const Node& node) {
    std::vector<Equality> r;
    const Shape &from = node.inputs[0]->type.shape, &to = node.type.shape;
    const Int elements = count_of(from);
    if (elements == count_of(to)) return r;
    const int computed = computed_length(to, elements);
    std::string shape;
    for (std::size_t i = 0; i < to.size(); ++i)
        shape += (i ? ", " : "") + (static_cast<int>(i) == computed ? "-1" : to[i].text());
    demand_equal(
        r, elements, count_of(to),
        "reshape of " + describe(*node.inputs[0]) + " to [" + shape + "]: it has " + number_found() +
            " elements, and " +
            (computed < 0 ? "the new shape has " + number_there()
                          : "no length in place of the -1 makes as many: the largest that fits makes " +
                                number_there()));
    return r;
}

// Positions of the axes that are not known to have length 1: only these take part in an index.
std::vector<std::size_t> long_axes(const Shape& shape) {
    std::vector<std::size_t> r;
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (!shape[i].is(1)) r.push_back(i);
    return r;
}

// The index into `from` of the element that is at `at` in `to`. The axes are cut into the smallest runs of
// equal products, so that axes which stay, or are joined or split beside others, never meet in one linear
// index.
std::vector<Int> reshaped_index(const Shape& from, const Shape& to, const std::vector<Int>& at) {
    const std::vector<std::size_t> a = long_axes(from), b = long_axes(to);
    std::vector<Int> index(from.size(), 0);
    std::size_t p = 0, q = 0;
    while (p < a.size()) {
        std::size_t p_end = a.size(), q_end = b.size();
        Int left = 1;
        for (std::size_t i = p; i < a.size() && p_end == a.size() && q_end == b.size(); ++i) {
            left = left * from[a[i]];
            Int right = 1;
            for (std::size_t j = q; j < b.size(); ++j) {
                right = right * to[b[j]];
                if (right == left) {
                    p_end = i + 1;
                    q_end = j + 1;
                    break;
                }
            }
        }
        Shape source, target;
        std::vector<Int> variables;
        for (std::size_t i = p; i < p_end; ++i) source.push_back(from[a[i]]);
        for (std::size_t j = q; j < q_end; ++j) {
            target.push_back(to[b[j]]);
            variables.push_back(at[b[j]]);
        }
        const std::vector<Int> found = axis_indices(linear_index(variables, target), source);
        for (std::size_t i = p; i < p_end; ++i) index[a[i]] = found[i - p];
        p = p_end;
        q = q_end;
    }
    return index;
}

Nest nest_reshape(const Node& node) {
    std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = reshaped_index(node.inputs[0]->type.shape, node.type.shape, variables_of(loops));
    return view_nest(node, std::move(loops), std::move(at));
}

// ---- permute
// ----------------------------------------------------------------------------------------------------

const std::vector<std::int64_t>& axes_attribute(const Attributes& a) {
    return a.get<std::vector<std::int64_t>>("axes");
}

Type infer_permute(const Nodes& inputs, const Attributes& attributes, Where) {
    const Type& x = inputs[0]->type;
    const std::vector<std::int64_t>& axes = axes_attribute(attributes);
    BITALE_CHECK(axes.size() == x.shape.size(), "permute needs one axis per axis of its operand");
    Shape shape;
    for (const std::int64_t axis : axes) shape.push_back(x.shape.at(static_cast<std::size_t>(axis)));
    return {x.dtype, shape};
}

Nest nest_permute(const Node& node) {
    std::vector<Loop> loops = loops_over(node.type.shape);
    const std::vector<std::int64_t>& axes = axes_attribute(node.attributes);
    std::vector<Int> at(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) at[static_cast<std::size_t>(axes[i])] = loops[i].variable;
    return view_nest(node, std::move(loops), std::move(at));
}

Array evaluate_permute(const Node& node, const std::vector<Array>& inputs) {
    const std::vector<std::int64_t>& axes = axes_attribute(node.attributes);
    const Array& x = inputs[0];
    Dims shape, from(axes.size());
    for (const std::int64_t axis : axes) shape.push_back(x.shape()[static_cast<std::size_t>(axis)]);
    return copied(x, shape, [&](const Dims& at) {
        for (std::size_t i = 0; i < axes.size(); ++i) from[static_cast<std::size_t>(axes[i])] = at[i];
        return linear_of(from, x.shape());
    });
}

// ---- expand
// -----------------------------------------------------------------------------------------------------

Type infer_expand(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    const Shape& shape = shape_attribute(attributes);
    reject_negative(shape, "expand", where);
    bool fits = x.shape.size() <= shape.size();
    for (std::size_t i = 0; fits && i < x.shape.size(); ++i) {
        const Int& length = x.shape[i];
        fits = length.is(1) || !never_equal(length, shape[i + shape.size() - x.shape.size()]);
    }
    if (!fits)
        throw ShapeError(where,
                         describe(*inputs[0]) + " cannot be broadcast to " + text_of(shape) +
                             ": axes are matched from the last one, and each must have the same length or "
                             "exactly 1");
    return {x.dtype, shape};
}

std::vector<Equality> expand_equalities(const Node& node) {
    std::vector<Equality> r;
    const Shape &from = node.inputs[0]->type.shape, &to = node.type.shape;
    const std::size_t missing = to.size() - from.size();
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!from[i].is(1))
            demand_equal(r, from[i], to[i + missing],
                         describe(*node.inputs[0]) + " is broadcast to " + text_of(to) +
                             ": the lengths must be equal, but axis " + std::to_string(i) + " of it has " +
                             "length " + number_found() + " and axis " + std::to_string(i + missing) +
                             " of the shape has length " + number_there());
    return r;
}

Nodes gradient_expand(const NodePtr& node, const NodePtr& g) {
    const NodePtr& x = node->inputs[0];
    const std::size_t missing = node->type.shape.size() - x->type.shape.size();
    std::vector<std::int64_t> repeated;
    for (std::size_t i = 0; i < node->type.shape.size(); ++i)
        if (i < missing || (x->type.shape[i - missing].is(1) && !node->type.shape[i].is(1)))
            repeated.push_back(static_cast<std::int64_t>(i));
    return {make_reshape(make_sum(g, repeated, node->where), x->type.shape, node->where)};
}

Nest nest_expand(const Node& node) {
    std::vector<Loop> loops = loops_over(node.type.shape);
    const Shape& from = node.inputs[0]->type.shape;
    std::vector<Int> at;
    for (std::size_t i = 0; i < from.size(); ++i)
        at.push_back(from[i].is(1) ? Int(0) : loops[i + loops.size() - from.size()].variable);
    return view_nest(node, std::move(loops), std::move(at));
}

Array evaluate_expand(const Node& node, const std::vector<Array>& inputs) {
    const Array& x = inputs[0];
    const Dims shape = static_dims(node.type.shape);
    const std::size_t missing = shape.size() - x.shape().size();
    Dims from(x.shape().size());
    return copied(x, shape, [&](const Dims& at) {
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = x.shape()[i] == 1 ? 0 : at[i + missing];
        return linear_of(from, x.shape());
    });
}

// ---- flip
// -------------------------------------------------------------------------------------------------------

std::size_t axis_attribute(const Attributes& a) {
    return static_cast<std::size_t>(a.get<std::int64_t>("axis"));
}

Nest nest_flip(const Node& node) {
    std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = variables_of(loops);
    const std::size_t axis = axis_attribute(node.attributes);
    at[axis] = node.type.shape[axis] - 1 - at[axis];
    return view_nest(node, std::move(loops), std::move(at));
}

Array evaluate_flip(const Node& node, const std::vector<Array>& inputs) {
    const Array& x = inputs[0];
    const std::size_t axis = axis_attribute(node.attributes);
    return copied(x, x.shape(), [&](Dims at) {
        at[axis] = x.shape()[axis] - 1 - at[axis];
        return linear_of(at, x.shape());
    });
}

std::vector<std::int64_t> axes_from(const Expr& x, const std::vector<int>& axes, Where where) {
    const int rank = x.rank();
    std::vector<std::int64_t> r;
    if (axes.empty())
        for (int i = rank - 1; i >= 0; --i) r.push_back(i);
    for (const int axis : axes) r.push_back(checked_axis(axis, x, "transpose", where));
    std::vector<std::int64_t> sorted = r;
    std::sort(sorted.begin(), sorted.end());
    const bool unique = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (static_cast<int>(r.size()) != rank || !unique)
        throw ShapeError(where, "transpose of " + describe(*x.node()) + ": the axes " + text_of(r) +
                                    " are not a permutation of its " + std::to_string(rank) +
                                    " axes; name each axis once");
    return r;
}

// As the view, but in memory.
Op copy_by(const Op& view, const char* name) {
    Op copy = view;
    copy.name = copy.title = name;
    copy.is_stored = true;
    return copy;
}

std::vector<Int> lengths_from(const std::vector<Expr>& shape, const char* op, Where where) {
    std::vector<Int> r;
    for (const Expr& length : shape) r.push_back(length_from(length, op, where));
    return r;
}

}  // namespace

const Op* reshape_op() {
    static const Op* op = register_op({
        .name = "reshape",
        .kind = OpKind::view,
        .arity = 1,
        .infer = infer_reshape,
        .equalities = reshape_equalities,
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_reshape(g, node->inputs[0]->type.shape, node->where)};
            },
        .evaluate =
            [](const Node& node, const std::vector<Array>& inputs) {
                return inputs[0].reshaped(static_dims(node.type.shape));
            },
        .nest = nest_reshape,
    });
    return op;
}

const Op* permute_op() {
    static const Op* op = register_op({
        .name = "permute",
        .title = "transpose",
        .kind = OpKind::view,
        .arity = 1,
        .infer = infer_permute,
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_permute(g, inverse_axes(axes_attribute(node->attributes)), node->where)};
            },
        .evaluate = evaluate_permute,
        .nest = nest_permute,
    });
    return op;
}

const Op* transposed_copy_op() {
    static const Op* op = register_op(copy_by(*permute_op(), "transposed copy"));
    return op;
}

const Op* expand_op() {
    static const Op* op = register_op({
        .name = "expand",
        .title = "broadcast_to",
        .kind = OpKind::view,
        .arity = 1,
        .infer = infer_expand,
        .equalities = expand_equalities,
        .gradient = gradient_expand,
        .evaluate = evaluate_expand,
        .nest = nest_expand,
    });
    return op;
}

const Op* repeated_copy_op() {
    static const Op* op = register_op(copy_by(*expand_op(), "repeated copy"));
    return op;
}

const Op* flip_op() {
    static const Op* op = register_op({
        .name = "flip",
        .kind = OpKind::view,
        .arity = 1,
        .infer =
            [](const Nodes& inputs, const Attributes& attributes, Where) {
                BITALE_CHECK(axis_attribute(attributes) < inputs[0]->type.shape.size(),
                             "flip of a missing axis");
                return inputs[0]->type;
            },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_node(flip_op(), {g}, node->attributes, node->where)};
            },
        .evaluate = evaluate_flip,
        .nest = nest_flip,
    });
    return op;
}

std::vector<std::int64_t> inverse_axes(const std::vector<std::int64_t>& axes) {
    std::vector<std::int64_t> r(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i)
        r[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
    return r;
}

NodePtr make_reshape(const NodePtr& x, const Shape& shape, Where where) {
    return x->type.shape == shape ? x : make_node(reshape_op(), {x}, {{"shape", shape}}, where);
}

NodePtr make_permute(const NodePtr& x, const std::vector<std::int64_t>& axes, Where where) {
    return std::is_sorted(axes.begin(), axes.end()) ? x
                                                    : make_node(permute_op(), {x}, {{"axes", axes}}, where);
}

NodePtr make_transposed_copy(const NodePtr& x, const std::vector<std::int64_t>& axes, Where where) {
    return make_node(transposed_copy_op(), {x}, {{"axes", axes}}, where);
}

NodePtr make_expand(const NodePtr& x, const Shape& shape, Where where) {
    return x->type.shape == shape ? x : make_node(expand_op(), {x}, {{"shape", shape}}, where);
}

NodePtr make_repeated_copy(const NodePtr& x, const Shape& shape, Where where) {
    return make_node(repeated_copy_op(), {x}, {{"shape", shape}}, where);
}

NodePtr make_zeros(DType dtype, const Shape& shape, Where where) {
    return make_expand(make_constant(Array(dtype, Dims{}), where), shape, where);
}

void register_shape_ops() {
    for (const Op* op :
         {reshape_op(),   permute_op(),  transposed_copy_op(), expand_op(),     repeated_copy_op(),
          flip_op(),      slice_op(),    place_slice_op(),     rows_op(),       place_rows_op(),
          set_slice_op(), set_rows_op(), concat_op(),          pad_op(),        gather_op(),
          scatter_op(),   set_list_op(), argsort_op(),         take_along_op(), put_along_op(),
          sum_runs_op(),  iota_op(),     length_op(),          range_op(),      unpack_op()})
        BITALE_CHECK(op, "an op of ops/shape is not registered");
}

// ---- What users call
// --------------------------------------------------------------------------------------------

Expr reshape(const Expr& x, const std::vector<Expr>& shape, Where where) try {
    require_present("reshape", {&x}, where);
    std::vector<Int> lengths = lengths_from(shape, "reshape", where);
    const auto open = [](const Int& length) { return length.is(-1); };
    const auto missing = std::find_if(lengths.begin(), lengths.end(), open);
    if (missing != lengths.end()) {
        if (std::count_if(lengths.begin(), lengths.end(), open) > 1)
            throw ShapeError(where, "reshape of " + describe(*x.node()) + " to " + text_of(lengths) +
                                        ": only one length may be -1");
        const Int total = count_of(type_of(x).shape);
        Int others = 1;
        for (auto it = lengths.begin(); it != lengths.end(); ++it)
            if (it != missing) others = others * *it;
        if (others.is(0))
            throw ShapeError(where,
                             "reshape to " + text_of(lengths) +
                                 ": beside a length of 0 any length fits; write a number instead of -1");
        Int length = floordiv(total, others);
        if (!(length * others == total)) length = floordiv(total, max(others, 1));
        if (never_equal(length * others, total))
            throw ShapeError(where, "reshape of " + describe(*x.node()) + " to " + text_of(lengths) + ": " +
                                        total.text() + " elements are no multiple of " + others.text());
        *missing = length;
    }
    return reshape_to(x, lengths, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr flatten(const Expr& x, int rank, Where where) try {
    require_present("flatten", {&x}, where);
    const Shape& shape = type_of(x).shape;
    if (rank < 1 || rank > std::max(x.rank(), 1))
        throw ShapeError(where, "flatten of " + describe(*x.node()) + " to " + std::to_string(rank) +
                                    " axes: from 1 to " + std::to_string(std::max(x.rank(), 1)) +
                                    " are possible");
    const auto kept = static_cast<std::size_t>(rank) - 1;
    Shape joined(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(kept));
    joined.push_back(count_of(Shape(shape.begin() + static_cast<std::ptrdiff_t>(kept), shape.end())));
    return reshape_to(x, joined, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr transpose(const Expr& x, const std::vector<int>& axes, Where where) try {
    require_present("transpose", {&x}, where);
    return wrap(make_permute(x.node(), axes_from(x, axes, where), where));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr expand_dims(const Expr& x, int axis, Where where) try {
    require_present("expand_dims", {&x}, where);
    Shape shape = type_of(x).shape;
    const int rank = x.rank();
    if (axis < -rank - 1 || axis > rank)
        throw IndexError(where, "expand_dims of " + describe(*x.node()) + ": there can be no axis " +
                                    std::to_string(axis) + "; of the result, " + axes_text(rank + 1));
    shape.insert(shape.begin() + checked_axis(axis, rank + 1, "expand_dims", where), Int(1));
    return reshape_to(x, shape, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

namespace {

// "[{colon, 0}]", which takes element 0 of an axis.
std::string index_of_first(int axis) {
    if (axis == 0) return "[0]";
    std::string s = "[{";
    for (int i = 0; i < axis; ++i) s += "colon, ";
    return s + "0}]";
}

}  // namespace

Expr squeeze(const Expr& x, int axis, Where where) try {
    require_present("squeeze", {&x}, where);
    Shape shape = type_of(x).shape;
    const int at = checked_axis(axis, x, "squeeze", where);
    if (!shape[static_cast<std::size_t>(at)].is(1))
        throw ShapeError(
            where, "squeeze drops an axis of length exactly 1, but axis " + std::to_string(at) + " of " +
                       describe(*x.node()) + " has the length " + shape[static_cast<std::size_t>(at)].text() +
                       "; declare the axis with length 1, or take its element 0: " + word_for(x, "x") +
                       index_of_first(at));
    shape.erase(shape.begin() + at);
    return reshape_to(x, shape, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr broadcast_to(const Expr& x, const std::vector<Expr>& shape, Where where) try {
    require_present("broadcast_to", {&x}, where);
    return expand_to(x, lengths_from(shape, "broadcast_to", where), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr channel(const Expr& x, Where where) try {
    require_present("channel", {&x}, where);
    if (x.rank() != 1)
        throw ShapeError(where, "channel turns a vector [c] into [1, c, 1, 1]; " + describe(*x.node()) +
                                    " has " + std::to_string(x.rank()) + " axes");
    return reshape_to(x, {1, type_of(x).shape[0], 1, 1}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr flip(const Expr& x, int axis, Where where) try {
    const std::int64_t at = checked_axis(axis, x, "flip", where);
    return apply(flip_op(), {x}, {{"axis", at}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr zeros_like(const Expr& x, Where where) try {
    require_present("zeros_like", {&x}, where);
    return wrap(make_zeros(x.dtype(), type_of(x).shape, where));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr ones_like(const Expr& x, Where where) try {
    require_present("ones_like", {&x}, where);
    return wrap(make_expand(make_constant(Array(1).as(x.dtype()), where), type_of(x).shape, where));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
