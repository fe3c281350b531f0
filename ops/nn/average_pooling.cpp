#include "ops/nn/average_pooling.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "bitale/ops.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/nn/pool_geometry.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"

namespace bitale {

namespace {

DType average_of(DType t) { return is_float(t) ? t : DType::float32; }

// A pooled tensor and its windows. Axis 0 is the height, 1 the width.
struct Windows {
    const Node& node;
    Where where;
    PoolGeometry geometry;
    std::size_t first;  // of the pooled axes
    std::array<Int, 2> length, results;

    explicit Windows(const Node& average)
        : node(average),
          where(average.where),
          geometry(PoolGeometry::of(average.attributes)),
          first(average.type.shape.size() - 2) {
        for (std::size_t i = 0; i < 2; ++i) {
            length[i] = average.inputs[0]->type.shape[first + i];
            results[i] = average.type.shape[first + i];
        }
    }

    int axis(std::size_t i) const { return static_cast<int>(first + i); }
    bool is_padded() const { return geometry.pad[0] > 0 || geometry.pad[1] > 0; }
    // They cover the image without gaps, but for what fills no window.
    bool are_tiles() const { return !is_padded() && geometry.window == geometry.stride; }
    Int with_padding(std::size_t i) const { return length[i] + 2 * geometry.pad[i]; }

    // How many places of each window along one axis lie in the image.
    Expr places_inside(std::size_t i, DType dtype) const {
        const auto whole = [&](std::int64_t x) { return Expr(x, where); };
        const auto combined = [&](const Op* op, const Expr& a, const Expr& b) {
            return compose(op, {a, b}, where).x;
        };
        const Expr number = wrap(make_iota(results[i], where)),
                   begin = combined(sub_op(), combined(mul_op(), number, whole(geometry.stride[i])),
                                    whole(geometry.pad[i])),
                   end = combined(minimum_op(), combined(add_op(), begin, whole(geometry.window[i])),
                                  expr_of(length[i], where));
        return cast(combined(sub_op(), end, combined(maximum_op(), begin, whole(0))), dtype, where);
    }

    Expr divided(const Expr& x) const {
        const DType dtype = x.dtype();
        if (!is_padded() || node.attributes.get<bool>("count_padding"))
            return compose(div_op(), {x, Expr(static_cast<double>(geometry.cells()), where)}, where).x;
        const Expr down = reshape_to(places_inside(0, dtype), {results[0], 1}, where);
        return compose(div_op(), {x, compose(mul_op(), {down, places_inside(1, dtype)}, where).x}, where).x;
    }

    // Slices of x along one axis, one for each place in a window, added up.
    Expr sums(const Expr& x, std::size_t i) const {
        Expr all;
        for (std::int64_t k = 0; k < geometry.window[i]; ++k) {
            const Expr part = wrap(make_slice(x.node(), axis(i), k, results[i], geometry.stride[i], where));
            all = k == 0 ? part : compose(add_op(), {all, part}, where).x;
        }
        return all;
    }

    Expr sums_of_tiles(const Expr& x) const {
        Expr whole = x;
        Shape tiles = type_of(x).shape;
        for (std::size_t i = 2; i-- > 0;) {
            whole = wrap(make_slice(whole.node(), axis(i), 0, results[i] * geometry.window[i], 1, where));
            tiles[first + i] = results[i];
            tiles.insert(tiles.begin() + static_cast<std::ptrdiff_t>(first + i + 1), Int(geometry.window[i]));
        }
        return sum(reshape_to(whole, tiles, where), {axis(0) + 1, axis(1) + 2}, {}, where);
    }

    // Each result at every place of its window.
    Expr spread(const Expr& g, std::size_t i) const {
        const std::size_t rank = type_of(g).shape.size();
        Shape shape = type_of(g).shape;
        shape[first + i] = with_padding(i);
        Expr all;
        for (std::int64_t k = 0; k < geometry.window[i]; ++k) {
            std::vector<Int> start(rank, Int(0));
            std::vector<std::int64_t> step(rank, 1);
            start[first + i] = k;
            step[first + i] = geometry.stride[i];
            const Expr part =
                apply(place_slice_op(), {g}, {{"start", start}, {"step", step}, {"shape", shape}}, where);
            all = k == 0 ? part : compose(add_op(), {all, part}, where).x;
        }
        return wrap(make_slice(all.node(), axis(i), geometry.pad[i], length[i], 1, where));
    }
};

NodePtr decompose_average(const NodePtr& node) {
    const Windows windows(*node);
    Expr x = cast(wrap(node->inputs[0]), accumulator_of(node->type.dtype), node->where);
    if (windows.are_tiles()) {
        x = windows.sums_of_tiles(x);
    } else {
        std::vector<std::pair<int, int>> widths(node->type.shape.size(), {0, 0});
        for (std::size_t i = 0; i < 2; ++i) {
            const int pad = static_cast<int>(windows.geometry.pad[i]);
            widths[windows.first + i] = {pad, pad};
        }
        if (windows.is_padded()) x = pad(x, widths, 0, node->where);
        x = windows.sums(windows.sums(x, 1), 0);
    }
    return cast(windows.divided(x), node->type.dtype, node->where).node();
}

Nodes gradient_average(const NodePtr& node, const NodePtr& g) {
    const Windows windows(*node);
    const Expr each = windows.divided(wrap(g));
    return {windows.spread(windows.spread(each, 1), 0).node()};
}

Array evaluate_average(const Node& node, const std::vector<Array>& inputs) {
    const PoolGeometry geometry = PoolGeometry::of(node.attributes);
    const Array x = inputs[0].as(DType::float64);
    Array r(DType::float64, static_dims(node.type.shape));
    const double* const from = static_cast<const double*>(x.data());
    double* const to = static_cast<double*>(r.mutable_data());
    std::vector<std::int64_t> places(static_cast<std::size_t>(r.size()), 0);
    geometry.for_each_cell(x.shape(), r.shape(), [&](std::int64_t out, std::int64_t, std::int64_t in) {
        to[out] += from[in];
        ++places[static_cast<std::size_t>(out)];
    });
    const bool all = node.attributes.get<bool>("count_padding");
    for (std::int64_t i = 0; i < r.size(); ++i)
        to[i] /= static_cast<double>(all ? geometry.cells() : places[static_cast<std::size_t>(i)]);
    return r;
}

}  // namespace

const Op* average_pool_op() {
    static const Op* op = register_op({
        .name = "average_pool",
        .kind = OpKind::composite,
        .arity = 1,
        .infer =
            [](const Nodes& inputs, const Attributes& attributes, Where where) {
                return Type{average_of(inputs[0]->type.dtype),
                            pooled_shape("average_pool", inputs[0], PoolGeometry::of(attributes), where)};
            },
        .equalities = [](const Node& node) { return window_fits("average_pool", node); },
        .gradient = gradient_average,
        .evaluate = evaluate_average,
        .decompose = decompose_average,
    });
    return op;
}

Expr average_pool(const Expr& x, Size2 window, AveragePoolOptions options, Where where) try {
    require_present("average_pool", {&x}, where);
    Attributes attributes =
        checked_geometry("average_pool", window, options.stride.value_or(window), options.pad, where)
            .attributes();
    attributes.set("count_padding", options.count_padding);
    return apply(average_pool_op(), {x}, std::move(attributes), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
