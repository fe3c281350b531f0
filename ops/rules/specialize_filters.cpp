// Convolutions with filters that are known: stencils, blurs, differences.
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "bitale/ops.h"
#include "ops/dsl/build.h"
#include "ops/linear/conv.h"
#include "ops/linear/conv_geometry.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"

namespace bitale {

using namespace algebra;

namespace {

using Numbers = std::vector<std::int64_t>;

// Of one channel, and so small that their taps are terms of an expression.
bool are_few_taps(const Array& filters) {
    constexpr std::int64_t most_taps = 32, most_filters = 4;
    const Dims& shape = filters.shape();
    if (shape.size() != 4 || shape[1] != 1 || shape[0] < 1 || shape[0] > most_filters) return false;
    const std::int64_t size = shape[2] * shape[3];
    for (std::int64_t filter = 0; filter < shape[0]; ++filter) {
        std::int64_t taps = 0;
        for (std::int64_t i = filter * size; i < (filter + 1) * size; ++i) {
            if (!std::isfinite(filters.at(i))) return false;
            taps += filters.at(i) != 0 ? 1 : 0;
        }
        if (taps == 0 || taps > most_taps) return false;
    }
    return true;
}

// What each tap meets, times the tap, in the order of the filter.
Expr sum_of_taps(const NodePtr& padded, const Array& filters, std::int64_t filter, const Node& conv) {
    const ConvGeometry geometry = ConvGeometry::of(conv.attributes);
    const std::int64_t height = filters.shape()[2], width = filters.shape()[3];
    std::optional<Expr> sum;
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x) {
            const double tap = filters.at((filter * height + y) * width + x);
            if (tap == 0) continue;
            NodePtr part = padded;
            for (const int axis : {0, 1})
                part = make_slice(part, 2 + axis,
                                  geometry.place(axis, 0, axis == 0 ? y : x, axis == 0 ? height : width) +
                                      geometry.pad[static_cast<std::size_t>(axis)],
                                  conv.type.shape[static_cast<std::size_t>(2 + axis)],
                                  geometry.stride[static_cast<std::size_t>(axis)], conv.where);
            const Expr term =
                tap == 1 ? wrap(part) : wrap(part) * strengthen(Expr(tap), conv.type.dtype, conv.where);
            sum = sum ? *sum + term : term;
        }
    return *sum;
}

NodePtr by_taps(const Match& m, const Pattern& x, const Pattern& w) {
    const Node& conv = *m.root();
    if (conv.type.rank() != 4 || !is_constant(m[w]) || !are_few_taps(constant_value(m[w]))) return nullptr;
    const Array& filters = constant_value(m[w]);
    const ConvGeometry geometry = ConvGeometry::of(conv.attributes);
    const Numbers around{0, 0, geometry.pad[0], geometry.pad[1]};
    const NodePtr padded =
        geometry.pad[0] + geometry.pad[1] > 0
            ? make_node(pad_op(), {m[x]}, {{"before", around}, {"after", around}, {"value", 0.0}}, conv.where)
            : m[x];
    std::vector<Expr> maps;
    for (std::int64_t k = 0; k < filters.shape()[0]; ++k)
        maps.push_back(sum_of_taps(padded, filters, k, conv));
    return maps.size() == 1 ? maps[0].node() : concatenate(maps, 1, conv.where).node();
}

}  // namespace

std::vector<Rule> filter_rules() {
    const Pattern x = any("x"), w = any("w");
    return {{"conv-known-filters", Pattern::apply("conv", {x, w}),
             [=](const Match& m) { return by_taps(m, x, w); }, Tag::skips_zeros}};
}

}  // namespace bitale
