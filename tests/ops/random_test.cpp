// Random numbers: Philox's published vectors, distributions, streams, dropout.
#include <algorithm>
#include <cmath>
#include <set>

#include "bitale/train.h"
#include "graph/ir/shared.h"
#include "ops/nn/dropout.h"
#include "ops/random/distributions.h"
#include "ops/random/philox.h"
#include "ops/rules/phases.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Moments {
    double mean = 0, deviation = 0, lowest = INFINITY, highest = -INFINITY;
};

Moments moments_of(const Array& x) {
    Moments m;
    for (const double v : x.to_vector<double>()) {
        m.mean += v / static_cast<double>(x.size());
        m.lowest = std::min(m.lowest, v);
        m.highest = std::max(m.highest, v);
    }
    for (const double v : x.to_vector<double>())
        m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(x.size());
    m.deviation = std::sqrt(m.deviation);
    return m;
}

// The value as the phases of rewriting leave it.
Array optimized(const Expr& y) {
    Graph graph;
    graph.outputs = {y.node()};
    optimize(graph);
    return evaluated(wrap(graph.outputs[0]));
}

// The composite's own evaluation against that of its parts, rewritten or not.
void require_decomposes(const Expr& y) {
    const Array whole = evaluated(y), parts = evaluated(wrap(y.node()->op->decompose(y.node())));
    REQUIRE(whole.shape() == parts.shape());
    for (std::int64_t i = 0; i < whole.size(); ++i) REQUIRE(whole.at(i) == Approx(parts.at(i)).margin(1e-6));
    require_same(optimized(y), parts);
}

}  // namespace

TEST_CASE("Philox-4x32-10 gives the vectors published with it") {
    using philox::Words;
    const auto block = [](Words counter, philox::KeyWords key) { return philox::block(counter, key); };
    CHECK(block({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
    CHECK(philox::word(0, 0, 0, 3) == 0x9b00dbd8);
    CHECK(philox::word(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, 1) == 0x94fdcceb);
}

TEST_CASE("24 bits fill the unit interval and stay in it") {
    CHECK(philox::unit(0) == 0);
    CHECK(philox::unit(0xffffffff) == 1 - 0x1p-24);
    CHECK(static_cast<float>(philox::unit(0xffffffff)) < 1);
    CHECK(philox::positive_unit(0) == 0x1p-24);
    CHECK(philox::positive_unit(0xffffffff) == 1);
}

TEST_CASE("uniform numbers") {
    RandomStream stream(1);
    const Expr u = stream.uniform({100, 200});
    CHECK(u.dtype() == float32);
    CHECK(u.shape_text() == "[100, 200]");
    const Moments m = moments_of(evaluated(u));
    CHECK(m.mean == Approx(0.5).margin(0.01));
    CHECK(m.deviation == Approx(std::sqrt(1 / 12.0)).margin(0.01));
    CHECK(m.lowest >= 0);
    CHECK(m.highest < 1);
    const Moments shifted = moments_of(evaluated(stream.uniform({20000}, -3, 5)));
    CHECK(shifted.mean == Approx(1).margin(0.1));
    CHECK(shifted.lowest >= -3);
    CHECK(shifted.highest < 5);
    // An interval so narrow that rounding alone would reach its end.
    const Moments narrow = moments_of(evaluated(stream.uniform({2000}, 1, 1 + 0x1p-23)));
    CHECK(narrow.lowest == 1);
    CHECK(narrow.highest == 1);
    for (const Expr& e : {stream.uniform({3, 5}), stream.uniform({7}, -3, 5), stream.uniform({}, 2, 3),
                          stream.uniform({50}, 1, 1 + 0x1p-23), stream.uniform({0, 4})})
        require_decomposes(e);
}

TEST_CASE("normal numbers") {
    RandomStream stream(2);
    const Moments m = moments_of(evaluated(stream.normal({30000})));
    CHECK(m.mean == Approx(0).margin(0.02));
    CHECK(m.deviation == Approx(1).margin(0.02));
    CHECK(m.highest > 3);
    CHECK(m.lowest < -3);
    const Moments moved = moments_of(evaluated(stream.normal({30000}, 10, 0.5)));
    CHECK(moved.mean == Approx(10).margin(0.02));
    CHECK(moved.deviation == Approx(0.5).margin(0.02));
    for (const Expr& e : {stream.normal({3, 5}), stream.normal({7}, 10, 0.5), stream.normal({})})
        require_decomposes(e);
}

TEST_CASE("draws and seeds differ, equal ones repeat, a call moves on") {
    RandomStream a(1), again(1), b(2);
    const Expr first = a.uniform({8}), second = a.uniform({8});
    CHECK(same(evaluated(first), evaluated(first)));
    CHECK(same(evaluated(first), evaluated(again.uniform({8}))));
    CHECK_FALSE(same(evaluated(first), evaluated(second)));
    CHECK_FALSE(same(evaluated(first), evaluated(b.uniform({8}))));
    const Array before = evaluated(first);
    const Updates updates = a.updates();
    REQUIRE(updates.size() == 1);
    CHECK(updates[0].target.state() == a.counter().state());
    CHECK(updates[0].value.dtype() == uint64);
    CHECK(evaluated(updates[0].value).item<std::uint64_t>() == 1);
    a.counter().state()->value = Array(std::uint64_t{1});
    CHECK_FALSE(same(evaluated(first), before));
    // The element's index decides, not the shape.
    RandomStream flat(1), square(1);
    CHECK(evaluated(flat.uniform({12})).to_vector<float>() ==
          evaluated(square.uniform({3, 4})).to_vector<float>());
}

TEST_CASE("lengths may come from other tensors") {
    RandomStream stream(3);
    const Expr x = matrix("x");
    const Expr noisy = x + stream.normal({x.length(0), x.length(1)});
    CHECK(evaluated(noisy, {x}, {zeros({2, 5})}).shape() == Dims{2, 5});
}

TEST_CASE("dropout") {
    RandomStream stream(4);
    const Expr x = input(float64, 2, "x");
    const Expr y = dropout(x, 0.25, stream);
    const Array value = evaluated(y, {x}, {full_of({100, 100}, 3, float64)});
    std::int64_t kept = 0;
    for (const double v : value.to_vector<double>()) {
        REQUIRE((v == 0 || v == Approx(4)));
        kept += v != 0;
    }
    CHECK(static_cast<double>(kept) == Approx(7500).margin(200));
    const Array ones_in = sample(float64, {6, 5}, 1);
    const Array whole = evaluated(y, {x}, {ones_in});
    const Array parts = evaluated(wrap(y.node()->op->decompose(y.node())), {x}, {ones_in});
    for (std::int64_t i = 0; i < whole.size(); ++i) CHECK(whole.at(i) == Approx(parts.at(i)));
    // The gradient sees the same mask: dropout is linear.
    RandomStream fixed(5);
    const Expr z = dropout(x, 0.5, fixed);
    const Array g = evaluated(grad(sum(z), x), {x}, {full_of({6, 5}, 1, float64)});
    require_same(g, evaluated(z, {x}, {full_of({6, 5}, 1, float64)}));
    CHECK(same(evaluated(dropout(x, 0, stream), {x}, {ones_in}), ones_in));
    // Two uses of one draw share its mask, two draws do not; rewriting keeps it so.
    const Expr c = constant(full_of({40, 10}, 1));
    RandomStream both(6);
    const Expr once = dropout(c, 0.5, both), other = dropout(c, 0.5, both);
    CHECK(evaluated(sum(neq(once, once))).at(0) == 0);
    CHECK(optimized(sum(neq(once, other))).at(0) > 100);
    CHECK(same(optimized(sum(neq(once, other))), evaluated(sum(neq(once, other)))));
}

TEST_CASE("random ops reject nonsense") {
    RandomStream stream(6);
    CHECK_THAT(message_of<Error>([&] { stream.uniform({2}, 1, 1); }),
               ContainsSubstring("is empty in float32"));
    CHECK_THAT(message_of<Error>([&] { stream.normal({2}, 0, -1); }),
               ContainsSubstring("at least 0, but is -1"));
    const double inf = std::numeric_limits<double>::infinity();
    for (const auto& range : {std::pair{-2e38, 2e38}, {0.0, 1e300}, {-inf, 0.0}, {0.0, inf}})
        CHECK_THAT(message_of<Error>([&] { stream.uniform({2}, range.first, range.second); }),
                   ContainsSubstring("is longer than float32 can say"));
    for (const auto& bell : {std::pair{0.0, 1e39}, {1e39, 1.0}, {0.0, inf}, {std::nan(""), 1.0}})
        CHECK_THAT(message_of<Error>([&] { stream.normal({2}, bell.first, bell.second); }),
                   ContainsSubstring("must be finite in float32"));
    CHECK(evaluated(stream.uniform({3}, -1e38, 2e38)).size() == 3);
    CHECK_THAT(message_of<Error>([&] { dropout(matrix("x"), 1, stream); }),
               ContainsSubstring("below 1, but is 1; it is the fraction that is dropped"));
    const std::string message = message_of<TypeError>([&] { dropout(imatrix("x"), 0.5, stream); });
    CHECK_THAT(message, ContainsSubstring("\"x\" (int32"));
    CHECK_THAT(message_of<Error>([&] { stream.uniform({Expr(2.5)}); }), ContainsSubstring("integer scalar"));
}
