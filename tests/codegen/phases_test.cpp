// Phases of results: together they are the whole nest, and each of them asks nothing.
#include "codegen/nest/phases.h"

#include <algorithm>
#include <set>

#include "bitale/bitale.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"
#include "graph/ir/node.h"
#include "ops/registry.h"
#include "tests/support/catch.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Form {
    Dims image, filters;
    ConvOptions options;
};

// The gradient of the image.
Nest nest_of_form(const Form& form, Dims& small) {
    const Expr x = input(float32, form.image, "x"), w = input(float32, form.filters, "w");
    const Expr y = conv2d(x, w, form.options);
    small = static_dims(y.node()->type.shape);
    const Expr g = input(float32, small, "g");
    return simplify(nest_of(*grad(sum(y * g), x).node()));
}

// The points of the phase, as row-major positions among all results.
std::vector<std::int64_t> positions(const ResultPhase& phase, const Nest& whole) {
    std::vector<std::int64_t> list;
    std::int64_t count = 1;
    for (const Loop& l : phase.nest.parallel) count *= l.extent.constant();
    for (std::int64_t i = 0; i < count; ++i) {
        Substitution here;
        std::int64_t rest = i;
        for (std::size_t d = phase.nest.parallel.size(); d-- > 0;) {
            const Loop& l = phase.nest.parallel[d];
            if (const std::uint64_t id = l.variable.symbol_id()) here[id] = rest % l.extent.constant();
            rest /= l.extent.constant();
        }
        std::int64_t position = 0;
        for (const Loop& l : whole.parallel)
            position = position * l.extent.constant() +
                       substitute(substitute(l.variable, phase.results), here).constant();
        list.push_back(position);
    }
    return list;
}

}  // namespace

TEST_CASE("the phases of a convolution's gradient have each result once, with all that it is the sum of") {
    register_all_ops();
    std::size_t pieces = 0;
    for (const int kernel : {1, 2, 3, 5})
        for (const Size2 stride : {Size2(2), Size2(3), Size2(4, 1), Size2(1, 6)})
            for (const int dilation : {1, 2, 3})
                for (const Dims& image : {Dims{2, 2, 7, 9}, Dims{1, 1, 12, 1}, Dims{1, 2, 2, 13}}) {
                    const int pad = (kernel * 5 + dilation) % 4 + (kernel - 1) * dilation;
                    const Form form{image,
                                    {3, image[1], kernel, kernel},
                                    {.border_mode = pad,
                                     .subsample = stride,
                                     .dilation = dilation,
                                     .filter_flip = dilation == 1}};
                    Dims small;
                    const Nest whole = nest_of_form(form, small);
                    if (whole.guards.empty()) continue;  // one place, which is a multiple
                    const std::vector<Array> operands{sample(float64, small, 1),
                                                      sample(float64, form.filters, 2)};
                    const std::vector<ResultPhase> phases = phases_of(whole);
                    INFO(text_of(image) << " kernel " << kernel << ", stride " << stride.h << " " << stride.w
                                        << ", dilation " << dilation << ", pad " << pad);
                    REQUIRE(!phases.empty());
                    pieces += phases.size();
                    const Array expected = NestInterpreter(whole, operands).run();
                    std::set<std::int64_t> seen;
                    for (const ResultPhase& phase : phases) {
                        CHECK(phase.nest.guards.empty());
                        const Array got = NestInterpreter(phase.nest, operands).run();
                        const std::vector<std::int64_t> where = positions(phase, whole);
                        for (std::size_t i = 0; i < where.size(); ++i) {
                            CHECK(seen.insert(where[i]).second);
                            CHECK(got.view<double>()[i] ==
                                  expected.view<double>()[static_cast<std::size_t>(where[i])]);
                        }
                    }
                    CHECK(static_cast<std::int64_t>(seen.size()) == count_of(image));
                }
    CHECK(pieces > 0);
}

TEST_CASE("phases that differ in where they begin alone are one nest") {
    register_all_ops();
    Dims small;
    // Windows side by side: one term for each result.
    const Nest patches = nest_of_form({{1, 3, 32, 32}, {8, 3, 16, 16}, {.subsample = 16}}, small);
    CHECK(phases_of(patches).size() == 1);
    CHECK(phases_of(patches)[0].nest.reduced.size() == 1);
    CHECK(terms_of_result(patches) == 8);
    // Places between the windows have no terms: they are 0, as rows and then within the others.
    const Nest apart = nest_of_form({{1, 3, 32, 32}, {8, 3, 1, 1}, {.subsample = 4}}, small);
    const std::vector<ResultPhase> phases = phases_of(apart);
    REQUIRE(phases.size() == 3);
    CHECK(std::count_if(phases.begin(), phases.end(),
                        [](const ResultPhase& phase) { return phase.nest.combine == Combine::none; }) == 2);
}

TEST_CASE("nests that ask for no multiple have no phases, nor those with too many pieces") {
    register_all_ops();
    Dims small;
    CHECK(phases_of(nest_of_form({{1, 2, 5, 5}, {3, 2, 3, 3}, {}}, small)).empty());
    const Expr x = input(float32, {1, 2, -1, -1}, "x"), w = input(float32, {3, 2, 3, 3}, "w");
    for (const int stride : {2, 20}) {
        const Expr y = conv2d(x, w, {.subsample = stride});
        const Nest nest = simplify(nest_of(*grad(sum(sqr(y)), x).node()));
        CHECK(phases_of(nest).size() == (stride == 2 ? 4 : 0));
    }
}

TEST_CASE("sums over windows are not cut, nor put into lanes by the terms that a stride picks") {
    register_all_ops();
    const auto tree_of_form = [](const Form& form) {
        Dims small;
        const Nest nest = nest_of_form(form, small);
        const std::vector<Shape> shapes{{small.begin(), small.end()},
                                        {form.filters.begin(), form.filters.end()}};
        return tree_of(nest, [&](Operand operand) -> const Shape& {
            return shapes[static_cast<std::size_t>(operand.input())];
        });
    };
    for (const Form& form : {Form{{4, 16, 28, 28}, {128, 16, 5, 5}, {.border_mode = half}},
                             Form{{4, 3, 64, 64}, {192, 3, 16, 16}, {.subsample = 16}},
                             Form{{4, 3, 64, 64}, {192, 3, 1, 32}, {.subsample = Size2(1, 8)}}}) {
        const ReductionTree tree = tree_of_form(form);
        CHECK(!tree.split);
        CHECK(tree.lanes == 1);
    }
}

TEST_CASE("products of two columns or more have columns in lanes, where terms would be gathered") {
    register_all_ops();
    const auto lanes = [](std::int64_t columns, bool turned, std::int64_t rows = 40) {
        const Shape of_x{Int(rows), Int(64)},
            of_w = turned ? Shape{Int(columns), Int(64)} : Shape{Int(64), Int(columns)};
        const Expr x = input(float32, {rows, 64}, "x");
        const Expr w = turned ? input(float32, {columns, 64}, "w") : input(float32, {64, columns}, "w");
        Nest nest = nest_of(*dot(x, turned ? transpose(w) : w).node());
        // The second factor as it lies in memory.
        if (turned)
            nest = map_reads(nest, [](const Scalar& s) -> Scalar {
                if (s->operand.input() == 0) return s;
                return scalar_read(s->dtype, 1, {s->at[1], s->at[0]});
            });
        const std::vector<Shape> shapes{of_x, of_w};
        return tree_of(
                   nest,
                   [&](Operand of) -> const Shape& { return shapes[static_cast<std::size_t>(of.input())]; })
            .lanes;
    };
    for (const std::int64_t columns : {2, 3, 5, 7, 8, 20}) CHECK(lanes(columns, false) == 1);
    CHECK(lanes(1, false) == 16);
    for (const std::int64_t columns : {1, 2, 3, 7, 20}) CHECK(lanes(columns, true) == 16);
    // Of many rows, a copy of few columns that lies the other way serves all.
    CHECK(lanes(10, true, 100) == 1);
}

TEST_CASE("a guard that asks for a multiple is told from others") {
    const Int x = Int::symbol("x", {0, 999}), y = Int::symbol("y", {0, 99});
    const auto multiple = asks_for_multiple({mod(x * 2 - y + 3, 4), 0, 1});
    REQUIRE(multiple);
    CHECK(multiple->divisor == 4);
    CHECK(mod(multiple->x - (x * 2 - y + 3), 4).is(0));
    CHECK(!asks_for_multiple({mod(x, 4), 0, 2}));
    CHECK(!asks_for_multiple({mod(x, 4), 1, 2}));
    CHECK(!asks_for_multiple({floordiv(x, 4), 0, 1}));
    CHECK(!asks_for_multiple({mod(x, 4) + y, 0, 1}));
    CHECK(!asks_for_multiple({x, 0, 1}));
    // The remainder of what is always smaller.
    const Int z = Int::symbol("z", {0, 2});
    const auto small = asks_for_multiple({mod(z, 4), 0, 1});
    REQUIRE(small);
    CHECK(small->x == z);
    CHECK(small->divisor == 3);
}
